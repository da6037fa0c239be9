//! Slow, silent and endless proxies and servers, and their error texts. In virtual time.

use tokio::{
    io::{DuplexStream, copy, duplex, sink, split},
    time::{Duration, Instant, pause, sleep, timeout},
};

use super::*;
use crate::proxy::connector::*;

async fn talk<F>(proxy: &str, answer: impl FnOnce(DuplexStream) -> F) -> Result<String, String>
where
    F: Future<Output = ()>,
{
    let settings = ProxySettings::default();
    let proxy = settings.choose(&Uri::from_static("https://api.test"), Some(proxy)).unwrap().unwrap();
    let (near, far) = duplex(1);
    let connecting = async {
        let stream = through(proxy, async { Ok(TokioIo::new(near)) }, Uri::from_static("https://api.test")).await;
        let mut rest = String::new();
        stream.map_err(|error| text(&*error))?.into_inner().read_to_string(&mut rest).await.unwrap();
        Ok(rest)
    };
    tokio::join!(connecting, answer(far)).0
}

async fn says(far: DuplexStream, answer: &[u8]) {
    let ((mut heard, mut said), mut nowhere) = (split(far), sink());
    let answering = async {
        said.write_all(answer).await.ok();
        said.shutdown().await.ok();
    };
    tokio::join!(answering, copy(&mut heard, &mut nowhere)).1.ok();
}

async fn goes_on(far: DuplexStream, answer: &[u8], gap: Duration) {
    let ((mut heard, mut said), mut nowhere) = (split(far), sink());
    let answering = async {
        while said.write_all(answer).await.is_ok() {
            sleep(gap).await;
        }
    };
    tokio::join!(answering, copy(&mut heard, &mut nowhere)).1.ok();
}

/// spec 70 §8.1
#[tokio::test(start_paused = true)]
async fn proxy_answers_may_come_byte_by_byte_before_the_servers_bytes() {
    let table: [(&str, &[u8]); _] = [
        ("http://me:sesame@p", b"HTTP/1.1 200 Connection established\r\nVia: p\r\n\r\nhello"),
        ("http://p", b"HTTP/1.0 200\n\nhello"),
        ("socks5://p", b"\x05\0\x05\0\0\x01\x0a\0\0\x01\0\x50hello"),
        ("socks5://me:sesame@p", b"\x05\x02\x01\0\x05\0\0\x03\x04here\0\x50hello"),
    ];

    for (proxy, answer) in table {
        let rest = talk(proxy, |far| says(far, answer)).await;

        assert_eq!(rest.as_deref(), Ok("hello"), "{proxy}");
    }
}

/// spec 70 §8.1
#[tokio::test(start_paused = true)]
async fn proxy_refusal_is_reported_with_its_status() {
    let no_http = "the proxy does not speak HTTP";
    let unknown = "the SOCKS proxy answered the password in an unknown version";
    let table: [(&str, &[u8], &str); _] = [
        ("http://p:1", b"HTTP/1.1 403 No!\r\n\r\n", "the answer to CONNECT is 403 Forbidden; the proxy's log "),
        ("http://p:1", b"HTTP/1.1 204 \r\n\r\n", "the answer to CONNECT is 204 No Content; "),
        ("http://p:1", b"HTTP/1.1 2000 OK\r\n\r\n", no_http),
        ("http://p:1", b"HTTP/2 200\r\n\r\n", no_http),
        ("http://p:1", b"HTTP/1.1 20\r\n\r\n", no_http),
        ("http://p:1", b"\r\n\r\n", no_http),
        ("http://p:1", b"HTTP/1.1 200 OK\r\n", "unexpected end of file"),
        ("socks5://me:x@p:1", b"\x05\x02\x01\x01", "the SOCKS proxy does not accept the user and the password"),
        ("socks5://me:x@p:1", b"\x05\x02\x05\0\x05\0\0\x01\x0a\0\0\x01\0\x50", unknown),
        ("socks5://me:x@p:1", b"\x05\x02\0\0\x05\0\0\x01\x0a\0\0\x01\0\x50", unknown),
    ];

    for (proxy, answer, expected) in table {
        let error = talk(proxy, |far| says(far, answer)).await.unwrap_err();

        let start = format!("cannot get through the proxy {}: {expected}", proxy.replace("me:x@", ""));
        assert!(error.starts_with(&start), "{start} | {error}");
    }
}

/// spec 70 §8.1
#[tokio::test(start_paused = true)]
async fn proxy_answer_head_has_a_limit() {
    let error = talk("http://p", |far| says(far, &[b'a'; 8 << 10])).await.unwrap_err();

    let expected = "the head of the answer to CONNECT is longer than 8 KiB";
    assert_eq!(error, format!("cannot get through the proxy http://p:80: {expected}"));
}

/// spec 70 §8.1
#[tokio::test(start_paused = true)]
async fn proxy_without_end_is_given_up() {
    for proxy in ["http://p:1", "socks5://p:1"] {
        let start = Instant::now();

        let silent = talk(proxy, says_nothing).await.unwrap_err();
        assert_eq!(silent, format!("cannot get through the proxy {proxy}: it does not answer in time"));
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    let start = Instant::now();
    let slow = talk("http://p:1", |far| goes_on(far, b"HTTP", Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(slow, "cannot get through the proxy http://p:1: it does not answer in time");
    assert_eq!(start.elapsed().as_secs(), 10);
}

async fn says_nothing(mut far: DuplexStream) {
    copy(&mut far, &mut sink()).await.ok();
}

/// A silent server. Time becomes virtual once it receives a byte: from then on only time advances.
async fn silent() -> Listening {
    listen(|mut stream, _| async move {
        stream.read_u8().await?;
        pause();
        std::future::pending().await
    })
    .await
}

async fn error_of(client: &kube::Client) -> String {
    let result = timeout(Duration::from_secs(60), get_with(client)).await;
    result.expect("the connection is given up").unwrap_err()
}

/// spec 70 §8.1
#[tokio::test]
async fn proxy_that_is_silent_ends_a_request_without_limit_and_is_named() {
    let proxy = silent().await.address;

    let error = error_of(&connection("https://api.test", &format!("http://{proxy}")).client("test").unwrap()).await;

    let expected = format!("cannot get through the proxy http://{proxy}: it does not answer in time");
    assert!(error.contains(&expected), "{error}");
}

/// spec 70 §8.3
#[tokio::test]
async fn tls_silence_of_a_server_is_given_up() {
    let server = silent().await.address;

    let error = error_of(&connection(&format!("https://{server}"), "").client("test").unwrap()).await;

    assert!(error.contains("the connection takes too long, TLS included"), "{error}");
}

/// spec 70 §8.3
#[tokio::test]
async fn proxy_commands_give_up_a_silent_server() {
    let server = silent().await;
    let proxy = connect_proxy(None, server.address).await.address;
    let (proxies, proxy_url) = (ProxySettings::default(), format!("http://{proxy}"));
    let mut config = kube::Config::new("https://api.test:6443".parse().unwrap());
    config.root_cert = Some(CertificateDer::pem_slice_iter(CA).map(|it| it.unwrap().to_vec()).collect());
    let chosen = proxies.choose(&config.cluster_url, Some(&proxy_url)).unwrap();

    let error = error_of(&crate::client_through(chosen.as_ref(), config).unwrap()).await;

    assert!(error.contains("the connection takes too long, TLS included"), "{error}");
}
