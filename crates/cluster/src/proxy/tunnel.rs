//! A client of `CONNECT` (RFC 9110 §9.3.6). Unlike `hyper_util`'s client it reports the status of a refusing proxy.

use std::io;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::User;

const LONGEST_HEAD: usize = 8 << 10;

/// Makes the proxy at the other end of `stream` connect to a server. An IPv6 address has its brackets. Fails if the
/// connection breaks, or the proxy refuses or does not speak HTTP; texts have neither user nor password.
pub(super) async fn connect<S>(stream: &mut S, host: &str, port: u16, user: Option<&User>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let login = user.map(|user| format!("Proxy-Authorization: {}\r\n", user.basic())).unwrap_or_default();
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    match status(&head(stream).await?) {
        Some(StatusCode::OK) => Ok(()),
        Some(status) => Err(io::Error::other(format!(
            "the answer to CONNECT is {status}; the proxy's log or access rules may say why"
        ))),
        None => Err(io::Error::other("the proxy does not speak HTTP")),
    }
}

/// Reads up to the empty line, byte by byte, because the next bytes are the server's.
async fn head<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\n\r\n") && !head.ends_with(b"\n\n") {
        if head.len() == LONGEST_HEAD {
            return Err(io::Error::other("the head of the answer to CONNECT is longer than 8 KiB"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(head)
}

fn status(head: &[u8]) -> Option<StatusCode> {
    let [b'0' | b'1', b' ', rest @ ..] = head.strip_prefix(b"HTTP/1.")? else { return None };
    let (code, rest) = rest.split_at_checked(3)?;
    StatusCode::from_bytes(code).ok().filter(|_| rest.first().is_some_and(u8::is_ascii_whitespace))
}

impl User {
    fn basic(&self) -> String {
        format!("Basic {}", BASE64_STANDARD.encode([&self.name[..], b":", &self.password].concat()))
    }
}
