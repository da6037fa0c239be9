//! Time, load, clients that are slow or silent, and the end.

use std::{
    io::{Read as _, Write},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};

use super::*;

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

/// spec 50 §2.9
#[actix_web::test]
async fn steady_traffic_does_not_delay_the_end_and_is_not_cut_off() {
    let rig = Rig::start();
    let traffic: Vec<_> = [false, false, false, true, true, true]
        .into_iter()
        .map(|http2| {
            let client = rig.client(http2);
            actix_web::rt::spawn(async move {
                let mut answers = 0;
                loop {
                    match client.try_post(MUTATING, "application/json", review("u")).await {
                        Ok(answer) => assert_eq!(answer.status, 200),
                        Err(error) => return (http2, answers, error),
                    }
                    answers += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;

    let begin = Instant::now();
    rig.server.stop(begin + Duration::from_secs(5)).await;

    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    for client in traffic {
        let (http2, answers, error) = client.await.unwrap();
        assert!(answers > 0);
        assert!(error.contains("Connect"), "a new connection cannot be made, but: {http2} {error}");
    }
}

/// Whoever sent requests keeps the connection, however many others say nothing.
#[actix_web::test]
async fn silent_strangers_do_not_end_an_idle_connection() {
    let rig = Rig::start();
    let address = rig.server.address();
    let post = format!("POST {MUTATING} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let ask = move |mut stream: StreamOwned<ClientConnection, TcpStream>| {
        stream.write_all(post.as_bytes()).unwrap();
        let mut answer = [0; 4096];
        let read = stream.read(&mut answer);
        assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"), "{read:?}");
        stream
    };
    let (first, again) = (ask.clone(), ask);

    let all = actix_web::web::block(move || {
        let used = first(connect(address));
        let silent: Vec<_> = (0..200)
            .map(|_| {
                let mut stream = connect(address);
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut stream.sock).unwrap();
                }
                stream
            })
            .collect();
        (again(used), silent)
    });

    drop(all.await.unwrap());
    rig.stop().await;
}
