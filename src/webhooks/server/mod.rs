//! The HTTPS server of the webhooks (spec 50 §2.1, spec 70 §11). Every replica runs it, leader or not.
//! * `mod.rs`: binding, TLS, routes, shutdown; start at [`WebhookServer::start`]. [`http`](process::http) manages connections.
//! * `certificate.rs`: the serving certificate, which changes while connections stay open; `pair.rs` reads its files,
//!   `expiry.rs` says when its end is near.
//! * `handler.rs`: HTTP requests to messages and back; `load.rs`: limits; `actor.rs`: an actor per webhook and worker.
//! * `statistics.rs`: metrics, status and log of a webhook; `presence.rs`: the check `webhook-server` of `/readyz`.

mod actor;
mod certificate;
mod expiry;
mod handler;
mod load;
pub mod metrics;
mod pair;
mod presence;
mod statistics;

#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, path::PathBuf, rc::Rc, sync::Arc};

use actix_web::{App, HttpRequest, web};
use actor::{Desk, Webhook};
use certificate::Serving;
pub(crate) use expiry::SOON;
use kit::{Role, StatusRegistry};
use load::Load;
use metrics::WebhookServerMetrics;
pub(crate) use pair::expiration;
pub use pair::{CertificateError, read_certificate};
pub use presence::Presence;
use process::http::{
    connections::{Bounds, UNREAD, UnreadLimits},
    descriptors::{Descriptors, TLS_WORKERS},
    listen::Listeners,
    server::{Running, ServerParts as HttpParts},
};
use rustls::{ServerConfig, crypto::ring, server::NoServerSessionStorage, sign::CertifiedKey};
use tokio::{task::JoinHandle, time::Instant};

use super::{knowledge::Knowledge, registry::WebhookEntry};

/// The protocol of this server (RFC 7301; decision 42).
const PROTOCOL: &[u8] = b"http/1.1";

const PLACE: &str = "webhooks";

/// The parts of the server.
pub struct ServerParts {
    /// Where it listens.
    pub listeners: Listeners,
    /// The webhooks.
    pub webhooks: Vec<WebhookEntry>,
    /// The first serving certificate.
    pub certificate: CertifiedKey,
    /// The directory from which it is read again.
    pub certificate_directory: PathBuf,
    /// Counts requests and reads of the certificate.
    pub metrics: WebhookServerMetrics,
    /// Shows the webhooks.
    pub status_registry: StatusRegistry,
    /// Receives the address of the server.
    pub presence: Presence,
    /// Bound of the process's open files.
    pub descriptors: Descriptors,
}

/// A running server.
#[must_use = "without it the server cannot be stopped"]
pub struct WebhookServer {
    server: Running,
    #[cfg(test)]
    load: Load,
    follower: JoinHandle<()>,
    status_registry: StatusRegistry,
    places: Vec<String>,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The listener cannot be used.
    #[error("error starting the webhook server: {0}")]
    Start(#[from] io::Error),
    /// A defect: the TLS library has no protocol version.
    #[error("error starting the webhook server: {0}")]
    Tls(#[from] rustls::Error),
}

impl WebhookServer {
    /// Starts to answer with `knowledge` of the clusters, and returns at once. Call it inside an actix `System`. Fails if
    /// a listener cannot be used.
    pub fn start(parts: ServerParts, knowledge: Knowledge) -> Result<Self, ServerError> {
        let bounds = parts.descriptors.encrypted();
        Self::start_within(parts, knowledge, bounds, UNREAD)
    }

    fn start_within(
        parts: ServerParts,
        knowledge: Knowledge,
        bounds: Bounds,
        unread: UnreadLimits,
    ) -> Result<Self, ServerError> {
        let address = parts.listeners.address;
        let serving = Arc::new(Serving::new(parts.certificate));
        let tls = Arc::new(tls(serving.clone())?);
        let load = Load::default();
        let webhooks: Vec<_> = parts
            .webhooks
            .into_iter()
            .map(|entry| Arc::new(Webhook::new(entry, &parts.metrics, &parts.status_registry)))
            .collect();
        let mut places: Vec<_> = webhooks.iter().map(|webhook| webhook.statistics.place().to_owned()).collect();
        parts.status_registry.enter(PLACE, Role::Service).update(kit::Clock::system_wall(), |cell| {
            cell.activity = kit::Activity::Idle;
            cell.line = format!("{} webhooks on {address}", webhooks.len());
        });
        places.push(PLACE.to_owned());
        let http = HttpParts {
            name: "webhooks",
            listeners: parts.listeners,
            tls: Some(tls),
            workers: TLS_WORKERS,
            bounds,
            unread,
        };
        let server = serve(http, webhooks.into(), knowledge, load.clone())?;
        let follower = actix_web::rt::spawn(serving.follow(parts.certificate_directory, parts.metrics));
        parts.presence.show(address);
        tracing::info!(%address, "Serving webhooks");
        Ok(Self {
            server,
            #[cfg(test)]
            load,
            follower,
            status_registry: parts.status_registry,
            places,
        })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Stops accepting connections, answers the requests in flight, and returns when that is done or at `deadline`.
    pub async fn stop(self, deadline: Instant) {
        if !self.server.stop(deadline).await {
            tracing::warn!("Reviews were cut off at the end of the grace period");
        }
        self.follower.abort();
        self.places.iter().for_each(|place| self.status_registry.leave(place));
    }
}

fn tls(serving: Arc<Serving>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(serving);
    // A resumed session would not see a new certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(config)
}

fn serve(http: HttpParts, webhooks: Arc<[Arc<Webhook>]>, knowledge: Knowledge, load: Load) -> io::Result<Running> {
    // The actors of a worker live on its thread.
    let prepared = http.prepare(move || {
        let desks: Vec<_> = webhooks.iter().map(|webhook| Rc::new(Desk::open(webhook, &knowledge, &load))).collect();
        move || App::new().configure(|config| route(config, &desks)).default_service(web::to(handler::not_found))
    });
    Ok(prepared?.run())
}

fn route(config: &mut web::ServiceConfig, desks: &[Rc<Desk>]) {
    for desk in desks {
        let (desk, path) = (desk.clone(), desk.path());
        let handler = move |request: HttpRequest, payload: web::Payload| {
            let desk = desk.clone();
            async move { handler::answer(&desk, &request, payload).await }
        };
        config.service(web::resource(path).to(handler));
    }
}
