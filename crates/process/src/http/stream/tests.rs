use std::net::TcpListener;

use actix_web::rt::net::TcpStream;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    time::{Instant, timeout},
};

use super::*;
use crate::http::connections::{Connections, UNREAD};

struct Rig {
    library: Stream<DuplexStream>,
    course: Rc<Course>,
    client: DuplexStream,
}

impl Rig {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        let (_, connection) = Connections::within(10, UNREAD).arrive(TcpStream::from_std(accepted).unwrap()).unwrap();
        let (io, client) = duplex(1 << 20);
        let library = Stream::new(io, connection);
        Self { course: library.course().clone(), library, client }
    }

    async fn say(&mut self, bytes: usize) {
        self.client.write_all(&vec![b'a'; bytes]).await.unwrap();
    }

    fn turn(&mut self) -> usize {
        let (mut all, mut cx) = (0, Context::from_waker(Waker::noop()));
        loop {
            let mut piece = [0; 100_000];
            let mut piece = ReadBuf::new(&mut piece);
            match Pin::new(&mut self.library).poll_read(&mut cx, &mut piece) {
                Poll::Ready(Ok(())) if piece.filled().is_empty() => panic!("the end after {all}"),
                Poll::Ready(read) => read.unwrap(),
                Poll::Pending => return all,
            }
            all += piece.filled().len();
        }
    }

    async fn refused_with(self, status: &str) {
        let Self { mut library, course: _, mut client } = self;
        let client = tokio::spawn(async move {
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        });
        assert_eq!(library.read(&mut [0]).await.unwrap(), 0);
        drop(library);
        let answer = client.await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.ends_with("connection: close\r\n\r\n"), "{answer}");
    }
}

/// spec 70 §11
#[actix_web::test]
async fn head_without_an_end_is_refused_at_16_kib() {
    tokio::time::pause();
    let mut rig = Rig::new();
    rig.say(MOST_HEAD - 1).await;
    assert_eq!(rig.turn(), MOST_HEAD - 1);
    rig.say(100_000).await;
    assert_eq!(rig.turn(), 1, "the last byte that may come, so that the library can look");

    rig.refused_with("431").await;
}

/// spec 70 §11
#[actix_web::test]
async fn head_has_32_seconds_from_its_first_byte_on() {
    tokio::time::pause();
    for heads in [1, 2] {
        let mut rig = Rig::new();
        for _ in 1..heads {
            rig.say(10).await;
            assert_eq!(rig.turn(), 10);
            rig.course.enter(Phase::Judging);
            rig.course.enter(Phase::Head);
            tokio::time::advance(Duration::from_secs(80)).await;
            assert_eq!(rig.turn(), 0, "no time runs between requests");
        }
        for _ in 0..31 {
            rig.say(1).await;
            assert_eq!(rig.turn(), 1);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let begin = Instant::now();

        rig.refused_with("408").await;

        assert!(begin.elapsed() <= Duration::from_secs(1) + LINGER, "{:?}", begin.elapsed());
    }
}

#[actix_web::test]
async fn head_limit_does_not_count_small_requests_in_one_piece() {
    let mut rig = Rig::new();
    rig.say(10 * TURN).await;

    for _ in 0..10 {
        assert_eq!(rig.turn(), TURN);
        rig.course.enter(Phase::Body); // the library finds whole requests in it
        rig.course.enter(Phase::Judging);
        rig.course.enter(Phase::Head);
    }
    assert_eq!(rig.turn(), 0);
}

#[actix_web::test]
async fn read_ahead_of_an_answer_is_bounded_whatever_was_read_before() {
    let mut rig = Rig::new();
    rig.say(1 << 19).await;
    assert_eq!(rig.turn(), TURN);
    rig.course.enter(Phase::Judging);

    let mut ahead = 0;
    for _ in 0..100 {
        ahead += rig.turn();
        rig.course.enter(Phase::Head); // the next request is already complete
        rig.course.enter(Phase::Body);
        rig.course.enter(Phase::Judging);
    }
    assert_eq!(ahead, AHEAD);

    let Rig { mut library, course, client } = rig;
    let read = tokio::task::spawn_local(async move {
        let mut bytes = [0; 10];
        library.read_exact(&mut bytes).await.unwrap();
        client
    });
    tokio::task::yield_now().await;
    assert!(!read.is_finished());
    course.enter(Phase::Head);
    drop(timeout(Duration::from_secs(10), read).await.expect("the library is woken").unwrap());
}

#[actix_web::test]
async fn body_is_read_turn_by_turn_without_a_limit() {
    tokio::time::pause();
    let mut rig = Rig::new();
    rig.say(1).await;
    assert_eq!(rig.turn(), 1);
    for phase in [Phase::Body, Phase::Rest] {
        rig.course.enter(phase);
        rig.say(1 << 19).await;
        for _ in 0..32 {
            assert_eq!(rig.turn(), TURN);
        }
    }
}

/// spec 70 §11
#[actix_web::test]
async fn rest_of_a_body_has_one_second_even_if_nothing_comes() {
    tokio::time::pause();
    let Rig { mut library, course, client: _client } = Rig::new();
    let read = tokio::task::spawn_local(async move { library.read(&mut [0]).await.unwrap() });
    tokio::task::yield_now().await;
    let begin = Instant::now();

    course.enter(Phase::Rest);

    assert_eq!(timeout(Duration::from_secs(90), read).await.expect("an end").unwrap(), 0);
    assert!(begin.elapsed() >= LINGER && begin.elapsed() < 2 * LINGER, "{:?}", begin.elapsed());
}

#[actix_web::test]
async fn unread_answer_stops_reading() {
    let mut rig = Rig::new();
    rig.course.enter(Phase::Body);
    rig.say(10).await;
    let mut cx = Context::from_waker(Waker::noop());
    while Pin::new(&mut rig.library).poll_write(&mut cx, &[0; 1 << 16]).is_ready() {}
    assert_eq!(rig.turn(), 0);

    rig.client.read_exact(&mut vec![0; 1 << 20]).await.unwrap();
    assert!(Pin::new(&mut rig.library).poll_write(&mut cx, &[0]).is_ready());
    assert_eq!(rig.turn(), 10);
}
