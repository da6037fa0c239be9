//! Binds TCP listeners; an empty address means all interfaces, IPv4 and IPv6 (spec 70 §3, trap 14).

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

/// Connections that the system completes before the server accepts them. With the 128 of the standard library, a burst
/// of connections drops the packets of others, which the peers repeat after a second. The system's own bound
/// (`net.core.somaxconn`) may be lower.
const BACKLOG: i32 = 4096;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListenAddress {
    /// IP address or host name; empty: all interfaces, IPv4 and IPv6.
    pub host: String,
    /// TCP port; 0: any free port (tests, demo). [`Self::listen`] fails for a port that does not exist.
    pub port: i64,
}

/// Listeners of one server.
#[derive(Debug)]
pub struct Listeners {
    /// The address of the first one, with its port.
    pub address: SocketAddr,
    /// One or two.
    pub listeners: Vec<TcpListener>,
}

/// A server could not listen.
#[derive(Debug, thiserror::Error)]
#[error("error listening on {address}: {cause}")]
pub struct ListenError {
    address: ListenAddress,
    #[source]
    cause: io::Error,
}

impl ListenAddress {
    /// Returns one listener for both families if the system allows it, two if it separates them, one for IPv4 only.
    pub fn listen(&self) -> Result<Listeners, ListenError> {
        self.try_listen().map_err(|cause| ListenError { address: self.clone(), cause })
    }

    fn try_listen(&self) -> io::Result<Listeners> {
        let no_port = |_| io::Error::new(io::ErrorKind::InvalidInput, "invalid port");
        let port = u16::try_from(self.port).map_err(no_port)?;
        let (first, second) = if self.host.is_empty() {
            listen_everywhere(port)?
        } else {
            (TcpListener::bind((self.host.as_str(), port))?, None)
        };
        let address = first.local_addr()?;
        let listeners: Vec<_> = [first].into_iter().chain(second).collect();
        for listener in &listeners {
            rustix::net::listen(listener, BACKLOG)?; // a second call changes the backlog of a listening socket
        }
        Ok(Listeners { address, listeners })
    }
}

impl std::fmt::Display for ListenAddress {
    /// `host:port`, with IPv6 addresses in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

fn listen_everywhere(port: u16) -> io::Result<(TcpListener, Option<TcpListener>)> {
    let v4 = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
        Ok(v6) => {
            // On dual-stack sockets `[::]` includes IPv4, and this bind fails; otherwise it adds IPv4.
            let also = v4(v6.local_addr()?.port()).ok();
            Ok((v6, also))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => Err(error),
        Err(_) => Ok((v4(port)?, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn listen_on_an_empty_address_includes_ipv4() {
        let listeners = ListenAddress::default().listen().unwrap();
        let port = listeners.address.port();

        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn listen_error_names_the_taken_port() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();

        let error = ListenAddress { host: "127.0.0.1".to_owned(), port: port.into() }.listen().unwrap_err();

        assert!(error.to_string().starts_with(&format!("error listening on 127.0.0.1:{port}: ")), "{error}");
    }

    /// spec 80 §5
    #[test]
    fn listen_error_names_a_port_that_does_not_exist() {
        for port in [-1, 65_536] {
            let error = ListenAddress { host: String::new(), port }.listen().unwrap_err();

            assert_eq!(error.to_string(), format!("error listening on :{port}: invalid port"));
        }
    }

    #[test]
    fn addresses_are_written_as_in_a_url() {
        let text = |host: &str| ListenAddress { host: host.to_owned(), port: 8081 }.to_string();

        assert_eq!([text(""), text("10.0.0.1"), text("::1")], [":8081", "10.0.0.1:8081", "[::1]:8081"]);
    }
}
