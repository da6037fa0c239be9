//! The HTTPS server of the webhooks (spec 50 §2.1, spec 70 §11): every replica has it, leader or not.
//!
//! * `mod.rs`: binding, limits, the end. Start reading at [`Bound::run`].
//! * `accept.rs`: from a TCP connection to its requests; `farewell.rs`: how an HTTP/2 connection takes leave of its client;
//!   `frames.rs`: the words for that, between the frames of the HTTP library.
//! * `certificate.rs`: the serving certificate, which changes while connections stay open; `pair.rs`: it and its key as files.
//! * `handler.rs`: from an HTTP request to a message and back; `load.rs`: how many at once, and who goes first when it is
//!   too much.
//! * `actor.rs`: one actor per webhook and worker thread: a review stays on its thread.
//! * `statistics.rs`: metrics, census and log of a webhook.
//! * `presence.rs`: the check `webhook-server` of `/readyz`.

mod accept;
mod actor;
mod certificate;
mod farewell;
mod frames;
mod handler;
mod load;
mod pair;
mod presence;
mod statistics;

#[cfg(test)]
mod tests;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_tls::accept::max_concurrent_tls_connect;
use actix_web::{
    App, HttpRequest,
    dev::{Server, ServerHandle},
    web,
};
use kit::{Census, Role};
use rustls::{ServerConfig, crypto::ring, server::NoServerSessionStorage, sign::CertifiedKey};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{knowledge::Knowledge, registry::Entry};
use crate::{
    http::{
        connections::{Connections, UNREAD, UnreadLimits},
        listen::{Bind, ListenError},
    },
    metrics::Metrics,
};
use actor::{Desk, Webhook};
use certificate::Serving;
use load::Load;
pub use pair::{CertificateError, read_certificate};
pub use presence::Presence;

/// Spec 70 §11.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// Spec 70 §11.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A client on the same continent needs a tenth of a second.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Threads. A review takes fractions of a millisecond; the second is there while the first has a large one.
const WORKERS: usize = 2;
/// Per worker; each costs some 50 KiB. Neither silent ones fill this up nor those that do not read: see [`Connections`].
const MAX_CONNECTIONS: usize = 1024;
/// Connections without a request: a hundred API servers with some each. Those of others that say nothing go first.
const MOST_SILENT: usize = 1024;

/// Place in the census.
const PLACE: &str = "webhooks";

/// What the server is made of.
pub struct ServerParts {
    /// The webhooks.
    pub webhooks: Vec<Entry>,
    /// What they know of the target cluster.
    pub knowledge: Knowledge,
    /// The pair to begin with.
    pub certificate: CertifiedKey,
    /// Where it is read again.
    pub certificate_directory: PathBuf,
    /// Counts requests and reads of the certificate.
    pub metrics: Metrics,
    /// Shows the webhooks.
    pub census: Census,
    /// Told where the server listens.
    pub presence: Presence,
}

/// A server that has its address and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listeners: Vec<TcpListener>,
    address: SocketAddr,
}

/// A running server.
#[must_use = "without it the server cannot be stopped"]
pub struct WebhookServer {
    address: SocketAddr,
    handle: ServerHandle,
    connections: Connections,
    /// What is under way, for tests.
    #[cfg(test)]
    load: Load,
    follower: JoinHandle<()>,
    /// Of connections whose clients do not read.
    closer: JoinHandle<()>,
    census: Census,
    places: Vec<String>,
}

/// Why the server cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The listener cannot be used.
    #[error("error starting the webhook server: {0}")]
    Start(#[from] io::Error),
    /// A defect: the TLS library has no protocol version.
    #[error("error starting the webhook server: {0}")]
    Tls(#[from] rustls::Error),
}

// === impl Bound ===

impl Bound {
    /// Takes the address.
    ///
    /// # Errors
    /// It is not one of this machine, or the port is taken.
    pub fn to(bind: &Bind) -> Result<Self, ServerError> {
        let listeners = bind.listen()?;
        let address = listeners[0].local_addr()?;
        Ok(Self { listeners, address })
    }

    /// Starts to answer. Call it inside an actix `System`; it returns at once.
    ///
    /// # Errors
    /// A listener cannot be used.
    pub fn run(self, parts: ServerParts) -> Result<WebhookServer, ServerError> {
        self.run_within(parts, UNREAD)
    }

    fn run_within(self, parts: ServerParts, unread: UnreadLimits) -> Result<WebhookServer, ServerError> {
        let serving = Arc::new(Serving::new(parts.certificate));
        let tls = Arc::new(tls(serving.clone())?);
        let (load, connections) = (Load::default(), Connections::within(MOST_SILENT, unread));
        let webhooks: Vec<_> = parts
            .webhooks
            .into_iter()
            .map(|entry| Arc::new(Webhook::new(entry, &parts.metrics, &parts.census)))
            .collect();
        let mut places: Vec<_> = webhooks.iter().map(|webhook| webhook.statistics.place().to_owned()).collect();
        parts.census.enter(PLACE, Role::Service).update(kit::Clock::system_wall(), |cell| {
            cell.activity = kit::Activity::Idle;
            cell.line = format!("{} webhooks on {}", webhooks.len(), self.address);
        });
        places.push(PLACE.to_owned());
        let server = serve(self.listeners, &tls, webhooks.into(), parts.knowledge, &load, &connections)?;
        let handle = server.handle();
        actix_web::rt::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(%error, "Webhook server ended");
            }
        });
        let follower = actix_web::rt::spawn(serving.follow(parts.certificate_directory, parts.metrics));
        let closer = actix_web::rt::spawn(connections.clone().close_unread());
        parts.presence.show(self.address);
        tracing::info!(address = %self.address, "Serving webhooks");
        Ok(WebhookServer {
            address: self.address,
            handle,
            connections,
            #[cfg(test)]
            load,
            follower,
            closer,
            census: parts.census,
            places,
        })
    }
}

// === impl WebhookServer ===

impl WebhookServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no connection any more, ends each as soon as no request is under way on it, and ends when there is none, or at
    /// `deadline`. HTTP/2 clients are told at once, and what they sent until they know is answered; HTTP/1 clients learn of it
    /// with their next answer, or see the connection closed while it is idle.
    pub async fn stop(self, deadline: Instant) {
        self.handle.pause().await;
        self.connections.stop();
        if timeout_at(deadline, self.connections.closed()).await.is_err() {
            tracing::warn!("Reviews were cut off at the end of the grace period");
        }
        self.follower.abort();
        self.closer.abort();
        self.handle.stop(false).await;
        self.places.iter().for_each(|place| self.census.leave(place));
    }
}

// === pieces ===

fn tls(serving: Arc<Serving>) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(serving);
    // A session that is taken up again would not see a new certificate.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = accept::PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

fn serve(
    listeners: Vec<TcpListener>,
    tls: &Arc<ServerConfig>,
    webhooks: Arc<[Arc<Webhook>]>,
    knowledge: Knowledge,
    load: &Load,
    connections: &Connections,
) -> io::Result<Server> {
    // Those who do not finish their handshake must not keep others from beginning theirs.
    max_concurrent_tls_connect(MAX_CONNECTIONS);
    let mut server = Server::build()
        .workers(WORKERS)
        .max_concurrent_connections(MAX_CONNECTIONS)
        .shutdown_timeout(1)
        .disable_signals();
    let (load, tls, connections) = (load.clone(), tls.clone(), connections.clone());
    // Called once in each worker: its actors live on its thread.
    let service = move || {
        actix_web::rt::spawn(connections.clone().close_when_stopping());
        let desks: Vec<_> = webhooks.iter().map(|webhook| Rc::new(Desk::open(webhook, &knowledge, &load))).collect();
        let app =
            move || App::new().configure(|config| route(config, &desks)).default_service(web::to(handler::not_found));
        accept::service(app, tls.clone(), connections.clone())
    };
    for listener in listeners {
        server = server.listen("webhooks", listener, service.clone())?;
    }
    Ok(server.run())
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
