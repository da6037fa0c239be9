//! Kinds that are not served by every server, or not always: discovery says when to watch them.

use std::{rc::Rc, time::Duration};

use super::{super::ApiError, feed::Feed};

/// While discovery fails it is asked again after 1 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(120);

impl Feed {
    /// Watches the kind as long as discovery knows it. Asks for it until there is an answer; later only hears of changes:
    /// those of definitions, where they are watched, and those that the answers to requests for the kind make known.
    pub(super) fn follow_discovery(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        let (discovery, random) = (self.cluster.discovery().clone(), self.env.random.clone());
        let kind = self.key.resource.group_version_kind();
        let task = self.task(async move {
            let mut changes = discovery.subscribe();
            let mut back_off = Duration::from_secs(1);
            loop {
                match discovery.mapping(&kind).await {
                    Ok(_) | Err(ApiError::NoMatch(_) | ApiError::NoKind(_)) => break,
                    Err(error) => tracing::debug!(%kind, %error, "whether a kind is served is not known yet"),
                }
                tokio::time::sleep(random.jitter(back_off, 1.0)).await;
                back_off = (back_off * 2).min(MAX_BACK_OFF);
            }
            loop {
                let served = discovery.known(&kind).is_some();
                let Some(feed) = this.upgrade() else { return };
                if served != feed.is_running() || served == feed.unserved.get() {
                    tracing::info!(watch = %feed.name, served, "a kind is watched while it is served");
                    feed.set_served(served);
                }
                drop(feed);
                if changes.changed().await.is_err() {
                    return;
                }
            }
        });
        self.serving.replace(Some(task));
    }
}
