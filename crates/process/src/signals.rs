//! Signals (spec 70 §13): the first SIGTERM or SIGINT stops the process gracefully, the second at once. SIGUSR1 toggles
//! the log level `debug`. A thread handles them, so that a process whose controllers hang still ends in time.

use std::{io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use super::shutdown::GRACE_PERIOD;

/// The graceful stop ends within the grace period. If it does not, this thread ends the process a moment later.
const SLACK: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impatience {
    SecondSignal,
    GracePeriod,
}

/// Listens from now on. Returns whether the first signal came. `end` must end the process; `toggle` is called for each
/// SIGUSR1.
pub(super) fn listen(
    end: impl FnOnce(Impatience) + Send + 'static,
    mut toggle: impl FnMut() + Send + 'static,
) -> io::Result<watch::Receiver<bool>> {
    let (sender, first) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut terminate, mut interrupt, mut user) = {
        let _inside = runtime.enter();
        let listen = |kind: fn() -> SignalKind| signal(kind());
        (listen(SignalKind::terminate)?, listen(SignalKind::interrupt)?, listen(SignalKind::user_defined1)?)
    };
    let toggling = async move {
        while user.recv().await.is_some() {
            toggle();
        }
        std::future::pending::<()>().await;
    };
    let watch = async move {
        either(&mut terminate, &mut interrupt).await;
        sender.send_replace(true);
        let second = either(&mut terminate, &mut interrupt);
        let ended = tokio::time::timeout(GRACE_PERIOD + SLACK, second).await;
        end(if ended.is_ok() { Impatience::SecondSignal } else { Impatience::GracePeriod });
    };
    let both = async move {
        tokio::select! {
            () = watch => {}
            () = toggling => {}
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(both))?;
    Ok(first)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
