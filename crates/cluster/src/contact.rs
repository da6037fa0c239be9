//! What the last request to an API server says of the server and of our credentials.

use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use super::ApiError;

/// What is known of an API server by the requests that came to an end, whatever they asked for.
pub(super) struct Contact(watch::Sender<Known>);

/// See [`Contact`].
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// There was no request yet.
    Nothing,
    /// The last one was answered, and not with 401.
    Good,
    /// The server cannot be used.
    Bad {
        /// Why.
        trouble: Trouble,
        /// Since when nothing else was heard.
        since: Instant,
    },
}

/// Why an API server cannot be used, whatever it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No HTTP answer, for this reason: a wrong host, a wrong CA, or nobody there.
    Silent(String),
    /// 401. The text of the server is left out: it may tell of the credentials.
    Unauthorized,
}

impl Default for Contact {
    fn default() -> Self {
        Self(watch::Sender::new(Known::Nothing))
    }
}

impl Contact {
    /// A request was answered with this HTTP status.
    pub(super) fn answered(&self, code: u16) {
        if code == 401 {
            self.set(Trouble::Unauthorized);
        } else {
            self.0.send_if_modified(|known| !matches!(std::mem::replace(known, Known::Good), Known::Good));
        }
    }

    /// A request got no answer.
    pub(super) fn not_answered(&self, error: &ApiError) {
        self.set(Trouble::Silent(error.to_string()));
    }

    fn set(&self, trouble: Trouble) {
        self.0.send_if_modified(|known| {
            let (since, is_news) = match known {
                Known::Bad { since, trouble: before } => (*since, *before != trouble),
                Known::Nothing | Known::Good => (Instant::now(), true),
            };
            *known = Known::Bad { trouble, since };
            is_news
        });
    }

    /// Whether the last request got no answer at all, or there was none yet.
    pub(super) fn is_silent(&self) -> bool {
        matches!(*self.0.borrow(), Known::Nothing | Known::Bad { trouble: Trouble::Silent(_), .. })
    }

    /// Is told of each change.
    pub(super) fn subscribe(&self) -> watch::Receiver<Known> {
        self.0.subscribe()
    }
}

impl Known {
    /// What is wrong, and for how long.
    pub(super) fn trouble(&self) -> Option<(&Trouble, Duration)> {
        match self {
            Self::Nothing | Self::Good => None,
            Self::Bad { trouble, since } => Some((trouble, since.elapsed())),
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent(cause) => f.write_str(cause),
            Self::Unauthorized => f.write_str("the API server does not accept the credentials (401 Unauthorized)"),
        }
    }
}
