//! Real sockets: an API server and proxies on 127.0.0.1. Each proxy maps `api.test` to the API server, without DNS.
//! `testdata`: a CA whose key was deleted, and certificates for `api.test` and for `127.0.0.1` with the same key.

use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::client::Body;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{Connection, ProxySettings, read_kubeconfig};

mod limits;

const CA: &[u8] = include_bytes!("testdata/ca.pem");
const KEY: &[u8] = include_bytes!("testdata/key.pem");
const API: &[u8] = include_bytes!("testdata/api.pem");
const PROXY: &[u8] = include_bytes!("testdata/proxy.pem");

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n";

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Io for S {}

type Reports = Arc<Mutex<Vec<String>>>;

struct Listening {
    address: SocketAddr,
    reported: Reports,
}

impl Listening {
    fn reported(&self) -> Vec<String> {
        self.reported.lock().unwrap().clone()
    }
}

/// Serves each connection in a task, until the test ends. Errors of connections are ignored: the client reports them.
async fn listen<F>(serve: impl Fn(tokio::net::TcpStream, Reports) -> F + Send + 'static) -> Listening
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let reported = Reports::default();
    let record = reported.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, record.clone()));
        }
    });
    Listening { address, reported }
}

fn tls(certificate: &[u8], protocols: &[&[u8]]) -> TlsAcceptor {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>().unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

async fn api_server(protocols: &'static [&'static [u8]]) -> Listening {
    let acceptor = tls(API, protocols);
    listen(move |stream, reported| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream = acceptor.accept(stream).await?;
            answer(&mut stream, &reported).await
        }
    })
    .await
}

async fn plain_api_server() -> Listening {
    listen(|mut stream, reported| async move { answer(&mut stream, &reported).await }).await
}

async fn answer(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), reported: &Reports) -> io::Result<()> {
    let mut start = [0; HTTP2.len()];
    stream.read_exact(&mut start).await?;
    if start == HTTP2 {
        reported.lock().unwrap().push("HTTP/2".to_owned());
        return Ok(());
    }
    let rest = head(stream).await?;
    let request = format!("{}{rest}", String::from_utf8_lossy(&start));
    reported.lock().unwrap().push(request.lines().next().unwrap_or_default().to_owned());
    stream.write_all(ANSWER).await?;
    stream.shutdown().await
}

async fn connect_proxy(certificate: Option<&[u8]>, server: SocketAddr) -> Listening {
    let acceptor = certificate.map(|certificate| tls(certificate, &[]));
    listen(move |stream, reported| {
        let acceptor = acceptor.clone();
        async move {
            let mut stream: Box<dyn Io> = match acceptor {
                Some(acceptor) => Box::new(acceptor.accept(stream).await?),
                None => Box::new(stream),
            };
            let head = head(&mut stream).await?;
            reported.lock().unwrap().push(head);
            let mut server = tokio::net::TcpStream::connect(server).await?;
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            copy_bidirectional(&mut stream, &mut server).await.map(drop)
        }
    })
    .await
}

async fn refusing_proxy() -> Listening {
    listen(|mut stream, reported| async move {
        let head = head(&mut stream).await?;
        reported.lock().unwrap().push(head);
        stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await
    })
    .await
}

#[derive(Clone, Copy)]
enum Door {
    Open,
    /// The password is `sesame`.
    Locked,
    LeadsNowhere,
    /// Does not speak SOCKS.
    Painted,
}

/// A SOCKS 5 proxy; it records the offered methods, `user:password`, and the requested server.
async fn socks_proxy(door: Door, server: SocketAddr) -> Listening {
    listen(move |mut stream, reported| async move {
        let reported = |text: String| reported.lock().unwrap().push(text);
        assert_eq!(stream.read_u8().await?, 5);
        let methods = counted(&mut stream).await?;
        reported(format!("methods {methods:?}"));
        if let Door::Painted = door {
            return stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
        if let Door::Locked = door {
            stream.write_all(&[5, if methods.contains(&2) { 2 } else { 255 }]).await?;
            assert_eq!(stream.read_u8().await?, 1);
            let (user, password) = (counted(&mut stream).await?, counted(&mut stream).await?);
            reported(format!("{}:{}", String::from_utf8_lossy(&user), String::from_utf8_lossy(&password)));
            stream.write_all(&[1, u8::from(password != b"sesame")]).await?;
        } else {
            stream.write_all(&[5, 0]).await?;
        }
        let mut request = [0; 4];
        stream.read_exact(&mut request).await?;
        assert_eq!(request[..3], [5, 1, 0]);
        let host = match request[3] {
            1 => std::net::Ipv4Addr::from_bits(stream.read_u32().await?).to_string(),
            3 => format!("name {}", String::from_utf8_lossy(&counted(&mut stream).await?)),
            _ => std::net::Ipv6Addr::from_bits(stream.read_u128().await?).to_string(),
        };
        let port = stream.read_u16().await?;
        reported(format!("{host} port {port}"));
        if let Door::LeadsNowhere = door {
            return stream.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        }
        let mut server = tokio::net::TcpStream::connect(server).await?;
        stream.write_all(&[5, 0, 0, 3, 4, b'h', b'e', b'r', b'e', 0, 1]).await?;
        copy_bidirectional(&mut stream, &mut server).await.map(drop)
    })
    .await
}

async fn counted(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn connection(server: &str, proxy_url: &str) -> Connection {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], \
         clusters: [{{name: k, cluster: {{server: '{server}', proxy-url: '{proxy_url}', certificate-authority: ca.pem}}}}], \
         users: [{{name: u, user: {{token: t}}}}]}}"
    );
    std::fs::write(path("ca.pem"), CA).unwrap();
    std::fs::write(path("kubeconfig"), kubeconfig).unwrap();
    let path = path("kubeconfig");
    Connection::of_kubeconfig(&path, read_kubeconfig(&path).unwrap(), &ProxySettings::default()).unwrap()
}

async fn get(connection: &Connection) -> Result<String, String> {
    get_with(&connection.client("test").unwrap()).await
}

async fn get_with(client: &kube::Client) -> Result<String, String> {
    let request = Request::get("/version").body(Body::empty()).unwrap();
    let answer: Result<Response<Body>, _> = client.send(request).await;
    let body = match answer {
        Ok(answer) => answer.into_body().collect_bytes().await,
        Err(error) => return Err(text(&error)),
    };
    Ok(String::from_utf8(body.unwrap().to_vec()).unwrap())
}

fn text(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// spec 70 §8.1
#[tokio::test]
async fn tls_goes_end_to_end_through_an_http_proxy() {
    let server = api_server(&[b"http/1.1"]).await;
    let proxy = connect_proxy(None, server.address).await;

    let answer = get(&connection("https://api.test:6443", &format!("http://{}", proxy.address))).await;

    assert_eq!(answer.as_deref(), Ok("ok"));
    assert_eq!(proxy.reported(), ["CONNECT api.test:6443 HTTP/1.1\r\nHost: api.test:6443\r\n\r\n"]);
    assert_eq!(server.reported(), ["GET /version HTTP/1.1"]);
}

/// spec 70 §8.1
#[tokio::test]
async fn http2_goes_through_a_proxy_too() {
    let server = api_server(&[b"h2", b"http/1.1"]).await;
    let http = connect_proxy(None, server.address).await;
    let https = connect_proxy(Some(PROXY), server.address).await;
    let socks = socks_proxy(Door::Open, server.address).await;

    for proxy_url in [
        format!("http://{}", http.address),
        format!("https://{}", https.address),
        format!("socks5://{}", socks.address),
    ] {
        get(&connection("https://api.test", &proxy_url)).await.unwrap_err();

        assert_eq!(server.reported.lock().unwrap().drain(..).next().as_deref(), Some("HTTP/2"), "{proxy_url}");
    }
}

/// spec 70 §8.1
#[tokio::test]
async fn proxy_user_and_password_become_a_header() {
    let server = api_server(&[b"http/1.1"]).await;
    let proxy = connect_proxy(None, server.address).await;

    let answer = get(&connection("https://api.test", &format!("http://me:open%20sesame@{}", proxy.address))).await;

    assert_eq!(answer.as_deref(), Ok("ok"));
    let expected = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\
                    Proxy-Authorization: Basic bWU6b3BlbiBzZXNhbWU=\r\n\r\n";
    assert_eq!(proxy.reported(), [expected]);
}

/// spec 70 §8.1
#[tokio::test]
async fn https_proxy_is_verified_with_the_ca_of_the_connection() {
    let server = api_server(&[b"http/1.1"]).await;
    let proxy = connect_proxy(Some(PROXY), server.address).await;
    let other = connect_proxy(Some(API), server.address).await; // its certificate is for another name

    let answer = get(&connection("https://api.test", &format!("https://me@{}", proxy.address))).await;
    let error = get(&connection("https://api.test", &format!("https://{}", other.address))).await.unwrap_err();

    assert_eq!(answer.as_deref(), Ok("ok"));
    let expected = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic bWU6\r\n\r\n";
    assert_eq!(proxy.reported(), [expected]);
    assert!(error.contains("invalid peer certificate"), "{error}");
    assert!(other.reported().is_empty());
}

/// spec 70 §8.1
#[tokio::test]
async fn proxy_cannot_pose_as_the_api_server() {
    let impostor = connect_proxy(Some(PROXY), "127.0.0.1:1".parse().unwrap()).await;
    let proxy = connect_proxy(None, impostor.address).await;

    let error = get(&connection("https://api.test", &format!("http://{}", proxy.address))).await.unwrap_err();

    assert!(error.contains("invalid peer certificate"), "{error}");
}

/// spec 70 §8.1
#[tokio::test]
async fn plain_http_server_is_reached_through_a_proxy_at_its_port() {
    let server = plain_api_server().await;
    let http = connect_proxy(None, server.address).await;
    let socks = socks_proxy(Door::Open, server.address).await;

    let over_http = get(&connection("http://api.test", &format!("http://{}", http.address))).await;
    let over_socks = get(&connection("http://api.test", &format!("socks5://{}", socks.address))).await;

    assert_eq!((over_http.as_deref(), over_socks.as_deref()), (Ok("ok"), Ok("ok")));
    assert_eq!(http.reported(), ["CONNECT api.test:80 HTTP/1.1\r\nHost: api.test:80\r\n\r\n"]);
    assert_eq!(socks.reported(), ["methods [0]", "name api.test port 80"]);
}

/// spec 70 §8.1
#[tokio::test]
async fn socks_proxy_resolves_the_name() {
    let server = api_server(&[b"http/1.1"]).await;
    let proxy = socks_proxy(Door::Open, server.address).await;

    let answer = get(&connection("https://api.test:6443", &format!("socks5://{}", proxy.address))).await;

    assert_eq!(answer.as_deref(), Ok("ok"));
    assert_eq!(proxy.reported(), ["methods [0]", "name api.test port 6443"]);
    assert_eq!(server.reported(), ["GET /version HTTP/1.1"]);
}

/// spec 70 §8.1
#[tokio::test]
async fn socks_proxy_gets_addresses_as_addresses() {
    let server = plain_api_server().await;
    let proxy = socks_proxy(Door::Open, server.address).await;
    let proxy_url = format!("socks5://{}", proxy.address);

    for (server, asked) in [("http://192.0.2.1:8", "192.0.2.1 port 8"), ("http://[2001:db8::1]", "2001:db8::1 port 80")]
    {
        assert_eq!(get(&connection(server, &proxy_url)).await.as_deref(), Ok("ok"));

        assert_eq!(proxy.reported().last().map(String::as_str), Some(asked));
    }
}

/// spec 70 §8.1
#[tokio::test]
async fn socks_proxy_is_offered_user_and_password() {
    let server = api_server(&[b"http/1.1"]).await;
    let locked = socks_proxy(Door::Locked, server.address).await;
    let open = socks_proxy(Door::Open, server.address).await;
    let proxy_url = |proxy: &Listening| format!("socks5://m%65:sesame@{}", proxy.address);

    let asked = get(&connection("https://api.test", &proxy_url(&locked))).await;
    let not_asked = get(&connection("https://api.test", &proxy_url(&open))).await;

    assert_eq!((asked.as_deref(), not_asked.as_deref()), (Ok("ok"), Ok("ok")));
    assert_eq!(locked.reported(), ["methods [0, 2]", "me:sesame", "name api.test port 443"]);
    assert_eq!(open.reported(), ["methods [0, 2]", "name api.test port 443"]);
}

/// spec 70 §8.1
#[tokio::test]
async fn proxy_errors_name_the_proxy_and_its_answer_but_no_password() {
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let refusing = refusing_proxy().await.address;
    let closed = socks_proxy(Door::LeadsNowhere, nowhere).await.address;
    let locked = socks_proxy(Door::Locked, nowhere).await.address;
    let painted = socks_proxy(Door::Painted, nowhere).await.address;

    for (scheme, address, text) in [
        ("http", refusing, "the answer to CONNECT is 407 Proxy Authentication Required; "),
        ("http", nowhere, "refused"),
        ("socks5", nowhere, "refused"),
        ("socks5", closed, "the SOCKS proxy refused: host unreachable"),
        ("socks5", locked, "the SOCKS proxy does not accept the user and the password"),
        ("socks5", painted, "the proxy does not speak SOCKS 5"),
    ] {
        let error =
            get(&connection("https://api.test", &format!("{scheme}://me:pass123@{address}"))).await.unwrap_err();

        assert!(error.contains(&format!("cannot get through the proxy {scheme}://{address}: ")), "{error}");
        assert!(error.contains(text), "{text}: {error}");
        assert!(!error.contains("pass123"), "{error}");
    }
}

/// spec 70 §8.1
#[tokio::test]
async fn proxy_of_commands_is_the_same() {
    let server = api_server(&[b"http/1.1"]).await;
    let proxy = socks_proxy(Door::Locked, server.address).await;
    let mut config = kube::Config::new("https://api.test:6443".parse().unwrap());
    config.root_cert = Some(CertificateDer::pem_slice_iter(CA).map(|it| it.unwrap().to_vec()).collect());
    let variable = format!("socks5h://me:sesame@{}", proxy.address);
    let proxies = ProxySettings::of(&|name| (name == "HTTPS_PROXY").then(|| variable.clone()));

    let chosen = proxies.choose(&config.cluster_url, None).unwrap();
    let answer = get_with(&crate::client_through(chosen.as_ref(), config).unwrap()).await;

    assert_eq!(answer.as_deref(), Ok("ok"));
    assert_eq!(proxy.reported(), ["methods [0, 2]", "me:sesame", "name api.test port 6443"]);
}
