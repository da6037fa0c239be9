//! The kinds of faults, and which of them are tried.

use std::time::Duration;

use sim::{Fault, Seen};

/// How late an answer is. Until then, watches and other requests overtake it.
const LATE_ANSWER: Duration = Duration::from_secs(25);

/// By default, a scenario tries at most so many faults.
const SAMPLE: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The request fails with 500, and nothing is done.
    FailsBefore,
    /// The request is carried out, and the connection breaks before the answer.
    FailsAfter,
    /// The request gets no answer, and nothing is done. It ends at the deadline of its reconcile.
    Hangs,
    /// The request is carried out, and its answer is late. If the program repeats the request, that answer is late, too.
    LateTwice,
    /// The event is lost, and the watch goes on, as if a cache or proxy had swallowed it. No API server repairs that within
    /// the watch: all watches expire after the life, and lists follow.
    Lost,
    /// The event comes twice.
    Doubled,
    /// The event comes after the next event. If none follows during the life, it is lost.
    Stale,
    /// The event is lost. All watches expire some seconds later, during the life, and lists follow.
    Late,
}

impl Kind {
    pub(super) const OF_REQUESTS: [Self; 4] = [Self::FailsBefore, Self::FailsAfter, Self::Hangs, Self::LateTwice];
    pub(super) const OF_EVENTS: [Self; 4] = [Self::Lost, Self::Doubled, Self::Stale, Self::Late];

    /// Returns its name in `FAULT`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FailsBefore => "request-fails-before",
            Self::FailsAfter => "request-fails-after",
            Self::Hangs => "request-hangs",
            Self::LateTwice => "request-late-twice",
            Self::Lost => "event-lost",
            Self::Doubled => "event-doubled",
            Self::Stale => "event-stale",
            Self::Late => "event-late",
        }
    }

    /// Returns what happens to the request.
    pub(super) fn of_request(self) -> Fault {
        match self {
            Self::FailsBefore => Fault::FailBefore(Seen::internal_error("no")),
            Self::FailsAfter => Fault::FailAfterCommit(Seen::Disconnect),
            Self::Hangs => Fault::Hang,
            Self::LateTwice => Fault::DelayAnswer(LATE_ANSWER),
            Self::Lost | Self::Doubled | Self::Stale | Self::Late => Fault::None,
        }
    }
}

/// A fault at one request or event, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Injection {
    pub(super) kind: Kind,
    pub(super) index: usize,
}

impl Injection {
    pub(super) fn is_at_request(self, number: usize) -> bool {
        self.index == number && Kind::OF_REQUESTS.contains(&self.kind)
    }

    pub(super) fn is_at_event(self, number: usize) -> bool {
        self.index == number && Kind::OF_EVENTS.contains(&self.kind)
    }
}

/// Returns all faults of a run with so many requests and events.
pub(super) fn all(requests: usize, events: usize) -> Vec<Injection> {
    let at =
        |count: usize, kinds: [Kind; 4]| (1..=count).flat_map(move |index| kinds.map(|kind| Injection { kind, index }));
    at(requests, Kind::OF_REQUESTS).chain(at(events, Kind::OF_EVENTS)).collect()
}

/// Which faults are tried, as the environment says.
pub(super) struct Choice {
    scenario: Option<String>,
    fault: Option<String>,
    index: Option<usize>,
    all: bool,
}

impl Choice {
    pub(super) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        assert!(variable("INDEX").is_none() || variable("FAULT").is_some(), "INDEX needs FAULT");
        Self {
            scenario: variable("SCENARIO"),
            fault: variable("FAULT"),
            index: variable("INDEX").map(|text| text.parse().expect("INDEX is the number of a request or event")),
            all: variable("ALL_FAULTS").is_some(),
        }
    }

    pub(super) fn includes(&self, scenario: &str) -> bool {
        self.scenario.as_deref().is_none_or(|name| name == scenario)
    }

    /// Returns the faults of a scenario that are tried.
    pub(super) fn select(&self, scenario: &str, all: Vec<Injection>) -> Vec<Injection> {
        if self.scenario.is_some() || self.fault.is_some() {
            let is_meant = |it: &Injection| {
                self.fault.as_deref().is_none_or(|name| name == it.kind.name())
                    && self.index.is_none_or(|index| index == it.index)
            };
            return all.into_iter().filter(is_meant).collect();
        }
        if self.all {
            return all;
        }
        // Four kinds follow one another: an odd step meets all of them. It begins elsewhere in each scenario.
        let step = all.len().div_ceil(SAMPLE) | 1;
        let begin = scenario.bytes().map(usize::from).sum::<usize>() % step;
        all.into_iter().skip(begin).step_by(step).collect()
    }
}
