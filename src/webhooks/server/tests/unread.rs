//! Clients that do not read their answers.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};
use tokio::{sync::mpsc::unbounded_channel, time::timeout};

use super::*;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn rig(answers: usize, time: Duration) -> Rig {
    Rig::start_within(UnreadLimits { answers, time, ..UNREAD })
}

fn connect(address: SocketAddr, protocol: &[u8]) -> StreamOwned<ClientConnection, TcpStream> {
    let mut tls = client::any_tls();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let session = ClientConnection::new(Arc::new(tls), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    StreamOwned::new(session, stream)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What an HTTP/2 client says that lets the server send what it wants, and many reviews.
fn reviews_over_http2(path: &str, count: u32) -> Vec<u8> {
    let begin = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        // INITIAL_WINDOW_SIZE
        frame(4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]),
        // Of the connection.
        frame(8, 0, 0, &0x7fff_0000_u32.to_be_bytes()),
    ];
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    // POST, https, the path, an authority and the content type, in RFC 7541's words.
    let head = [&[0x83, 0x87, 0x04][..], &text(path), &[0x01], &text("a"), &[0x0f, 0x10], &text("application/json")];
    let head = head.concat();
    let requests = (0..count).flat_map(|i| {
        let stream = 2 * i + 1;
        [frame(1, 4, stream, &head), frame(0, 1, stream, review("u").as_bytes())]
    });
    begin.into_iter().chain(requests).flatten().collect()
}

/// Without time to read, the system resets the connection: bytes came that nobody took.
#[actix_web::test]
async fn a_client_that_sends_far_too_much_reads_why() {
    let rig = Rig::start();
    let address = rig.server.address();

    let answer = actix_web::web::block(move || {
        let mut stream = connect(address, b"http/1.1");
        let head = format!("POST {MUTATING} HTTP/1.1\r\nHost: a\r\nContent-Length: 12000000\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&vec![b' '; 12_000_000]).unwrap();
        stream.flush().unwrap();
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&answer).contains("7340032 bytes") {
            let read = stream.read(&mut piece).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..read]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    });
    let answer = answer.await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("413"), "{answer}");
    rig.stop().await;
}

/// The client forbids the server to send, and answers to its PINGs.
#[actix_web::test]
async fn answers_that_may_not_be_sent_are_dropped_with_their_connection() {
    let rig = rig(512, Duration::from_millis(500));
    let client = Client::without_window(rig.server.address());
    let paths = [MUTATING, DENYING, "/nothing"].into_iter().cycle().take(60);
    let waiting: Vec<_> = paths
        .map(|path| {
            let client = client.clone();
            actix_web::rt::spawn(async move { client.try_post(path, "application/json", review("u")).await })
        })
        .collect();

    for answer in waiting {
        assert!(timeout(LONG, answer).await.unwrap().unwrap().is_err());
    }

    timeout(LONG, rig.server.connections.closed()).await.unwrap();
    assert_eq!(rig.client(true).review(MUTATING, "u").await.status, 200);
    rig.stop().await;
}

#[actix_web::test]
async fn many_that_do_not_read_keep_nobody_waiting() {
    let rig = rig(8, LONG * 60);
    let (failed, mut failures) = unbounded_channel();
    let waiting: Vec<_> = (0..40)
        .map(|_| {
            let (client, failed) = (Client::without_window(rig.server.address()), failed.clone());
            actix_web::rt::spawn(async move {
                let answer = client.try_post(MUTATING, "application/json", review("u")).await;
                failed.send(answer.is_err()).ok();
            })
        })
        .collect();

    for _ in 0..32 {
        assert!(timeout(LONG, failures.recv()).await.unwrap().unwrap());
    }
    for http2 in [false, true] {
        assert_eq!(rig.client(http2).review(MUTATING, "u").await.status, 200);
    }

    waiting.into_iter().for_each(|task| task.abort());
    rig.stop().await;
}

#[actix_web::test]
async fn connections_that_take_nothing_are_closed() {
    let rig = rig(512, Duration::from_millis(500));
    let address = rig.server.address();
    let body = review("u");
    let head = format!("POST {LARGE} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
    let http1 = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).repeat(14).into_bytes();
    for (protocol, requests) in [(&b"http/1.1"[..], http1), (&b"h2"[..], reviews_over_http2(LARGE, 14))] {
        let stream = actix_web::web::block(move || {
            let mut stream = connect(address, protocol);
            stream.write_all(&requests).unwrap();
            stream.flush().unwrap();
            stream
        });
        let stream = stream.await.unwrap();

        let closed = timeout(LONG, rig.server.connections.closed()).await;

        assert!(closed.is_ok(), "{}", String::from_utf8_lossy(protocol));
        drop(stream);
    }
    assert_ne!(rig.metric(&format!("{REQUESTS}{{code=\"200\",webhook=\"{LARGE}\"}}")), "0");
    rig.stop().await;
}
