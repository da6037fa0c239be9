//! The check `webhook-server` of `/readyz` (spec 70 §6): a TLS connection to the own address.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use hyper_rustls::HttpsConnectorBuilder;
use kube::client::ConfigExt as _;
use process::{http::probes::Checks, logging::quietly};
use rustls::ClientConfig;
use tokio::{
    sync::Mutex as Turn,
    time::{Instant, timeout},
};
use tower::{Service as _, ServiceExt as _};

const NAME: &str = "webhook-server";
const TIME: Duration = Duration::from_secs(10);
/// Probes within this time share a connection.
const YOUNG: Duration = Duration::from_secs(1);

/// Whether the server can be reached. Cheap to clone; it exists before the server does.
#[derive(Clone, Default)]
pub struct Presence {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    address: OnceLock<SocketAddr>,
    seen: Mutex<Option<Seen>>,
    /// Held while a connection is being made; other probes wait for its result.
    trying: Turn<()>,
    #[cfg(test)]
    tries: std::sync::atomic::AtomicUsize,
}

#[derive(Clone)]
struct Seen {
    at: Instant,
    result: Result<(), String>,
}

impl Presence {
    /// Adds this check to the others.
    pub fn add_to(&self, checks: Checks) -> Checks {
        let (checked, refreshed) = (self.clone(), self.clone());
        let refresh = move || -> BoxFuture<'static, ()> {
            let presence = refreshed.clone();
            async move { presence.refresh().await }.boxed()
        };
        checks.with(NAME, Arc::new(move || checked.check())).refreshed_by(NAME, Arc::new(refresh))
    }

    pub(super) fn show(&self, address: SocketAddr) {
        self.shared.address.get_or_init(|| address);
    }

    #[cfg(test)]
    pub(super) fn tries(&self) -> usize {
        self.shared.tries.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), String> {
        if self.shared.address.get().is_none() {
            return Err("webhook server has not been started yet".to_owned());
        }
        let seen = self.seen().clone();
        match seen {
            Some(seen) => seen.result.map_err(|cause| format!("webhook server is not reachable: {cause}")),
            None => Err("webhook server is not reachable: not tried yet".to_owned()),
        }
    }

    async fn refresh(&self) {
        let Some(address) = self.shared.address.get() else { return };
        let asked = Instant::now();
        let _turn = self.shared.trying.lock().await;
        let is_young = |seen: &Seen| seen.at >= asked || seen.result.is_ok() && seen.at.elapsed() < YOUNG;
        if self.seen().as_ref().is_some_and(is_young) {
            return;
        }
        #[cfg(test)]
        self.shared.tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let result = match timeout(TIME, connect(*address)).await {
            Ok(result) => result,
            Err(_) => Err("no answer within 10s".to_owned()),
        };
        *self.seen() = Some(Seen { at: Instant::now(), result });
    }

    fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Presence").field(&self.shared.address.get()).finish()
    }
}

async fn connect(address: SocketAddr) -> Result<(), String> {
    static TRUSTS_ANYBODY: OnceLock<Result<ClientConfig, String>> = OnceLock::new();

    let tls = TRUSTS_ANYBODY.get_or_init(trusts_anybody).clone()?;
    let uri: http::Uri = format!("https://{}/", reachable(address)).parse().map_err(|error| format!("{error}"))?;
    let mut connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().build();
    let connected = async {
        connector.ready().await?;
        connector.call(uri).await
    };
    connected.await.map(drop).map_err(|error| causes(&*error))
}

/// Accepts any certificate: the check is only whether a server answers.
fn trusts_anybody() -> Result<ClientConfig, String> {
    let mut config = kube::Config::new(http::Uri::from_static("https://localhost/"));
    config.accept_invalid_certs = true;
    // Without this, the CAs of the system would be read, and an image has none (spec 71 §13).
    config.root_cert = Some(Vec::new());
    // The library warns about each such configuration.
    let mut tls = quietly(|| config.rustls_client_config()).map_err(|error| error.to_string())?;
    tls.alpn_protocols.clear(); // the connector sets them
    Ok(tls)
}

/// Returns the same port on loopback if the server listens on all interfaces.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let innermost = std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error);
    innermost.downcast_ref::<io::Error>().map_or_else(|| innermost.to_string(), ToString::to_string)
}
