//! One request over one connection, plain or with TLS. With HTTP/1.0 the answer ends with the connection, unchunked.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpStream,
    path::Path,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: String,
}

/// Sends a POST of JSON if there is a body, else a GET; with TLS if there is an `authority` (a PEM file).
pub(crate) fn request(port: u16, path: &str, body: Option<&str>, authority: Option<&Path>) -> Result<Answer> {
    let stream = TcpStream::connect(("127.0.0.1", port)).with_context(|| format!("connect to port {port}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    match authority {
        None => exchange(stream, &request),
        Some(authority) => exchange(StreamOwned::new(tls(authority)?, stream), &request),
    }
}

/// Reads a stream of server-sent events up to the first `event`, and returns its data.
pub(super) fn first_event(port: u16, path: &str, event: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).with_context(|| format!("connect to port {port}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    let mut lines = BufReader::new(stream).lines();
    let mut is_wanted = false;
    while let Some(line) = lines.next().transpose()? {
        match line.split_once(": ") {
            Some(("event", name)) => is_wanted = name == event,
            Some(("data", data)) if is_wanted => return Ok(serde_json::from_str(data)?),
            _ => {}
        }
    }
    Err(anyhow!("the stream {path} ended before the event {event}"))
}

pub(super) fn certificate(port: u16, authority: &Path) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).with_context(|| format!("connect to port {port}"))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut connection = tls(authority)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    let chain = connection.peer_certificates().unwrap_or_default();
    Ok(chain.first().ok_or_else(|| anyhow!("port {port} presents no certificate"))?.to_vec())
}

fn tls(authority: &Path) -> Result<ClientConnection> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    roots.add(
        CertificateDer::from_pem_file(authority).map_err(|error| anyhow!("read {}: {error}", authority.display()))?,
    )?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok(ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> Result<Answer> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A server may close the connection without TLS close_notify.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error.into()),
        _ => {}
    }
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| anyhow!("no HTTP answer: {text}"))?;
    let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| anyhow!("no status: {head}"))?;
    Ok(Answer { code, body: body.to_owned() })
}

impl Answer {
    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body)
            .with_context(|| format!("{} with a body that is no JSON: {}", self.code, self.body))
    }
}
