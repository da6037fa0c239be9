//! Faults of requests and watches, for the lives of both programs.

use std::time::Duration;

use sim::{EventFault, Fault, RequestInfo, Seen, Sim, WatchEnd};

/// How a life is disturbed.
#[derive(Clone, Copy)]
pub(crate) struct Weather {
    /// The begin of the names of the program's users. Nobody else is disturbed.
    pub(crate) program: &'static str,
    /// One of so many requests is disturbed; [`Weather::CALM`]: none.
    pub(crate) one_in: u16,
    /// Events get lost, and watches hang.
    pub(crate) lossy: bool,
    /// The plural of a kind whose watches are often forbidden: its cache is no evidence then.
    pub(crate) forbidden: &'static str,
}

impl Weather {
    pub(crate) const CALM: u16 = u16::MAX;

    pub(super) fn of(seed: u64) -> Self {
        let one_in = match seed % 5 {
            0 => Self::CALM,
            1 => 5,
            _ => 12,
        };
        Self { program: "grm", one_in, lossy: seed % 4 == 1, forbidden: "managedresources" }
    }

    pub(crate) fn is_calm(self) -> bool {
        self.one_in == Self::CALM
    }
}

/// Disturbs requests and events at random. `see` sees each request of the program first. It may decide its fate.
pub(crate) fn disturb(
    sim: &Sim,
    weather: Weather,
    seed: u64,
    mut see: impl FnMut(&RequestInfo) -> Option<Fault> + Send + 'static,
) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed_0001);
    sim.set_faults(move |info| {
        if !info.user.starts_with(weather.program) {
            return Fault::None;
        }
        let decided = see(info);
        let is_hit = random.u16(0..weather.one_in) == 0;
        decided.unwrap_or_else(|| if is_hit { fault(&mut random, info, weather) } else { Fault::None })
    });
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed_0002);
    sim.set_event_faults(move |_| match random.u8(0..60) {
        0 if weather.lossy => EventFault::Drop,
        1 => EventFault::Duplicate,
        2 => EventFault::Swap,
        _ => EventFault::Deliver,
    });
}

/// Ends all disturbances. `see` goes on.
pub(crate) fn calm(sim: &Sim, weather: Weather, mut see: impl FnMut(&RequestInfo) + Send + 'static) {
    sim.set_faults(move |info| {
        if info.user.starts_with(weather.program) {
            see(info);
        }
        Fault::None
    });
    sim.clear_event_faults();
}

/// Forces lists, which replace lost events, as after any watch that expired.
pub(crate) fn expire(sim: &Sim) {
    sim.compact();
    sim.break_watches(WatchEnd::Expired);
}

/// Returns the time until the next step of a life.
pub(crate) fn rest(random: &mut fastrand::Rng) -> Duration {
    Duration::from_millis(match random.u8(0..10) {
        0 => random.u64(0..20),
        1..=6 => random.u64(0..6_000),
        7 | 8 => random.u64(6_000..30_000),
        _ => random.u64(60_000..130_000),
    })
}

fn fault(random: &mut fastrand::Rng, info: &RequestInfo, weather: Weather) -> Fault {
    let short = Duration::from_millis(random.u64(1..1500));
    if info.verb == "watch" && info.resource == weather.forbidden && random.u8(0..4) == 0 {
        return Fault::FailBefore(Seen::forbidden(info));
    }
    if info.verb == "watch" {
        let end = match random.u8(0..6) {
            0 if weather.lossy => WatchEnd::Hang,
            1 => WatchEnd::Expired,
            2 | 3 => WatchEnd::Close,
            _ => WatchEnd::Disconnect,
        };
        return Fault::BreakWatch { after_events: random.u64(0..6), end };
    }
    match random.u8(0..42) {
        0..=4 => Fault::FailBefore(Seen::unavailable()),
        5..=7 => Fault::FailBefore(Seen::Disconnect),
        8..=12 => Fault::FailAfterCommit(Seen::Disconnect),
        13..=15 => Fault::FailAfterCommit(Seen::timeout()),
        16..=19 => Fault::FailBefore(Seen::conflict(info)),
        20..=21 => Fault::FailBefore(Seen::forbidden(info)),
        22..=23 => Fault::FailBefore(Seen::too_many_requests()),
        24 => Fault::FailBefore(Seen::unauthorized()),
        25..=26 => Fault::FailBefore(Seen::internal_error("no")),
        27..=28 => Fault::CrashClient,
        29..=31 => Fault::CrashClientAfterCommit,
        32..=35 => Fault::Delay(short),
        36..=38 => Fault::DelayAnswer(short),
        39..=40 => Fault::FailAfterCommit(Seen::nonsense(random.usize(..))),
        _ => Fault::HangAfterCommit,
    }
}
