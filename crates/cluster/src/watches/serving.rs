//! Kinds that are not always served: discovery decides when to watch them.

use std::{rc::Rc, time::Duration};

use super::informer::{Informer, Unserved};
use crate::Serving;

/// Back-off while discovery fails: 1 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(120);

/// In a cluster whose kinds may come later, a kind that is not served is looked for this often (spec 80 §9).
const LOOK_AGAIN: Duration = Duration::from_secs(60);

impl Informer {
    /// Watches the kind while discovery knows it. Asks discovery until there is an answer; later it follows changes:
    /// those of watched definitions, and those that discovery learns from answers to requests for the kind. Only in a
    /// cluster whose kinds may come later it asks again. Only a proof ends a running watch (spec 10 §13.1).
    pub(super) fn follow_discovery(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        let (discovery, random) = (self.cluster.discovery().clone(), self.env.random.clone());
        let kind = self.key.resource.group_version_kind();
        let looks_again = self.cluster.options().label.may_serve_kinds_later();
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
                let is_changed = unserved != *informer.unserved.borrow();
                if is_changed || (unserved.is_none() && !informer.is_running()) {
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
                let is_due = tokio::time::sleep(LOOK_AGAIN);
                let looks_again = looks_again && informer.unserved.borrow().is_some();
                drop(informer);
                tokio::pin!(is_due);
                loop {
                    tokio::select! {
                        biased;
                        changed = changes.changed() => if changed.is_err() { return },
                        () = &mut is_due, if looks_again => break,
                    }
                    let is_known = discovery.known_preferred(&kind.group_kind()).is_some();
                    let Some(informer) = this.upgrade() else { return };
                    // Asks only for a kind that was forgotten or is new.
                    let was_known = !matches!(*informer.unserved.borrow(), Some(Unserved::Absent(_)));
                    let was_served = informer.unserved.borrow().is_none();
                    if is_known != was_known || discovery.known(&kind).is_some() != was_served {
                        break;
                    }
                }
            }
        });
        self.serving.replace(Some(task));
    }
}
