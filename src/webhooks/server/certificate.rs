//! The serving certificate, read again while the server runs (spec 70 §11).

use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, SystemTime},
};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::pair::{self, CertificateError, read_certificate};
use crate::metrics::Metrics;

/// How often the files are looked at, which costs no more than asking the system about them.
const LOOK: Duration = Duration::from_secs(1);
/// They are read after this time even if they look the same.
const READ: Duration = Duration::from_secs(10);

/// The pair for new connections; those that are open keep theirs.
#[derive(Debug)]
pub(super) struct Serving {
    pair: RwLock<Arc<CertifiedKey>>,
}

/// What the system says of both files; a new target of a link is another file.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Serving {
    pub(super) fn new(pair: CertifiedKey) -> Self {
        Self { pair: RwLock::new(Arc::new(pair)) }
    }

    fn pair(&self) -> Arc<CertifiedKey> {
        self.pair.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows the files for ever.
    pub(super) async fn follow(self: Arc<Self>, directory: PathBuf, metrics: Metrics) {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = Stamp::default();
        let mut read = Instant::now();
        let mut complaint = String::new();
        loop {
            ticks.tick().await;
            // A file system may hang: not on the thread of the controllers.
            let from = directory.clone();
            let unread = (read.elapsed() < READ).then_some(seen);
            let look = move || {
                let stamp = stamp(&from);
                (unread != Some(stamp)).then(|| (stamp, read_certificate(&from)))
            };
            let Ok(Some((stamp, pair))) = tokio::task::spawn_blocking(look).await else { continue };
            (seen, read) = (stamp, Instant::now());
            metrics.certificate_read(pair.is_ok());
            let error = self.take(pair).err().map(|error| error.to_string()).unwrap_or_default();
            if error != complaint && !error.is_empty() {
                tracing::error!(%error, "The serving certificate cannot be read again, the last good one stays in use");
            }
            complaint = error;
        }
    }

    /// Takes a pair into use, unless it is the one in use.
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
