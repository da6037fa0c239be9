//! Clients that do not read their answers.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};
use tokio::time::timeout;

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn rig(answers: usize, time: Duration) -> Rig {
    Rig::start_within(Descriptors::default().encrypted(), UnreadLimits { answers, time, ..UNREAD })
}

fn connect(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let session = ClientConnection::new(Arc::new(client::any_tls()), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    StreamOwned::new(session, stream)
}

fn large_review() -> Vec<u8> {
    let (head, body) = (format!("POST {LARGE} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"), review("u"));
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Without time to read, the system would reset the connection because of unread bytes.
#[actix_web::test]
async fn oversized_body_sender_can_read_the_answer() {
    let rig = Rig::start();
    let address = rig.server.address();

    let answer = actix_web::web::block(move || {
        let mut stream = connect(address);
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

#[actix_web::test]
async fn unread_answers_of_many_clients_do_not_delay_others() {
    let rig = rig(8, LONG * 60);
    let address = rig.server.address();
    let deaf = actix_web::web::block(move || {
        let deaf = (0..40).map(|_| {
            let mut stream = connect(address);
            // More than the buffers of the system and of TLS hold. The server may close before all is written.
            stream.write_all(&large_review().repeat(14)).and_then(|()| stream.flush()).ok();
            stream
        });
        deaf.collect::<Vec<_>>()
    });
    let deaf = deaf.await.unwrap();

    timeout(LONG, rig.server.server.connections.at_most(8)).await.unwrap();
    assert_eq!(rig.client().review(MUTATING, "u").await.status, 200);

    drop(deaf);
    rig.stop().await;
}

#[actix_web::test]
async fn unread_answers_close_the_connection_after_a_time() {
    let rig = rig(512, Duration::from_millis(500));
    let address = rig.server.address();
    let stream = actix_web::web::block(move || {
        let mut stream = connect(address);
        stream.write_all(&large_review().repeat(14)).unwrap();
        stream.flush().unwrap();
        stream
    });
    let stream = stream.await.unwrap();

    let closed = timeout(LONG, rig.server.server.connections.closed()).await;

    assert!(closed.is_ok());
    drop(stream);
    assert_ne!(rig.metric(&format!("{REQUESTS}{{code=\"200\",webhook=\"{LARGE}\"}}")), "0");
    rig.stop().await;
}
