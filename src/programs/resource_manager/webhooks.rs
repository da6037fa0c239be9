//! The webhook server as a service of the process.

use std::{path::PathBuf, rc::Rc};

use kit::StatusRegistry;
use process::{
    Process, ServiceError, ServiceParts, Services,
    http::{descriptors::Descriptors, probes::Checks},
};
use rustls::sign::CertifiedKey;
use tokio::time::Instant;

use super::ResourceManager;
use crate::{
    api::config::resource_manager::Config,
    webhooks::{
        registry,
        server::{Bound, Presence, ServerParts, WebhookServer, metrics::WebhookServerMetrics, read_certificate},
    },
};

/// The webhook server, from the moment in which its port is bound.
pub struct Webhooks {
    bound: Option<Waiting>,
    running: Option<WebhookServer>,
}

/// A server that does not answer yet.
struct Waiting {
    bound: Bound,
    webhooks: Vec<registry::WebhookEntry>,
    certificate: CertifiedKey,
    certificate_directory: PathBuf,
    metrics: WebhookServerMetrics,
    status_registry: StatusRegistry,
    presence: Presence,
    descriptors: Descriptors,
}

impl Services<ResourceManager> for Webhooks {
    /// The certificate must exist even if no webhook is enabled (spec 70 §11).
    fn prepare(config: &Rc<Config>, parts: ServiceParts, readiness: &mut Checks) -> Result<Self, ServiceError> {
        let ServiceParts { metrics, status_registry, descriptors } = parts;
        let metrics = WebhookServerMetrics::new(metrics.registrar());
        let certificate_directory = config.server.webhooks.tls.cert_dir(&std::env::temp_dir());
        let pair = read_certificate(&certificate_directory);
        metrics.certificate_read(pair.is_ok());
        let certificate = pair.map_err(ServiceError::new)?;
        let presence = Presence::default();
        *readiness = presence.add_to(std::mem::take(readiness));
        let bound = Bound::to(&config.server.webhooks.address()).map_err(ServiceError::new)?;
        let webhooks = registry::enabled(&config.webhooks);
        let waiting = Waiting {
            bound,
            webhooks,
            certificate,
            certificate_directory,
            metrics,
            status_registry,
            presence,
            descriptors,
        };
        Ok(Self { bound: Some(waiting), running: None })
    }

    fn start(&mut self, process: &Process<ResourceManager>) -> Result<(), ServiceError> {
        let Some(waiting) = self.bound.take() else { return Ok(()) };
        let Waiting { bound, webhooks, certificate, certificate_directory, .. } = waiting;
        let parts = ServerParts {
            webhooks,
            knowledge: process.caches().knowledge(),
            certificate,
            certificate_directory,
            metrics: waiting.metrics,
            status_registry: waiting.status_registry,
            presence: waiting.presence,
            descriptors: waiting.descriptors,
        };
        self.running = Some(bound.run(parts).map_err(ServiceError::new)?);
        Ok(())
    }

    async fn stop(self, deadline: Instant) {
        if let Some(server) = self.running {
            server.stop(deadline).await;
        }
    }
}
