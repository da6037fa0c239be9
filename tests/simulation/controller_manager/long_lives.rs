//! What long lives share: how long they are, how many Shoots there are, randomness, and what the process does meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use sim::{Fault, Seen};

use super::{garden::Garden, shoots::seconds};

/// So many Shoots live for so many days, unless the environment says otherwise.
const SHOOTS: u64 = 12;
const DAYS: u64 = 14;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What a long life is made of.
pub(super) struct LongLife {
    pub(super) shoots: usize,
    pub(super) days: usize,
    pub(super) random: Random,
}

pub(super) struct Random(u64);

/// What the process does for a while.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    Works,
    /// A second process leads, too, and ends with the phase.
    TwoLead,
    /// The API server cannot be reached.
    IsCutOff,
    /// It is stopped.
    Stands,
}

impl Random {
    /// Returns a number below a limit.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }

    /// Returns the next phase, and how many minutes it lasts.
    pub(super) fn phase<const N: usize>(&mut self, lengths: [usize; N]) -> (Phase, usize) {
        let phase =
            self.one_of([Phase::Works, Phase::Works, Phase::Works, Phase::TwoLead, Phase::IsCutOff, Phase::Stands]);
        (phase, self.one_of(lengths))
    }
}

impl LongLife {
    /// `SHOOTS=2000` takes more Shoots, `DAYS=60` more days, `SEED=17` another life.
    pub(super) fn from_environment() -> Self {
        let number = |name: &str, default: u64| {
            let given = std::env::var(name).ok().and_then(|text| text.parse().ok());
            given.unwrap_or(default)
        };
        let count = |number: u64| usize::try_from(number).expect("they fit into memory");
        Self {
            shoots: count(number("SHOOTS", SHOOTS)),
            days: count(number("DAYS", DAYS)),
            random: Random(number("SEED", 1)),
        }
    }

    pub(super) fn length(&self) -> Duration {
        DAY * u32::try_from(self.days).expect("a few years")
    }
}

/// Returns the time now, as the program's clock shows it.
pub(super) fn now(garden: &Garden) -> Timestamp {
    garden.env().clock.wall()
}

async fn minutes(minutes: usize) {
    seconds(60 * u64::try_from(minutes).expect("a few")).await;
}

/// Lets so many minutes pass in a phase. Returns since when the process can work again, if it could not.
pub(super) async fn pass(garden: &Garden, phase: Phase, length: usize) -> Option<Timestamp> {
    match phase {
        Phase::Works => {
            minutes(length).await;
            None
        }
        Phase::TwoLead => {
            garden.start_second().await;
            minutes(length).await;
            garden.stop_second().await;
            None
        }
        Phase::IsCutOff => {
            let is_own = |info: &sim::RequestInfo| info.user == "gcm";
            garden
                .sim
                .set_faults(move |info| if is_own(info) { Fault::FailBefore(Seen::Disconnect) } else { Fault::None });
            minutes(length).await;
            garden.sim.clear_faults();
            Some(now(garden))
        }
        Phase::Stands => {
            garden.stop().await;
            minutes(length).await;
            garden.start().await;
            Some(now(garden))
        }
    }
}
