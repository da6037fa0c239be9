//! Timeouts, load, slow and silent clients, and shutdown.

use std::{
    io::{Read as _, Write},
    net::TcpStream,
};

use rustls::{ClientConnection, StreamOwned};
use tokio::sync::oneshot;

use super::*;

fn connect(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let session = ClientConnection::new(Arc::new(client::any_tls()), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    StreamOwned::new(session, stream)
}

fn send_head(stream: &mut impl Write, path: &str) {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"Content-Length: 100\r\n\r\n{").unwrap();
    stream.flush().unwrap();
}

/// spec 50, "better" 10
#[actix_web::test]
async fn live_read_ends_at_the_deadline_of_the_request() {
    let rig = Rig::start();

    let answer = rig.client().review(&format!("{LOOKING}?timeout=300ms"), "7c1f").await;

    assert_eq!(status(&answer), (504, "Timeout: failed waiting for *v1.ServiceAccount Informer to sync".to_owned()));
    assert_eq!(answer.json()["response"]["uid"], "7c1f");
    rig.stop().await;
}

#[actix_web::test]
async fn live_read_answer_is_used_in_the_next_attempt() {
    let mut rig = Rig::start();
    let client = rig.client();

    let reading = async {
        let question = rig.questions.recv().await.unwrap();
        assert!(matches!(question.lookup, Lookup::Object { .. }));
        question.reply.send(LiveAnswer::Object(None)).ok();
    };
    let (answer, ()) = tokio::join!(client.review(LOOKING, "7c1f"), reading);

    assert_eq!(answer.json()["response"]["allowed"], true);
    rig.stop().await;
}

/// Many Pods of a ServiceAccount that is not known yet share its read, and none of them is refused.
#[actix_web::test]
async fn live_read_shared_by_a_burst_answers_all_of_it() {
    let mut rig = Rig::start();
    let client = rig.client();
    let burst = (0..400).map(|uid| {
        let client = client.clone();
        actix_web::rt::spawn(async move { client.review(LOOKING, &uid.to_string()).await })
    });
    let burst: Vec<_> = burst.collect();

    let mut asked = Vec::new();
    while asked.len() < 400 {
        asked.push(rig.questions.recv().await.unwrap());
    }
    asked.into_iter().for_each(|question| drop(question.reply.send(LiveAnswer::Object(None))));

    for answer in burst {
        assert_eq!(answer.await.unwrap().json()["response"]["allowed"], true);
    }
    rig.stop().await;
}

#[actix_web::test]
async fn overload_is_refused_at_once_and_may_be_retried() {
    let rig = Rig::start();
    let client = rig.client();
    let all: Vec<_> = (0..load::MOST_REQUESTS).map_while(|_| rig.server.load.enter()).collect();

    let refused = client.review(MUTATING, "u").await;
    drop(all);
    let again = client.review(MUTATING, "u").await;

    assert_eq!((refused.status, refused.retry_after.as_str()), (429, "1"));
    assert_eq!(again.status, 200);
    rig.stop().await;
}

fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() / 256
}

/// The tree of this JSON takes 80 times its size, and it has nearly the largest number of values.
#[actix_web::test]
async fn reviews_wait_as_bytes_and_not_as_trees() {
    let mut rig = Rig::start();
    let maps = r#"{"a":0},"#.repeat(24_000);
    let large = review("u").replace(r#""name":"p""#, &format!(r#""name":"p","x":[{maps}0]"#));
    let before = resident();
    let waiting: Vec<_> = (0..64)
        .map(|_| {
            let (client, large) = (rig.client(), large.clone());
            actix_web::rt::spawn(async move {
                client.post(&format!("{LOOKING}?timeout=30s"), "application/json", large).await
            })
        })
        .collect();

    let mut asked = Vec::new();
    while asked.len() < 64 {
        asked.push(rig.questions.recv().await.unwrap());
    }
    let more = resident().saturating_sub(before);
    asked.into_iter().for_each(|question| drop(question.reply.send(LiveAnswer::Object(None))));

    assert!(more < 400, "{more} MiB for 12 MiB of JSON");
    for answer in waiting {
        assert_eq!(answer.await.unwrap().json()["response"]["allowed"], true);
    }
    rig.stop().await;
}

#[actix_web::test]
async fn silent_and_slow_clients_do_not_delay_others() {
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
    let answer = rig.client().review(MUTATING, "7c1f").await;

    assert_eq!(answer.status, 200);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    drop(others);
    rig.stop().await;
}

/// spec 70 §11.1: a connection counts from its beginning, and connections with an unfinished handshake make room first
#[actix_web::test]
async fn connections_that_never_begin_tls_do_not_delay_others() {
    let rig = Rig::start_within(Bounds { connections: 16, silent: 16 }, UNREAD);
    let address = rig.server.address();
    let used = rig.client();
    assert_eq!(used.review(MUTATING, "u").await.status, 200);
    let idle = actix_web::web::block(move || {
        let connect = |_| TcpStream::connect(address).unwrap();
        (0..400).map(connect).collect::<Vec<_>>()
    });
    let idle = idle.await.unwrap();

    let begin = Instant::now();
    assert_eq!(rig.client().review(MUTATING, "u").await.status, 200);
    assert_eq!(used.review(MUTATING, "u").await.status, 200);

    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    drop(idle);
    rig.stop().await;
}

/// decision 42
#[actix_web::test]
async fn alpn_offers_only_http_1_1() {
    let rig = Rig::start();
    let address = rig.server.address();
    let agreed = actix_web::web::block(move || {
        let mut tls = client::any_tls();
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut session = ClientConnection::new(Arc::new(tls), "localhost".try_into().unwrap()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        while session.is_handshaking() {
            session.complete_io(&mut stream).unwrap();
        }
        session.alpn_protocol().map(<[u8]>::to_vec)
    });

    assert_eq!(agreed.await.unwrap().as_deref(), Some(&b"http/1.1"[..]));
    rig.stop().await;
}

/// Bodies of nearly the largest size whose last bytes never come.
#[actix_web::test]
async fn large_unfinished_bodies_make_room_for_others() {
    let rig = Rig::start();
    let address = rig.server.address();
    let others = actix_web::web::block(move || {
        let slow = (0..9).map(|_| {
            let mut stream = connect(address);
            let head = format!("POST {MUTATING}?timeout=30s HTTP/1.1\r\nHost: a\r\nContent-Length: 7340000\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(&vec![b' '; 7_300_000]).unwrap();
            stream.flush().unwrap();
            stream
        });
        slow.collect::<Vec<_>>()
    });
    let others = others.await.unwrap();
    rig.server.load.filled(9 * 7_300_000).await;

    let large = format!("{}{}", review("7c1f"), " ".repeat(4_000_000));
    let answer = rig.client().post(MUTATING, "application/json", large).await;

    assert_eq!(answer.status, 200);
    drop(others);
    rig.stop().await;
}

/// spec 50 §2.2 row 2
#[actix_web::test]
async fn body_timeout_is_an_error_within_the_deadline() {
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
async fn shutdown_answers_a_review_in_flight() {
    let mut rig = Rig::start();
    let client = rig.client();
    let answer = actix_web::rt::spawn(async move { client.review(LOOKING, "7c1f").await });
    let question = rig.questions.recv().await.unwrap();

    let address = rig.server.address();
    let stopped = actix_web::rt::spawn(rig.server.stop(Instant::now() + Duration::from_secs(5)));
    tokio::task::yield_now().await;
    question.reply.send(LiveAnswer::Object(None)).ok();

    assert_eq!(answer.await.unwrap().json()["response"]["allowed"], true);
    stopped.await.unwrap();
    let refused = Client::new(address).try_post(MUTATING, "application/json", review("u")).await;
    assert!(refused.is_err());
}

#[actix_web::test]
async fn shutdown_does_not_wait_beyond_its_deadline() {
    let mut rig = Rig::start();
    let client = rig.client();
    let answer = actix_web::rt::spawn(async move { client.try_post(LOOKING, "application/json", review("u")).await });
    let _question = rig.questions.recv().await.unwrap();

    let begin = Instant::now();
    rig.server.stop(begin + Duration::from_millis(300)).await;

    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    assert!(answer.await.unwrap().is_err());
}

fn traffic(client: &Client, answers: usize) -> (JoinHandle<String>, oneshot::Receiver<()>) {
    let (client, (enough, is_enough)) = (client.clone(), oneshot::channel());
    let task = actix_web::rt::spawn(async move {
        let mut enough = Some(enough);
        for answered in 1.. {
            match client.try_post(MUTATING, "application/json", review("u")).await {
                Ok(answer) => assert_eq!(answer.status, 200),
                Err(error) => return error,
            }
            if answered == answers {
                enough.take().map(|enough| enough.send(()));
            }
        }
        String::new()
    });
    (task, is_enough)
}

/// spec 50 §2.9
#[actix_web::test]
async fn shutdown_is_not_delayed_by_steady_traffic_and_does_not_cut_it_off() {
    let rig = Rig::start();
    let (mut tasks, mut begun) = (Vec::new(), Vec::new());
    for at_once in [1, 1, 1, 4, 8] {
        let client = rig.client();
        for _ in 0..at_once {
            let (task, is_enough) = traffic(&client, 10);
            tasks.push(task);
            begun.push(is_enough);
        }
    }
    for is_enough in begun {
        is_enough.await.unwrap();
    }

    let begin = Instant::now();
    rig.server.stop(begin + Duration::from_secs(60)).await;

    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    for task in tasks {
        let error = task.await.unwrap();
        assert!(error.contains("Connect"), "only a new connection cannot be made, but: {error}");
    }
}

/// spec 50 §2.9
#[actix_web::test]
async fn shutdown_closes_idle_connections_at_once() {
    let rig = Rig::start();
    let clients = [rig.client(), rig.client()];
    for client in &clients {
        assert_eq!(client.review(MUTATING, "u").await.status, 200);
    }

    let begin = Instant::now();
    rig.server.stop(begin + Duration::from_secs(60)).await;

    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

/// A connection that sent requests stays open, however many silent ones there are.
#[actix_web::test]
async fn idle_connection_survives_many_silent_connections() {
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
