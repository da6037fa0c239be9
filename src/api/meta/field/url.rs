//! References as Go's `net/url` parses them (spec 62 §7.1 rules 8 to 11): which texts are refused, scheme and host. URL
//! crates refuse references, or read `reg.example.org:5000` as a host with a port; here it has a scheme.

/// Scheme and host of a reference; each may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference<'a> {
    /// In lower case, without the colon.
    pub scheme: String,
    /// With the port, without the user.
    pub host: &'a str,
}

/// Parses a reference, or returns why the text is none, without the text.
pub fn parse(text: &str) -> Result<Reference<'_>, &'static str> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("invalid control character in URL");
    }
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    check_escapes(fragment)?;
    let (scheme, rest) = scheme(text)?;
    let hierarchical = rest.split('?').next().unwrap_or_default();
    if !hierarchical.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(Reference { scheme: scheme.to_ascii_lowercase(), host: "" });
        }
        if hierarchical.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon");
        }
    }
    let has_authority = hierarchical.starts_with("//") && (!scheme.is_empty() || !hierarchical.starts_with("///"));
    let (host, path) = if has_authority {
        let authority = &hierarchical[2..];
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        (host_of(authority)?, path)
    } else {
        ("", hierarchical)
    };
    check_escapes(path)?;
    Ok(Reference { scheme: scheme.to_ascii_lowercase(), host })
}

/// Letters, then letters, digits and `+-.`, then a colon.
fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn host_of(authority: &str) -> Result<&str, &'static str> {
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if let Some(user) = user {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.bytes().all(allowed) {
            return Err("invalid userinfo");
        }
        check_escapes(user)?;
    }
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |at| &host[at..])
    };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(port.is_empty() || port.strip_prefix(':').is_some_and(is_port)) {
        return Err("invalid port after host");
    }
    check_host(host)?;
    Ok(host)
}

/// In a host, `%` may only escape what is not ASCII; in brackets, also the start of a zone.
fn check_host(host: &str) -> Result<(), &'static str> {
    let in_brackets = host.starts_with('[');
    let bytes = host.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let allowed = !byte.is_ascii()
            || byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=:[]<>\"".contains(byte)
            || *byte == b'%' && escaped(&bytes[at..]).is_some_and(|escaped| !escaped.is_ascii() || in_brackets);
        if !allowed {
            return Err("invalid character in host name");
        }
    }
    Ok(())
}

fn check_escapes(text: &str) -> Result<(), &'static str> {
    let bytes = text.as_bytes();
    let valid = bytes.iter().enumerate().all(|(at, byte)| *byte != b'%' || escaped(&bytes[at..]).is_some());
    if valid { Ok(()) } else { Err("invalid URL escape") }
}

fn escaped(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 62 §7.1, the table of URLs
    #[test]
    fn references_are_read_as_the_original_reads_them() {
        let table = [
            ("https://reg.example.org:5000", Some(("https", "reg.example.org:5000"))),
            ("HTTPS://u:p@reg.example.org/v2?a=b#c", Some(("https", "reg.example.org"))),
            ("reg.example.org", Some(("", ""))),
            ("reg.example.org:5000", Some(("reg.example.org", ""))),
            ("10.0.0.1:5000", None),
            ("//reg.example.org", Some(("", "reg.example.org"))),
            ("///path", Some(("", ""))),
            ("http://", Some(("http", ""))),
            ("", Some(("", ""))),
            (":80", None),
            ("http://[::1]:80", Some(("http", "[::1]:80"))),
            ("http://[::1", None),
            ("http://a:b", None),
            ("http://a b", None),
            ("http://a%20b", None),
            ("http://%C3%A4", Some(("http", "%C3%A4"))),
            ("http://a/%zz", None),
            ("http://a/%7", None),
            ("http://a\u{7f}", None),
            ("http://a\n", None),
            ("mirror://m.example.org", Some(("mirror", "m.example.org"))),
            ("a/b:c", Some(("", ""))),
            ("https://:5000", Some(("https", ":5000"))),
        ];
        for (text, expected) in table {
            let read = parse(text).ok();
            assert_eq!(read.as_ref().map(|read| (&*read.scheme, read.host)), expected, "{text:?}");
        }
    }
}
