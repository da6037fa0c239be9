use std::time::Duration;

use sim::{EventFault, Fault, RequestInfo, Seen, WatchEnd};

use super::{beside::Beside, certificates::Registrar, watchman::Watchman};
use crate::world::World;

#[derive(Clone, Copy)]
pub(super) struct Weather {
    /// One of so many requests is disturbed.
    pub(super) calm: u16,
    pub(super) lossy: bool,
}

impl Weather {
    pub(super) fn of(seed: u64) -> Self {
        let calm = match seed % 5 {
            0 => u16::MAX,
            1 => 5,
            _ => 12,
        };
        Self { calm, lossy: seed % 4 == 1 }
    }
}

pub(super) fn disturb(
    world: &World,
    watchman: Watchman,
    registrar: Registrar,
    beside: Beside,
    weather: Weather,
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed_0001);
    world.sim.set_faults(move |info| {
        if !info.user.starts_with("grm") {
            return Fault::None;
        }
        watchman.see(info);
        registrar.see(info);
        beside.see(info);
        if random.u16(0..weather.calm) == 0 { fault(&mut random, info, weather) } else { Fault::None }
    });
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed_0002);
    world.sim.set_event_faults(move |_| match random.u8(0..60) {
        0 if weather.lossy => EventFault::Drop,
        1 => EventFault::Duplicate,
        2 => EventFault::Swap,
        _ => EventFault::Deliver,
    });
}

pub(super) fn calm(world: &World, watchman: Watchman, registrar: Registrar, beside: Beside) {
    world.sim.set_faults(move |info| {
        if info.user.starts_with("grm") {
            watchman.see(info);
            registrar.see(info);
            beside.see(info);
        }
        Fault::None
    });
    world.sim.clear_event_faults();
}

fn fault(random: &mut fastrand::Rng, info: &RequestInfo, weather: Weather) -> Fault {
    let short = Duration::from_millis(random.u64(1..1500));
    if info.verb == "watch" && info.resource == "managedresources" && random.u8(0..4) == 0 {
        return Fault::FailBefore(Seen::forbidden(info)); // the cache of ManagedResources is no evidence any more
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
