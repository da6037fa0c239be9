//! How a supervisor learns that an actor died (contract rule 6).

use tokio::sync::mpsc::UnboundedSender;

/// Key and generation of an actor that died.
pub(super) type DeathNotice<K> = (K, u64);

/// Reports the death of the actor that holds it, unless it was disarmed.
pub(super) struct Lifeline<K> {
    deaths: UnboundedSender<DeathNotice<K>>,
    notice: Option<DeathNotice<K>>,
}

impl<K> Lifeline<K> {
    pub(super) fn new(deaths: UnboundedSender<DeathNotice<K>>, key: K, generation: u64) -> Self {
        Self { deaths, notice: Some((key, generation)) }
    }

    pub(super) fn disarm(mut self) {
        self.notice = None;
    }
}

impl<K> Drop for Lifeline<K> {
    /// May run while a panic unwinds, and while the work queue is borrowed, so it neither panics nor wakes a key.
    fn drop(&mut self) {
        if let Some(notice) = self.notice.take() {
            self.deaths.send(notice).ok(); // without a receiver, the controller has ended
        }
    }
}
