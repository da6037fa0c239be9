//! Kinds that are not always served: discovery decides when to watch them.

use std::{rc::Rc, time::Duration};

use super::informer::{Informer, Unserved};
use crate::Serving;

/// Back-off while discovery fails: 1 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(120);

impl Informer {
    /// Watches the kind while discovery knows it. Asks discovery until there is an answer; later it only follows
    /// changes: those of watched definitions, and those that discovery learns from answers to requests for the kind.
    /// Only a proof ends a running watch (spec 10 §13.1).
    pub(super) fn follow_discovery(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        let (discovery, random) = (self.cluster.discovery().clone(), self.env.random.clone());
        let kind = self.key.resource.group_version_kind();
        let task = self.task(async move {
            let mut changes = discovery.subscribe();
            loop {
                let mut back_off = Duration::from_secs(1);
                let serving = loop {
                    match discovery.serving(&kind).await {
                        Ok(serving) => break serving,
                        Err(error) => tracing::debug!(%kind, %error, "whether a kind is served is not known yet"),
                    }
                    tokio::time::sleep(random.jitter(back_off, 1.0)).await;
                    back_off = (back_off * 2).min(MAX_BACK_OFF);
                };
                let unserved = match serving {
                    Serving::Served(resource) if *resource.version == *kind.version => None,
                    Serving::Served(resource) => Some(Unserved::Elsewhere(resource.api_version())),
                    Serving::Absent(proof) => Some(Unserved::Absent(proof)),
                };
                let Some(informer) = this.upgrade() else { return };
                if unserved.is_none() != informer.is_running() || unserved != *informer.unserved.borrow() {
                    match &unserved {
                        None => tracing::info!(watch = %informer.name, "a kind is served, and watched"),
                        Some(Unserved::Absent(_)) => {
                            tracing::info!(watch = %informer.name, "a kind is not served, and not watched");
                        }
                        Some(Unserved::Elsewhere(version)) => {
                            tracing::warn!(watch = %informer.name, version, "a kind is served in another version only");
                        }
                    }
                    informer.set_unserved(unserved);
                }
                drop(informer);
                loop {
                    if changes.changed().await.is_err() {
                        return;
                    }
                    let is_known = discovery.known_preferred(&kind.group_kind()).is_some();
                    let Some(informer) = this.upgrade() else { return };
                    // Asks only for a kind that was forgotten or is new.
                    let was_known = !matches!(*informer.unserved.borrow(), Some(Unserved::Absent(_)));
                    if is_known != was_known || discovery.known(&kind).is_some() != informer.is_running() {
                        break;
                    }
                }
            }
        });
        self.serving.replace(Some(task));
    }
}
