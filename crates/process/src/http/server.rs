//! An HTTP server of the process: its workers, its connections, its end.

use std::{io, net::SocketAddr, sync::Arc};

use actix_http::Request;
use actix_service::{IntoServiceFactory, ServiceFactory, ServiceFactoryExt as _, boxed, map_config};
use actix_tls::accept::max_concurrent_tls_connect;
use actix_web::{
    Error,
    body::MessageBody,
    dev::{AppConfig, Response, Server, ServerHandle},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use super::{
    accept,
    connections::{Bounds, Connections, UnreadLimits},
    listen::Listeners,
};

/// The parts of a server.
pub struct ServerParts {
    /// Its name in logs.
    pub name: &'static str,
    /// Where it listens.
    pub listeners: Listeners,
    /// `None` is plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Threads.
    pub workers: usize,
    /// How many connections it takes.
    pub bounds: Bounds,
    /// How much it keeps for clients that do not read.
    pub unread: UnreadLimits,
}

/// A server whose workers run. It answers once [`Self::run`] was called.
pub struct Prepared {
    name: &'static str,
    address: SocketAddr,
    server: Server,
    connections: Connections,
}

/// A running server.
#[must_use = "without it the server cannot be stopped"]
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    handle: ServerHandle,
    /// Its connections.
    pub connections: Connections,
    closer: JoinHandle<()>,
}

impl ServerParts {
    /// Starts the workers. Each calls `worker` once for the service that answers its requests.
    pub fn prepare<W, A, I, S, B>(self, worker: W) -> io::Result<Prepared>
    where
        W: Fn() -> A + Clone + Send + 'static,
        A: Fn() -> I + 'static,
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<Request, Config = AppConfig, Error = Error> + 'static,
        S::Response: Into<Response<B>>,
        B: MessageBody + 'static,
    {
        let Self { name, listeners: Listeners { address, listeners }, tls, workers, bounds, unread } = self;
        let connections = Connections::within(bounds.silent, unread);
        // Handshakes are bounded as connections. Connections that wait for a free handshake would not be counted.
        max_concurrent_tls_connect(usize::MAX);
        let mut server = Server::build()
            .workers(workers)
            .max_concurrent_connections(bounds.connections)
            .shutdown_timeout(1)
            .disable_signals();
        for listener in listeners {
            let (worker, connections) = (worker.clone(), connections.clone());
            let begin = move || {
                actix_web::rt::spawn(connections.clone().close_when_stopping());
                let app = worker();
                let app = move || {
                    let app = map_config(app(), |()| AppConfig::default()).map_init_err(drop);
                    boxed::factory(app.map(|response| Into::<Response<B>>::into(response).map_into_boxed_body()))
                };
                (app, connections.clone())
            };
            server = match tls.clone() {
                None => server.listen(name, listener, move || {
                    let (app, connections) = begin();
                    accept::plain(app, connections)
                })?,
                Some(tls) => server.listen(name, listener, move || {
                    let (app, connections) = begin();
                    accept::secure(app, tls.clone(), connections)
                })?,
            };
        }
        Ok(Prepared { name, address, server: server.run(), connections })
    }
}

impl Prepared {
    /// Begins to answer.
    pub fn run(self) -> Running {
        let Self { name, address, server, connections } = self;
        let handle = server.handle();
        actix_web::rt::spawn(async move {
            if let Err(error) = server.await {
                tracing::error!(server = name, %error, "HTTP server ended");
            }
        });
        let closer = actix_web::rt::spawn(connections.clone().close_unread());
        Running { address, handle, connections, closer }
    }
}

impl Running {
    /// Takes no new connections, and closes each once it has no request. Returns `false` if any is open at `deadline`.
    pub async fn stop(self, deadline: Instant) -> bool {
        self.handle.pause().await;
        self.connections.stop();
        let is_done = timeout_at(deadline, self.connections.closed()).await.is_ok();
        self.closer.abort();
        self.handle.stop(false).await;
        is_done
    }
}
