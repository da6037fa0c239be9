//! Heads that are too large, too slow, or too many.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};

use super::*;

fn connect(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let session = ClientConnection::new(Arc::new(client::any_tls()), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    StreamOwned::new(session, stream)
}

fn head(path: &str, field: usize) -> String {
    let fields = "Host: a\r\nContent-Type: application/json\r\n";
    format!("POST {path} HTTP/1.1\r\n{fields}Content-Length: {}\r\nx: {}\r\n\r\n", review("u").len(), "a".repeat(field))
}

async fn exchange(rig: &Rig, pieces: Vec<String>) -> String {
    let address = rig.server.address();
    let answered = actix_web::web::block(move || {
        let mut stream = connect(address);
        for piece in pieces {
            stream.write_all(piece.as_bytes()).unwrap();
            stream.flush().unwrap();
        }
        let mut answer = Vec::new();
        // The server may close without TLS `close_notify`.
        stream.read_to_end(&mut answer).ok();
        String::from_utf8_lossy(&answer).into_owned()
    });
    answered.await.unwrap()
}

fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

/// spec 70 §11
#[actix_web::test]
async fn heads_have_a_limit_of_16_kib() {
    let rig = Rig::start();
    let fixed = head(MUTATING, 0).len();
    let last = head(DENYING, 0).replace("x: ", "Connection: close\r\nx: ");
    let (allowed, too_large) = (head(MUTATING, (16 << 10) - fixed), head(MUTATING, (16 << 10) - fixed + 1));

    let answers = exchange(&rig, vec![format!("{allowed}{}", review("u")), format!("{last}{}", review("u"))]).await;
    assert_eq!(statuses(&answers), ["200", "200"], "{answers}");

    let answers = exchange(&rig, vec![format!("{too_large}{}", review("u"))]).await;
    assert_eq!(statuses(&answers), ["431"], "{answers}");
    let endless = format!("GET /{}", "a".repeat(1 << 20));
    assert_eq!(statuses(&exchange(&rig, vec![endless]).await), ["431"]);
    rig.stop().await;
}

async fn after_not_found(rig: &Rig, request: &'static str, then: String) -> String {
    let address = rig.server.address();
    let answered = actix_web::web::block(move || {
        let mut stream = connect(address);
        stream.write_all(format!("GET /x HTTP/1.1\r\nHost: a\r\n{request}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"404 page not found\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        // The server may have closed already.
        stream.write_all(then.as_bytes()).and_then(|()| stream.flush()).ok();
        let end = stream.read_to_end(&mut answer).err().map(|error| error.kind());
        assert!(!matches!(end, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it is open still");
        String::from_utf8_lossy(&answer).into_owned()
    });
    answered.await.unwrap()
}

/// spec 70 §11
#[actix_web::test]
async fn heads_have_their_limit_after_a_request_with_an_unread_body() {
    let rig = Rig::start();
    let endless = || format!("GET /{}", "a".repeat(17 << 10));

    let empty = after_not_found(&rig, "Content-Length: 0\r\n\r\n", endless()).await;
    let chunked = after_not_found(&rig, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", endless()).await;
    let unfinished = after_not_found(&rig, "Transfer-Encoding: chunked\r\n\r\n", String::new()).await;

    assert_eq!(statuses(&empty), ["404", "431"], "{empty}");
    for answers in [chunked, unfinished] {
        assert_eq!(statuses(&answers), ["404"], "{answers}");
        assert!(answers.contains("\r\nconnection: close\r\n"), "{answers}");
    }
    rig.stop().await;
}

/// spec 70 §11
#[actix_web::test]
async fn heads_have_at_most_96_fields() {
    let rig = Rig::start();
    let request = |fields: usize| {
        let more = "x: y\r\n".repeat(fields - 3);
        format!("POST {MUTATING} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n{more}\r\n")
    };

    assert_eq!(statuses(&exchange(&rig, vec![request(96)]).await), ["200"]);
    assert_eq!(statuses(&exchange(&rig, vec![request(97)]).await), ["431"]);
    rig.stop().await;
}

/// A head that arrives during another request's answer counts too.
#[actix_web::test]
async fn heads_that_follow_in_one_piece_are_answered_in_turn_and_have_the_same_limit() {
    let rig = Rig::start();
    let small = format!("{}{}", head(DENYING, 10), review("u"));
    let middle = format!("{}{}", head(DENYING, 8000), review("u"));
    let large = head(MUTATING, 16 << 10);

    let answers = exchange(&rig, vec![format!("{}{}{large}", small.repeat(40), middle.repeat(5))]).await;

    let expected: Vec<_> = ["200"; 45].into_iter().chain(["431"]).collect();
    assert_eq!(statuses(&answers), expected, "{answers}");
    rig.stop().await;
}

/// spec 50 §2.1: the handler stops when the client goes away; §2.9: while the server stops, each answer says so
#[actix_web::test]
async fn heads_of_answers_say_that_the_connection_ends_while_the_server_stops() {
    let mut rig = Rig::start();
    let address = rig.server.address();
    let answer = actix_web::rt::spawn(async move {
        let answered = actix_web::web::block(move || {
            let mut stream = connect(address);
            stream.write_all(format!("{}{}", head(LOOKING, 1), review("u")).as_bytes()).unwrap();
            stream.flush().unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).ok();
            String::from_utf8_lossy(&answer).into_owned()
        });
        answered.await.unwrap()
    });
    let question = rig.questions.recv().await.unwrap();

    let stopped = actix_web::rt::spawn(rig.server.stop(Instant::now() + Duration::from_secs(30)));
    tokio::task::yield_now().await;
    question.reply.send(LiveAnswer::Object(None)).ok();

    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    stopped.await.unwrap();
}

/// spec 50 §2.1: the handler stops when the client goes away
#[actix_web::test]
async fn heads_waiting_for_an_answer_do_not_hide_a_closed_connection() {
    let mut rig = Rig::start();
    let address = rig.server.address();
    let stream = actix_web::web::block(move || {
        let mut stream = connect(address);
        stream.write_all(format!("{}{}", head(LOOKING, 1), review("u")).as_bytes()).unwrap();
        stream.flush().unwrap();
        stream
    });
    let mut stream = stream.await.unwrap();
    let question = rig.questions.recv().await.unwrap();

    stream.conn.send_close_notify();
    stream.flush().unwrap();
    drop(stream);

    let mut reply = question.reply;
    tokio::time::timeout(Duration::from_secs(10), reply.closed()).await.expect("the request should have been dropped");
    rig.stop().await;
}
