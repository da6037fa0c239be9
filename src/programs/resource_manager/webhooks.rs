//! The webhook server as a service of the process.

use std::{net::SocketAddr, rc::Rc, sync::Arc};

use process::{Process, ServiceParts, Services, StartError, http::probes::Checks};
use tokio::time::Instant;

use super::ResourceManager;
use crate::{
    api::config::resource_manager::Config,
    webhooks::{
        registry,
        server::{Presence, ServerParts, WebhookServer, metrics::WebhookServerMetrics, read_certificate},
    },
};

/// The webhook server, from the moment in which its port is bound.
pub struct Webhooks {
    waiting: Option<ServerParts>,
    running: Option<WebhookServer>,
}

impl Webhooks {
    /// The address on which the server listens.
    pub fn address(&self) -> Option<SocketAddr> {
        let waiting = self.waiting.as_ref().map(|parts| parts.listeners.address);
        waiting.or_else(|| self.running.as_ref().map(WebhookServer::address))
    }
}

impl Services<ResourceManager> for Webhooks {
    /// The certificate must exist even if no webhook is enabled (spec 70 §11).
    fn prepare(config: &Rc<Config>, parts: ServiceParts, readiness: &mut Checks) -> Result<Self, StartError> {
        let ServiceParts { metrics, status_registry, vitals, descriptors } = parts;
        let metrics = WebhookServerMetrics::new(metrics.registrar());
        let shown = metrics.clone();
        vitals.show_webhooks(Arc::new(move |now| shown.figures(now)));
        let certificate_directory = config.server.webhooks.tls.cert_dir(&std::env::temp_dir());
        let pair = read_certificate(&certificate_directory);
        metrics.certificate_read(&pair);
        let certificate = pair?;
        let presence = Presence::default();
        *readiness = presence.add_to(std::mem::take(readiness));
        let waiting = ServerParts {
            listeners: config.server.webhooks.address().listen()?,
            webhooks: registry::enabled(&config.webhooks),
            certificate,
            certificate_directory,
            metrics,
            status_registry,
            presence,
            descriptors,
        };
        Ok(Self { waiting: Some(waiting), running: None })
    }

    fn start(&mut self, process: &Process<ResourceManager>) -> Result<(), StartError> {
        if let Some(parts) = self.waiting.take() {
            self.running = Some(WebhookServer::start(parts, process.caches().knowledge())?);
        }
        Ok(())
    }

    async fn stop(self, deadline: Instant) {
        if let Some(server) = self.running {
            server.stop(deadline).await;
        }
    }
}
