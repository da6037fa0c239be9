//! Binding of TCP listeners; an empty address means all interfaces, IPv4 and IPv6 (spec 70 §3, trap 14).

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bind {
    /// IP address or host name; empty = all interfaces.
    pub address: String,
    /// TCP port; 0 = any free one (tests, demo).
    pub port: u16,
}

/// A server could not listen.
#[derive(Debug, thiserror::Error)]
#[error("error listening on {bind}: {cause}")]
pub struct ListenError {
    bind: Bind,
    #[source]
    cause: io::Error,
}

impl Bind {
    /// One listener for both families where the system allows it, two where it keeps them apart, one for IPv4 where
    /// there is no IPv6.
    ///
    /// # Errors
    ///
    /// The address is not one of this machine, the port is taken or reserved.
    pub(crate) fn listen(&self) -> Result<Vec<TcpListener>, ListenError> {
        let listeners = if self.address.is_empty() {
            listen_everywhere(self.port)
        } else {
            TcpListener::bind((self.address.as_str(), self.port)).map(|listener| vec![listener])
        };
        listeners.map_err(|cause| ListenError { bind: self.clone(), cause })
    }
}

impl std::fmt::Display for Bind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.address.contains(':') {
            write!(f, "[{}]:{}", self.address, self.port)
        } else {
            write!(f, "{}:{}", self.address, self.port)
        }
    }
}

fn listen_everywhere(port: u16) -> io::Result<Vec<TcpListener>> {
    let v4 = |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))) {
        Ok(v6) => {
            // Where sockets are dual stack, `[::]` took IPv4 too and this bind fails; else it adds IPv4.
            let also = v4(v6.local_addr()?.port()).ok();
            Ok([v6].into_iter().chain(also).collect())
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied) => Err(error),
        // No IPv6 on this machine.
        Err(_) => v4(port).map(|listener| vec![listener]),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn an_empty_address_is_reached_by_ipv4() {
        let listeners = Bind::default().listen().unwrap();
        let port = listeners[0].local_addr().unwrap().port();

        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn a_taken_port_is_named_in_the_error() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();

        let error = Bind { address: "127.0.0.1".to_owned(), port }.listen().unwrap_err();

        assert!(error.to_string().starts_with(&format!("error listening on 127.0.0.1:{port}: ")), "{error}");
    }

    #[test]
    fn addresses_are_written_as_in_a_url() {
        let text = |address: &str| Bind { address: address.to_owned(), port: 8081 }.to_string();

        assert_eq!([text(""), text("10.0.0.1"), text("::1")], [":8081", "10.0.0.1:8081", "[::1]:8081"]);
    }
}
