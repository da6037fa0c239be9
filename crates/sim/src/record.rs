use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use super::request::RequestInfo;

const KEPT: usize = 1_000_000; // older requests are dropped, so that long runs do not grow

/// A request and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recorded {
    /// The request.
    #[serde(flatten)]
    pub info: RequestInfo,
    /// Status code of the answer; 0 for a broken connection, `None` while there is no answer.
    pub code: Option<u16>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) recording: bool, // whether requests are kept. Counters always run.
    requests: VecDeque<Recorded>,
    pub(super) verbs: BTreeMap<String, u64>,
    number: u64,
}

impl Journal {
    pub(super) fn new(recording: bool) -> Self {
        Self { recording, ..Self::default() }
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    pub(super) fn request(&mut self, info: &RequestInfo) {
        match self.verbs.get_mut(&info.verb) {
            Some(count) => *count += 1,
            None => {
                self.verbs.insert(info.verb.clone(), 1);
            }
        }
        if self.recording {
            self.requests.push_back(Recorded { info: info.clone(), code: None });
            if self.requests.len() > KEPT {
                self.requests.pop_front();
            }
        }
    }

    pub(super) fn answer(&mut self, number: u64, code: u16) {
        // Numbers increase, with gaps.
        let place = self.requests.partition_point(|recorded| recorded.info.number < number);
        if let Some(recorded) = self.requests.get_mut(place).filter(|recorded| recorded.info.number == number) {
            recorded.code = Some(code);
        }
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.requests.iter().cloned().collect()
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.verbs.clear();
    }
}
