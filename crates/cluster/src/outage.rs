//! Logs an error while a cluster cannot be used (spec 70 §10): one record per cluster, at once and then each minute.

use std::future::pending;

use tokio::{
    sync::watch,
    time::{Duration, Instant, sleep_until, timeout_at},
};

use super::{Cluster, ClusterLabel, Synced, contact::Known, kubeconfig::ContextOfFile};

const EVERY: Duration = Duration::from_secs(60); // interval of the records

/// How long a cluster that was good may be without an answer: the API server restarts, or a token is replaced.
const PATIENCE: Duration = Duration::from_secs(10);

const STEP: Duration = Duration::from_secs(1); // interval of the checks until the first lists have come

enum Finding {
    Good,
    /// It may recover by itself.
    Pending,
    Bad(String),
}

struct Reporter {
    label: ClusterLabel,
    host: String,
    context: Option<ContextOfFile>,
    synced: Synced,
    contact: watch::Receiver<Known>,
    begun: Instant,
    listed: bool,
    reported: Option<Instant>,
    is_open: bool, // whether the last record was an error
}

/// Reports for ever. `synced`: the first lists, without which the process cannot work. `context`: where the connection
/// comes from; `None` in a Pod.
pub async fn report_outages(cluster: Cluster, synced: Synced, context: Option<ContextOfFile>) {
    let mut reporter = Reporter {
        label: cluster.options().label,
        host: cluster.options().host.clone(),
        context,
        synced,
        contact: cluster.contact(),
        begun: Instant::now(),
        listed: false,
        reported: None,
        is_open: false,
    };
    loop {
        reporter.look();
        reporter.wait().await;
    }
}

impl Reporter {
    fn look(&mut self) {
        self.listed = self.listed || self.synced.check().is_ok();
        let finding = self.finding();
        let (cluster, server) = (self.label.as_str(), self.host.as_str());
        match finding {
            Finding::Bad(error) if self.is_due() => {
                let kubeconfig = self.context.as_ref().map(|context| context.kubeconfig.as_str());
                let context = self.context.as_ref().map(|context| context.context.as_str());
                tracing::error!(cluster, server, kubeconfig, context, error, "The cluster cannot be used");
                (self.reported, self.is_open) = (Some(Instant::now()), true);
            }
            Finding::Good if self.is_open => {
                tracing::info!(cluster, server, "The cluster can be used again");
                self.is_open = false;
            }
            Finding::Good | Finding::Pending | Finding::Bad(_) => {}
        }
    }

    /// [`PATIENCE`] limits the records of a cluster that comes and goes.
    fn is_due(&self) -> bool {
        !self.is_open || self.reported.is_none_or(|reported| reported.elapsed() >= EVERY)
    }

    fn finding(&mut self) -> Finding {
        if let Some((trouble, lasting)) = self.contact.borrow_and_update().trouble() {
            let is_bad = !self.listed || lasting >= PATIENCE;
            return if is_bad { Finding::Bad(trouble.to_string()) } else { Finding::Pending };
        }
        if self.listed {
            return Finding::Good;
        }
        // Even if each request is answered, the process may be unable to work, e.g. without the right to list.
        let late = || if self.begun.elapsed() >= EVERY { self.synced.check().err() } else { None };
        self.synced.failure().or_else(late).map_or(Finding::Pending, Finding::Bad)
    }

    /// Waits until the state may change; without trouble only the contact wakes it.
    async fn wait(&mut self) {
        let is_bad = self.contact.borrow().trouble().is_some();
        if self.listed && !is_bad {
            if self.contact.changed().await.is_err() {
                pending::<()>().await;
            }
            return;
        }
        let step = Instant::now() + STEP;
        if timeout_at(step, self.contact.changed()).await.is_ok_and(|changed| changed.is_err()) {
            sleep_until(step).await;
        }
    }
}
