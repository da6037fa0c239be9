//! A client of SOCKS version 5 (RFC 1928) over TCP, with user and password (RFC 1929). Unlike `hyper_util`'s client it
//! also offers to do without the password, as Go does: many proxies do not ask for it.

use std::{io, net::IpAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::User;

const VERSION: u8 = 5;
const PASSWORD_VERSION: u8 = 1;
const NO_PASSWORD: u8 = 0;
const PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Makes the proxy at the other end of `stream` connect to a server. The proxy resolves names. Fails if the connection
/// breaks, or the proxy refuses or does not speak SOCKS 5; texts have neither user nor password.
pub(super) async fn connect<S>(stream: &mut S, host: &str, port: u16, user: Option<&User>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let methods: &[u8] = if user.is_some() { &[NO_PASSWORD, PASSWORD] } else { &[NO_PASSWORD] };
    stream.write_all(&counted(&[VERSION], methods)?).await?;
    match (read::<2, _>(stream).await?, user) {
        ([VERSION, NO_PASSWORD], _) => {}
        ([VERSION, PASSWORD], Some(user)) => log_in(stream, user).await?,
        ([VERSION, _], _) => return Err(io::Error::other("the SOCKS proxy requires another authentication method")),
        _ => return Err(io::Error::other("the proxy does not speak SOCKS 5")),
    }

    let mut request = match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V4(address)) => [&[VERSION, CONNECT, 0, IPV4][..], &address.octets()].concat(),
        Ok(IpAddr::V6(address)) => [&[VERSION, CONNECT, 0, IPV6][..], &address.octets()].concat(),
        Err(_) => counted(&[VERSION, CONNECT, 0, NAME], host.as_bytes())?,
    };
    request.extend(port.to_be_bytes());
    stream.write_all(&request).await?;
    let [version, code, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err(io::Error::other("the proxy does not speak SOCKS 5"));
    }
    if code != 0 {
        return Err(io::Error::other(format!("the SOCKS proxy refused: {}", refusal(code))));
    }
    // The proxy's outer address does not matter, but must be read.
    let address = match kind {
        IPV4 => 4,
        IPV6 => 16,
        NAME => usize::from(stream.read_u8().await?),
        _ => return Err(io::Error::other("the SOCKS proxy answered with an unknown type of address")),
    };
    let mut rest = vec![0; address + 2];
    stream.read_exact(&mut rest).await?;
    Ok(())
}

async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, user: &User) -> io::Result<()> {
    let request = counted(&counted(&[PASSWORD_VERSION], &user.name)?, &user.password)?;
    stream.write_all(&request).await?;
    match read(stream).await? {
        [PASSWORD_VERSION, 0] => Ok(()),
        [PASSWORD_VERSION, _] => Err(io::Error::other("the SOCKS proxy does not accept the user and the password")),
        _ => Err(io::Error::other("the SOCKS proxy answered the password in an unknown version")),
    }
}

/// Returns a text after its length, which is one byte.
fn counted(before: &[u8], text: &[u8]) -> io::Result<Vec<u8>> {
    let length = u8::try_from(text.len())
        .map_err(|_| io::Error::other("SOCKS names, users and passwords have at most 255 bytes"))?;
    Ok([before, &[length], text].concat())
}

async fn read<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn refusal(code: u8) -> &'static str {
    match code {
        1 => "general SOCKS server failure",
        2 => "connection not allowed by ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unknown code",
    }
}
