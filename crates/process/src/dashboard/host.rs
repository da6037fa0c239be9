//! Which host names the dashboard answers to. A foreign page can let its own name resolve to the dashboard's address,
//! and then read the answers (DNS rebinding). Browsers send that name as `Host`, so names that a stranger may own are
//! refused.

use std::net::{Ipv4Addr, Ipv6Addr};

use actix_web::{
    Error, HttpResponse,
    body::{EitherBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{self, HeaderMap},
        uri::Authority,
    },
    middleware::Next,
};

/// Suffixes of names that only a cluster or a machine assigns.
const INTERNAL: [&str; 4] = ["svc", "cluster.local", "localhost", "internal"];
const REFUSED: &str = "the dashboard answers to IP addresses, localhost, names without a dot, and names that end with .svc, \
                       .cluster.local, .localhost or .internal; a proxy has to send one of these as Host\n";
const FOREIGN_PAGE: &str = "the dashboard does not answer to pages of other sites\n";

/// Refuses requests for other hosts with status 421, and those of other sites' pages with 403.
pub(crate) async fn check<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let header = request.headers().get(header::HOST).map(|value| value.to_str().is_ok_and(is_own));
    let target = request.uri().authority().map(|authority| is_own(authority.as_str()));
    if is_foreign_page(request.headers()) {
        let refused = HttpResponse::Forbidden().content_type("text/plain; charset=utf-8").body(FOREIGN_PAGE);
        return Ok(request.into_response(refused).map_into_right_body());
    }
    if header.unwrap_or(true) && target.unwrap_or(true) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    let refused = HttpResponse::build(StatusCode::MISDIRECTED_REQUEST)
        .insert_header((header::CONTENT_TYPE, "text/plain; charset=utf-8"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(REFUSED);
    Ok(request.into_response(refused).map_into_right_body())
}

/// Whether a page of another site sent the request. Browsers let such a page send requests whose answers it cannot read;
/// they would take the places of viewers. Links to the dashboard are fine.
fn is_foreign_page(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found.as_bytes() == value.as_bytes());
    is("sec-fetch-site", "cross-site") && !is("sec-fetch-mode", "navigate")
}

/// Whether no stranger can own the name in a `Host`.
fn is_own(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host);
    if !port.is_some_and(|port| port.is_empty() || port.starts_with(':')) {
        return false;
    }
    if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return ip.parse::<Ipv6Addr>().is_ok();
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let has_end = |end: &&str| name.strip_suffix(*end).is_some_and(|rest| rest.ends_with('.'));
    name.parse::<Ipv4Addr>().is_ok() || !name.contains('.') || INTERNAL.iter().any(has_end)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn requests_of_foreign_pages_are_refused_but_links_are_followed() {
        let headers = |site: &'static str, mode: &'static str| {
            let pairs = [("sec-fetch-site", site), ("sec-fetch-mode", mode)];
            let pair = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
            pairs.into_iter().map(pair).collect::<HeaderMap>()
        };
        assert!(is_foreign_page(&headers("cross-site", "no-cors")) && is_foreign_page(&headers("cross-site", "cors")));
        assert!(!is_foreign_page(&headers("cross-site", "navigate")));
        assert!(!is_foreign_page(&headers("same-origin", "cors")) && !is_foreign_page(&headers("none", "navigate")));
        assert!(!is_foreign_page(&HeaderMap::new()));
    }

    #[test]
    fn hosts_are_trusted_if_no_stranger_can_own_their_name() {
        for own in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "10.0.0.7:8080",
            "[::1]:8080",
            "[fd00::7]",
            "localhost",
            "LOCALHOST:8080",
            "a",
            "grm.localhost:1",
            "gardener-resource-manager.garden.svc:8080",
            "grm.garden.svc.cluster.local.:8080",
            "ip-10-0-0-7.ec2.internal:8080",
        ] {
            assert!(is_own(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evilsvc.example",
            "svc.example",
            "127.0.0.1.nip.io:8080",
            "[::1].evil.example",
            "",
            " ",
            "a b",
            "evil.example.",
        ] {
            assert!(!is_own(foreign), "{foreign}");
        }
    }
}
