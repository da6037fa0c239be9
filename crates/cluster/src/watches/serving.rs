//! Kinds that are not served by every server, or not always: discovery says when to watch them.

use std::{rc::Rc, time::Duration};

use super::informer::Informer;
use crate::{ProvedAbsent, Serving};

/// While discovery fails it is asked again after 1 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(120);

/// Why a kind is not watched that readers can do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unserved {
    /// It is not served in any version: there are no objects.
    Absent(ProvedAbsent),
    /// It is not served in the version that is watched, but in this one: what objects there are is not known.
    Elsewhere(String),
}

impl Informer {
    /// Watches the kind as long as discovery knows it. Asks for it until there is an answer; later only hears of changes:
    /// those of definitions, where they are watched, and those that the answers to requests for the kind make known. A watch
    /// that runs ends by a proof only (spec 10 §13.1).
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
                    // Only what was forgotten, or is new, is asked for.
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
