//! Which proxy leads to a server (spec 70 §8.1, table "Proxy"). Pure: the environment is an argument.
//! The rules are those of Go. `hyper_util`'s matcher (`client::proxy::matcher`) follows curl: `.example.org` includes
//! the domain itself, ports and `*.` are unknown, case matters, loopback goes through the proxy.

use http::Uri;

pub(crate) use self::connector::{ServerStream, connector};
use self::no_proxy::NoProxy;
pub use self::{commands::client_through, given::GivenProxy};

/// A proxy. Its texts contain neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    kind: ProxyKind,
    /// The address to connect to: `http[s]://host:port`, without user; `http` for SOCKS, too.
    address: Uri,
    /// Credentials for the proxy; the password may be empty.
    user: Option<User>,
}

#[derive(Clone, PartialEq, Eq)]
struct User {
    name: Vec<u8>,
    password: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyKind {
    Http,
    Https,
    Socks5,
}

/// The proxies of the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxySettings {
    https: Option<Proxy>,
    http: Option<Proxy>,
    never: NoProxy,
    /// Variables with an invalid value.
    ignored: Vec<&'static str>,
}

/// An invalid `proxy-url`. The texts are those of Go, without user and password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProxy {
    /// Another scheme, or none.
    #[error("unsupported scheme {0:?}, must be http, https, or socks5")]
    Scheme(String),
    /// Not a URL.
    #[error("could not parse: {0}")]
    Unparsable(String),
}

impl ProxySettings {
    /// Reads the variables: each in upper case first, then in lower case; empty is unset. An invalid value is like an
    /// unset one, but hides the variable in lower case, as in Go.
    pub fn of(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| Some((name, env(name).filter(|value| !value.is_empty())?)))
        };
        let mut ignored = Vec::new();
        let mut proxy = |names| {
            let (name, value) = first(names)?;
            let proxy = Proxy::of_variable(&value);
            if proxy.is_none() {
                ignored.push(name);
            }
            proxy
        };
        let https = proxy(["HTTPS_PROXY", "https_proxy"]);
        let http = proxy(["HTTP_PROXY", "http_proxy"]);
        let never = first(["NO_PROXY", "no_proxy"]).map(|(_, list)| NoProxy::of(&list)).unwrap_or_default();
        Self { https, http, never, ignored }
    }

    /// Returns the variables that count as unset because their value is invalid.
    pub fn ignored(&self) -> &[&'static str] {
        &self.ignored
    }

    /// Returns the proxy that leads to a server. A `proxy-url` that is not empty overrides the environment. Fails if it
    /// is not a URL, or has another scheme than `http`, `https` and `socks5`.
    pub fn choose(&self, server: &Uri, proxy_url: Option<&str>) -> Result<Option<Proxy>, BadProxy> {
        if let Some(given) = proxy_url.filter(|given| !given.is_empty()) {
            return Proxy::of_kubeconfig(given).map(Some);
        }
        let proxy = if is_plain(server) { &self.http } else { &self.https };
        let host = server.host().unwrap_or_default();
        Ok(proxy.clone().filter(|_| !self.never.contains(host, port(server))))
    }
}

impl Proxy {
    /// Whether its certificate is verified.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.kind == ProxyKind::Https
    }

    fn of_variable(value: &str) -> Option<Self> {
        let full = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let (scheme, rest) = full.split_once("://")?;
        let kind = match &*scheme.to_ascii_lowercase() {
            "socks5h" => ProxyKind::Socks5,
            scheme => ProxyKind::of_scheme(scheme)?,
        };
        Self::of_parts(kind, rest)
    }

    fn of_kubeconfig(value: &str) -> Result<Self, BadProxy> {
        let unparsable = || BadProxy::Unparsable(masked(value));
        let (scheme, rest) = match value.split_once("://") {
            Some(parts) => parts,
            None if value.contains('@') => return Err(unparsable()),
            // Go takes the text before the first colon for the scheme, and a value without colon for a path
            None => value.split_once(':').unwrap_or_default(),
        };
        if value.contains(':') && !is_scheme(scheme) {
            return Err(unparsable());
        }
        let scheme = scheme.to_ascii_lowercase();
        let kind = ProxyKind::of_scheme(&scheme).ok_or(BadProxy::Scheme(scheme))?;
        if !value.contains("://") {
            return Err(unparsable());
        }
        Self::of_parts(kind, rest).ok_or_else(unparsable)
    }

    /// `rest` follows `://`. With an `@` in the path, the apparent host is a user and password that lack encoding.
    fn of_parts(kind: ProxyKind, rest: &str) -> Option<Self> {
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('@') {
            return None;
        }
        let (user, server) = match authority.rsplit_once('@') {
            Some((user, server)) => (Some(user).filter(|user| !user.is_empty()), server),
            None => (None, authority),
        };
        let bare = server.find(']').map_or(server, |end| &server[end..]);
        let port = bare.split_once(':').map_or("", |(_, port)| port);
        let host = server.strip_suffix(port).unwrap_or(server).trim_end_matches(':');
        let port: u16 = if port.is_empty() { kind.port() } else { digits(port)? };
        let scheme = if kind == ProxyKind::Https { "https" } else { "http" };
        if host.is_empty() {
            return None;
        }
        let address = format!("{scheme}://{host}:{port}").parse().ok()?;
        let user = match user {
            Some(user) => Some(User::of(user)?),
            None => None,
        };
        Some(Self { kind, address, user })
    }
}

impl std::fmt::Display for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = self.address.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{address}", self.kind.scheme())
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl ProxyKind {
    fn of_scheme(scheme: &str) -> Option<Self> {
        [Self::Http, Self::Https, Self::Socks5].into_iter().find(|kind| kind.scheme() == scheme)
    }

    fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 => 1080,
        }
    }
}

impl User {
    /// Parses `name[:password]` of a URL; `None` if it has a character that URLs do not allow there.
    fn of(text: &str) -> Option<Self> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !text.bytes().all(allowed) {
            return None;
        }
        let (name, password) = text.split_once(':').unwrap_or((text, ""));
        Some(Self { name: decoded(name)?, password: decoded(password)? })
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let byte = if byte == b'%' { u8::try_from(digit()? * 16 + digit()?).ok()? } else { byte };
        decoded.push(byte);
    }
    Some(decoded)
}

/// Parses a number without a sign.
fn digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Replaces possible user and password: everything before the last `@`.
fn masked(value: &str) -> String {
    let Some((before, after)) = value.rsplit_once('@') else { return value.to_owned() };
    let scheme = before.split_once("://").map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
    scheme.map_or_else(|| format!("***@{after}"), |scheme| format!("{scheme}://***@{after}"))
}

fn is_plain(server: &Uri) -> bool {
    server.scheme() == Some(&http::uri::Scheme::HTTP)
}

fn port(server: &Uri) -> u16 {
    server.port_u16().unwrap_or(if is_plain(server) { 80 } else { 443 })
}

mod commands;
mod connector;
mod given;
mod no_proxy;
mod socks;
#[cfg(test)]
mod tests;
mod tunnel;
