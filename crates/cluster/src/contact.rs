//! What the last request says of an API server and of our credentials.

use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use super::ApiError;

pub(super) struct Contact(watch::Sender<Known>);

#[derive(Debug, Clone)]
pub(super) enum Known {
    /// No request has ended yet.
    Nothing,
    /// The last answer was not a 401.
    Good,
    Bad {
        trouble: Trouble,
        /// Since when all requests failed like this.
        since: Instant,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No HTTP answer, for this reason: wrong host, wrong CA, or no server there.
    Silent(String),
    /// 401. The server's text is left out, because it may contain credentials.
    Unauthorized,
}

impl Default for Contact {
    fn default() -> Self {
        Self(watch::Sender::new(Known::Nothing))
    }
}

impl Contact {
    pub(super) fn answered(&self, code: u16) {
        if code == 401 {
            self.set(Trouble::Unauthorized);
        } else {
            self.0.send_if_modified(|known| !matches!(std::mem::replace(known, Known::Good), Known::Good));
        }
    }

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

    /// Returns true if the last request got no answer at all, or no request has ended yet.
    pub(super) fn is_silent(&self) -> bool {
        matches!(*self.0.borrow(), Known::Nothing | Known::Bad { trouble: Trouble::Silent(_), .. })
    }

    /// Returns true if the last answer was a 401.
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(*self.0.borrow(), Known::Bad { trouble: Trouble::Unauthorized, .. })
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Known> {
        self.0.subscribe()
    }
}

impl Known {
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
