//! The serving certificate, read again while the server runs (spec 70 §11).

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use kit::Clock;
use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{
    expiry::{Reminder, Reminders},
    metrics::WebhookServerMetrics,
    pair::{self, CertificateError, expiration, read_certificate},
};

/// How often the files' metadata is checked.
const LOOK: Duration = Duration::from_secs(1);
/// The files are read after this time even if their metadata is unchanged.
const READ: Duration = Duration::from_secs(10);
const REMEDY: &str =
    "issue a new certificate in server.webhooks.tls.serverCertDir; new files are read without a restart";

/// The pair for new connections; open connections keep theirs.
#[derive(Debug)]
pub(super) struct Serving {
    pair: RwLock<Arc<CertifiedKey>>,
}

/// Modification time and inode of both files, so that a new target of a link counts as a change.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Serving {
    pub(super) fn new(pair: CertifiedKey) -> Self {
        Self { pair: RwLock::new(Arc::new(pair)) }
    }

    fn pair(&self) -> Arc<CertifiedKey> {
        self.pair.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) async fn follow(self: Arc<Self>, directory: PathBuf, metrics: WebhookServerMetrics) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Stamp::default();
        let mut read = Instant::now();
        let mut complaint = String::new();
        let mut reminders = Reminders::default();
        self.remind(&mut reminders);
        loop {
            ticks.tick().await;
            // The file system may hang, so it must not block the thread of the controllers.
            let from = directory.clone();
            let unread = (read.elapsed() < READ).then_some(seen);
            let look = move || {
                let stamp = stamp(&from);
                (unread != Some(stamp)).then(|| (stamp, read_certificate(&from)))
            };
            let Ok(Some((stamp, pair))) = tokio::task::spawn_blocking(look).await else { continue };
            (seen, read) = (stamp, Instant::now());
            metrics.certificate_read(&pair);
            let error = self.take(pair).err().map(|error| error.to_string()).unwrap_or_default();
            if error != complaint && !error.is_empty() {
                tracing::error!(%error, "The serving certificate cannot be read again, the last good one stays in use");
            }
            complaint = error;
            self.remind(&mut reminders);
        }
    }

    /// Logs that the certificate in use comes near its end.
    fn remind(&self, reminders: &mut Reminders) {
        let Some(end) = expiration(&self.pair()) else { return };
        match reminders.due(end, Clock::system_wall()) {
            Some(Reminder::Soon(left)) => {
                let hours = left.as_hours();
                tracing::warn!(expires = %end, hours, remedy = REMEDY, "The serving certificate expires soon");
            }
            Some(Reminder::Over) => {
                tracing::error!(expires = %end, remedy = REMEDY, "The serving certificate has expired");
            }
            None => {}
        }
    }

    pub(super) fn take(&self, pair: Result<CertifiedKey, CertificateError>) -> Result<(), CertificateError> {
        let pair = pair?;
        if self.pair().cert != pair.cert {
            *self.pair.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
            tracing::info!("New connections get the new serving certificate");
        }
        Ok(())
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair())
    }
}

fn stamp(directory: &Path) -> Stamp {
    pair::FILES.map(|name| {
        let metadata = std::fs::metadata(directory.join(name)).ok()?;
        Some((metadata.modified().ok()?, std::os::unix::fs::MetadataExt::ino(&metadata)))
    })
}
