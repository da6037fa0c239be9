use std::net::TcpListener;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    time::Instant,
};

use super::*;
use crate::http::connections::Connections;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// A request with all it has, on stream 1; the one on stream 3; and the answers to them.
const REQUEST: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x82];
const NEXT_REQUEST: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 3, 0x82];
const ANSWER: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];
const NEXT_ANSWER: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 3, 0x88];
/// GOAWAY for all streams and PING.
const FAREWELL: &[u8] = &[
    0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, //
    0, 0, 8, 6, 0, 0, 0, 0, 0, b'f', b'a', b'r', b'e', b'w', b'e', b'l', b'l',
];
const PONG: &[u8] = &[0, 0, 8, 6, 1, 0, 0, 0, 0, b'f', b'a', b'r', b'e', b'w', b'e', b'l', b'l'];

/// Both ends of a connection over which `room` bytes fit at a time.
struct Rig {
    stopping: CancellationToken,
    library: Stream<Narrow>,
    client: DuplexStream,
}

/// Takes a few bytes at a time, and several pieces at once.
struct Narrow {
    io: DuplexStream,
    most: usize,
}

// === impl Rig ===

impl Rig {
    fn new(room: usize, most: usize) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = Connections::default().enter_http2(&socket).unwrap();
        let (io, client) = duplex(room);
        let stopping = CancellationToken::new();
        let library = Stream::http2(Narrow { io, most }, connection, stopping.clone());
        Self { stopping, library, client }
    }

    /// Both have said what comes first.
    async fn begun() -> Self {
        let mut rig = Self::new(65_536, 65_536);
        rig.say(PREFACE).await;
        rig.hear(PREFACE).await;
        rig.answer(SETTINGS).await;
        rig.expect(SETTINGS).await;
        rig
    }

    /// The client sends.
    async fn say(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).await.unwrap();
    }

    /// The library reads this.
    async fn hear(&mut self, expected: &[u8]) {
        let mut bytes = vec![0; expected.len()];
        self.library.read_exact(&mut bytes).await.unwrap();
        assert_eq!(bytes, expected);
    }

    /// The library reads that the connection ends.
    async fn hear_the_end(&mut self) {
        assert_eq!(self.library.read(&mut [0]).await.unwrap(), 0);
    }

    /// The library writes.
    async fn answer(&mut self, bytes: &[u8]) {
        self.library.write_all(bytes).await.unwrap();
        self.library.flush().await.unwrap();
    }

    /// The client reads this.
    async fn expect(&mut self, expected: &[u8]) {
        let mut bytes = vec![0; expected.len()];
        self.client.read_exact(&mut bytes).await.unwrap();
        assert_eq!(bytes, expected);
    }
}

// === impl Narrow ===

impl AsyncRead for Narrow {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Narrow {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let most = self.most.min(buf.len());
        Pin::new(&mut self.io).poll_write(cx, &buf[..most])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
        self.poll_write(cx, &all)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

// === tests ===

/// As Go's client: it does not close an idle connection by itself.
#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_woken_and_ends_as_soon_as_the_client_answers() {
    let mut rig = Rig::begun().await;
    let begin = Instant::now();
    let stopping = rig.stopping.clone();

    let library = tokio::spawn(async move {
        assert_eq!(rig.library.read(&mut [0]).await.unwrap(), 0, "it waited before the end had come");
        rig.library
    });
    tokio::task::yield_now().await;
    stopping.cancel();
    let mut farewell = vec![0; FAREWELL.len()];
    rig.client.read_exact(&mut farewell).await.unwrap();
    assert_eq!(farewell, FAREWELL);
    rig.client.write_all(PONG).await.unwrap();
    let mut library = library.await.unwrap();

    assert_eq!(begin.elapsed(), Duration::ZERO);
    let client = tokio::spawn(async move {
        let mut rest = Vec::new();
        rig.client.read_to_end(&mut rest).await.unwrap();
        rest
    });
    library.shutdown().await.unwrap();
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(client.await.unwrap()[9..13], [0; 4], "GOAWAY that names no request");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_crosses_the_goaway_is_answered() {
    let mut rig = Rig::begun().await;
    rig.say(REQUEST).await;
    rig.hear(REQUEST).await;

    rig.stopping.cancel();
    rig.say(&[NEXT_REQUEST, PONG].concat()).await;
    rig.hear(NEXT_REQUEST).await;
    rig.expect(FAREWELL).await;
    rig.answer(ANSWER).await;
    rig.answer(NEXT_ANSWER).await;

    rig.hear_the_end().await;
    rig.expect(ANSWER).await;
    rig.expect(NEXT_ANSWER).await;
}

/// The library looks for input, finds none, and writes: nobody but us can tell it to look again.
#[tokio::test(start_paused = true)]
async fn the_last_answer_wakes_the_library() {
    let mut rig = Rig::begun().await;
    rig.stopping.cancel();
    rig.say(&[REQUEST, PONG].concat()).await;
    rig.hear(REQUEST).await;
    let mut unsent = Some(ANSWER);

    let end = std::future::poll_fn(|cx| {
        let mut byte = [0];
        let mut read = ReadBuf::new(&mut byte);
        let polled = Pin::new(&mut rig.library).poll_read(cx, &mut read);
        if let Some(answer) = unsent.take() {
            assert!(polled.is_pending());
            assert!(Pin::new(&mut rig.library).poll_write(cx, answer).is_ready());
        }
        polled
    });
    let begin = Instant::now();
    end.await.unwrap();

    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_answer_is_left_after_a_while() {
    let mut rig = Rig::begun().await;
    let begin = Instant::now();

    rig.stopping.cancel();
    rig.hear_the_end().await;
    assert_eq!(begin.elapsed().as_secs(), PATIENCE.as_secs());
    rig.library.shutdown().await.unwrap();

    let waited = begin.elapsed() - PATIENCE;
    assert!(waited >= LINGER && waited < LINGER * 2, "nor does it close its side: {waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_comes_behind_the_end_is_thrown_away() {
    let mut rig = Rig::begun().await;
    rig.stopping.cancel();
    rig.say(PONG).await;
    rig.hear_the_end().await;

    let client = async {
        let mut client = rig.client;
        client.write_all(&vec![0; 200_000]).await.unwrap();
        client.shutdown().await.unwrap();
        client
    };
    let (shut_down, _client) = tokio::join!(rig.library.shutdown(), client);

    shut_down.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_by_itself_is_not_waited_for() {
    let mut rig = Rig::begun().await;
    let begin = Instant::now();

    rig.library.shutdown().await.unwrap();
    rig.stopping.cancel();
    let mut rest = Vec::new();
    drop(rig.library);
    rig.client.read_to_end(&mut rest).await.unwrap();

    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert!(rest.is_empty());
}

/// Whatever the client takes at once, and however much fits on the way.
#[tokio::test(start_paused = true)]
async fn the_farewell_is_whole_when_little_can_be_written_at_once() {
    let data = [&[0, 4, 0, 0, 0, 0, 0, 0, 1][..], &[7; 1024]].concat();
    for (room, most) in [(1, 1), (7, 100), (16, 3), (100, 33), (5000, 5000)] {
        for vectored in [false, true] {
            let Rig { stopping, mut library, mut client } = Rig::new(room, most);
            let data = data.clone();
            let expected = [SETTINGS, &data, FAREWELL, ANSWER].concat();
            let writing = tokio::spawn(async move {
                library.write_all(SETTINGS).await.unwrap();
                library.write_all(&data[..500]).await.unwrap();
                stopping.cancel();
                let mut rest = [&data[500..], ANSWER].concat();
                while !rest.is_empty() {
                    let (first, second) = rest.split_at(rest.len() / 3);
                    let pieces = [IoSlice::new(first), IoSlice::new(second)];
                    let written =
                        if vectored { library.write_vectored(&pieces).await } else { library.write(&rest).await };
                    rest.drain(..written.unwrap());
                }
                library.flush().await.unwrap();
                library
            });

            let mut bytes = vec![0; expected.len()];
            client.read_exact(&mut bytes).await.unwrap();

            assert_eq!(bytes, expected, "{room} {most} {vectored}");
            drop(writing.await.unwrap());
        }
    }
}

/// A client that reads nothing keeps nobody from reading what it sends.
#[tokio::test(start_paused = true)]
async fn reading_goes_on_while_the_client_takes_nothing() {
    let mut rig = Rig::new(SETTINGS.len(), 100);
    rig.answer(SETTINGS).await;
    rig.stopping.cancel();

    rig.say(&PREFACE[..9]).await;
    rig.hear(&PREFACE[..9]).await;

    rig.expect(SETTINGS).await;
    let (mut byte, mut farewell) = ([0], [0; FAREWELL.len()]);
    tokio::select! {
        biased;
        read = rig.library.read(&mut byte) => panic!("{read:?}"),
        read = rig.client.read_exact(&mut farewell) => drop(read.unwrap()),
    }
}

/// The library would take on requests for ever, and keep their answers.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_the_client_takes_nothing() {
    let mut rig = Rig::new(64, 64);
    rig.say(PREFACE).await;
    rig.hear(PREFACE).await;
    let answers = [SETTINGS, &ANSWER.repeat(7)].concat();
    let written = rig.library.write(&answers[..64]).await.unwrap();
    let mut jammed = Box::pin(rig.library.write_all(&answers[written..]));
    assert!(futures::poll!(&mut jammed).is_pending());
    drop(jammed);

    rig.say(SETTINGS).await;
    let (mut library, mut client) = (rig.library, rig.client);
    let mut bytes = [0; SETTINGS.len()];
    let reading = tokio::spawn(async move {
        // As the library does: it reads, then writes.
        let mut rest = &answers[written..];
        std::future::poll_fn(|cx| {
            let read = Pin::new(&mut library).poll_read(cx, &mut ReadBuf::new(&mut bytes));
            if !rest.is_empty()
                && let Poll::Ready(written) = Pin::new(&mut library).poll_write(cx, rest)
            {
                rest = &rest[written.unwrap()..];
            }
            read
        })
        .await
        .unwrap();
        bytes
    });
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!reading.is_finished());
    client.read_exact(&mut [0; 64]).await.unwrap();

    assert_eq!(reading.await.unwrap(), SETTINGS);
}
