//! Time, load, clients that are slow or silent, and the end.

use std::{
    io::{Read as _, Write},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};

use super::*;

/// A TLS connection over which the test sends bytes itself.
fn connect(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let session = ClientConnection::new(Arc::new(client::any_tls()), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    StreamOwned::new(session, stream)
}

/// A request of which the rest of the body never comes.
fn send_head(stream: &mut impl Write, path: &str) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"Content-Length: 100\r\n\r\n{").unwrap();
    stream.flush().unwrap();
}

/// spec 50, "better" 10
#[actix_web::test]
async fn a_read_that_takes_too_long_ends_with_the_time_of_the_request() {
    let rig = Rig::start();

    let answer = rig.client(true).review(&format!("{LOOKING}?timeout=300ms"), "7c1f").await;

    assert_eq!(status(&answer), (504, "Timeout: failed waiting for *v1.ServiceAccount Informer to sync".to_owned()));
    assert_eq!(answer.json()["response"]["uid"], "7c1f");
    rig.stop().await;
}

#[actix_web::test]
async fn a_review_goes_on_with_what_was_read_for_it() {
    let mut rig = Rig::start();
    let client = rig.client(true);

    let reading = async {
        let question = rig.questions.recv().await.unwrap();
        assert!(matches!(question.lookup, Lookup::ServiceAccount(_)));
        question.reply.send(Known::ServiceAccount(None)).ok();
    };
    let (answer, ()) = tokio::join!(client.review(LOOKING, "7c1f"), reading);

    assert_eq!(answer.json()["response"]["allowed"], true);
    rig.stop().await;
}

/// One connection is served by one worker, whose actor holds 64 reviews that wait.
#[actix_web::test]
async fn what_is_too_much_is_refused_at_once_and_may_come_again() {
    let mut rig = Rig::start();
    let client = rig.client(true);
    let (sender, mut answers) = mpsc::channel(80);
    for uid in 0..80 {
        let (client, sender) = (client.clone(), sender.clone());
        actix_web::rt::spawn(async move { sender.send(client.review(LOOKING, &uid.to_string()).await).await });
    }

    let mut asked = Vec::new();
    while asked.len() < 64 {
        asked.push(rig.questions.recv().await.unwrap());
    }
    for _ in 64..80 {
        let refused = answers.recv().await.unwrap();
        assert_eq!((refused.status, refused.retry_after.as_str()), (429, "1"));
    }
    asked.into_iter().for_each(|question| drop(question.reply.send(Known::ServiceAccount(None))));
    for _ in 0..64 {
        assert_eq!(answers.recv().await.unwrap().json()["response"]["allowed"], true);
    }
    rig.stop().await;
}

#[actix_web::test]
async fn silent_and_slow_clients_keep_nobody_waiting() {
    let rig = Rig::start();
    let address = rig.server.address();
    let others = actix_web::web::block(move || {
        let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
        let slow: Vec<_> = (0..50)
            .map(|_| {
                let mut stream = connect(address);
                send_head(&mut stream, MUTATING);
                stream
            })
            .collect();
        (silent, slow)
    });
    let others = others.await.unwrap();

    let begin = Instant::now();
    let answer = rig.client(false).review(MUTATING, "7c1f").await;

    assert_eq!(answer.status, 200);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    drop(others);
    rig.stop().await;
}

/// spec 50 §2.2 row 2
#[actix_web::test]
async fn a_body_that_does_not_come_is_an_error_in_time() {
    let rig = Rig::start();
    let address = rig.server.address();

    let answer = actix_web::web::block(move || {
        let mut stream = connect(address);
        send_head(&mut stream, &format!("{MUTATING}?timeout=300ms"));
        let mut answer = vec![0; 4096];
        let mut length = 0;
        while !String::from_utf8_lossy(&answer[..length]).contains("in time") {
            match stream.read(&mut answer[length..]) {
                Ok(read) if read > 0 => length += read,
                other => panic!("{other:?}: {}", String::from_utf8_lossy(&answer[..length])),
            }
        }
        String::from_utf8_lossy(&answer[..length]).into_owned()
    });
    let answer = answer.await.unwrap();

    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    rig.stop().await;
}

/// spec 50 §2.9
#[actix_web::test]
async fn a_review_in_flight_is_answered_before_the_end() {
    let mut rig = Rig::start();
    let client = rig.client(true);
    let answer = actix_web::rt::spawn(async move { client.review(LOOKING, "7c1f").await });
    let question = rig.questions.recv().await.unwrap();

    let address = rig.server.address();
    let stopped = actix_web::rt::spawn(rig.server.stop(Instant::now() + Duration::from_secs(5)));
    tokio::task::yield_now().await;
    question.reply.send(Known::ServiceAccount(None)).ok();

    assert_eq!(answer.await.unwrap().json()["response"]["allowed"], true);
    stopped.await.unwrap();
    let refused = Client::new(address, false).try_post(MUTATING, "application/json", review("u")).await;
    assert!(refused.is_err());
}

#[actix_web::test]
async fn the_end_does_not_wait_for_ever() {
    let mut rig = Rig::start();
    let client = rig.client(true);
    let answer = actix_web::rt::spawn(async move { client.try_post(LOOKING, "application/json", review("u")).await });
    let _question = rig.questions.recv().await.unwrap();

    let begin = Instant::now();
    rig.server.stop(begin + Duration::from_millis(300)).await;

    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    assert!(answer.await.unwrap().is_err());
}
