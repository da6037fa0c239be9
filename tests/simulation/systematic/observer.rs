//! Watches the program during a run: counts its requests and events, injects the fault, and checks what must always hold.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use sim::{EventFault, EventInfo, Fault, RequestInfo, Sim};

use super::faults::{Injection, Kind};
use crate::random::disturbances;

/// How late the answer to a repeated request is.
const LATE_AGAIN: Duration = Duration::from_secs(3);

/// Watches expire so long after an event that is late.
const LATE_EVENT: Duration = Duration::from_secs(5);

/// What happened so far: during the life of the scenario, and until its end.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// The program's requests during the life.
    pub(super) requests: Vec<String>,
    /// The events of the program's watches during the life.
    pub(super) events: Vec<String>,
    /// What the program deleted, during the life and the end.
    pub(super) deletions: BTreeSet<String>,
    /// The number of the program's writes during the life, without the Events that it records.
    pub(super) writes: usize,
    /// The number of the program's requests, during the life and the end.
    pub(super) total: usize,
    /// The request or event that the fault met.
    pub(super) hit: Option<String>,
    /// The first violation of the invariant.
    pub(super) violation: Option<String>,
    has_ended: bool,
}

#[derive(Clone, Default)]
pub(super) struct Observer {
    notes: Arc<Mutex<Notes>>,
}

impl Observer {
    /// Watches the program of this user from now on.
    pub(super) fn watch(
        &self,
        sim: &Sim,
        user: &'static str,
        invariant: fn(&Sim) -> Result<(), String>,
        injection: Option<Injection>,
    ) {
        let (observer, server) = (self.clone(), sim.clone());
        let mut late: Option<(String, String)> = None; // verb and path of a request that is answered late if repeated
        sim.set_faults(move |info| {
            let broken = invariant(&server).err();
            let deleted = (info.user == user).then(|| deletion(&server, info)).flatten();
            let mut notes = observer.notes();
            notes.check(broken, info);
            if info.user != user {
                return Fault::None;
            }
            notes.deletions.extend(deleted);
            let number = notes.request(info);
            let injected = injection.filter(|it| number.is_some_and(|number| it.is_at_request(number)));
            let request = (info.verb.clone(), info.path.clone());
            match injected {
                Some(Injection { kind, .. }) => {
                    notes.hit = Some(shown(info));
                    late = (kind == Kind::LateTwice).then_some(request);
                    kind.of_request()
                }
                None if late.as_ref() == Some(&request) => {
                    late = None;
                    Fault::DelayAnswer(LATE_AGAIN)
                }
                None => Fault::None,
            }
        });
        let (observer, server) = (self.clone(), sim.clone());
        sim.set_event_faults(move |info| {
            let mut notes = observer.notes();
            let number = notes.event(info);
            let injected = injection.filter(|it| number.is_some_and(|number| it.is_at_event(number)));
            let Some(Injection { kind, .. }) = injected else { return EventFault::Deliver };
            notes.hit = notes.events.last().cloned();
            match kind {
                Kind::Lost => EventFault::Drop,
                Kind::Doubled => EventFault::Duplicate,
                Kind::Stale => EventFault::Swap,
                Kind::Late => {
                    let server = server.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(LATE_EVENT).await;
                        disturbances::expire(&server);
                    });
                    EventFault::Drop
                }
                Kind::FailsBefore | Kind::FailsAfter | Kind::Hangs | Kind::LateTwice => EventFault::Deliver,
            }
        });
    }

    /// Ends the life: what follows has no number, and meets no fault.
    pub(super) fn end_life(&self) {
        self.notes().has_ended = true;
    }

    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notes {
    fn check(&mut self, broken: Option<String>, before: &RequestInfo) {
        if let Some(broken) = broken.filter(|_| self.violation.is_none()) {
            self.violation = Some(format!("{broken}, seen before {}", shown(before)));
        }
    }

    /// Counts a request of the program; returns its number during the life.
    fn request(&mut self, info: &RequestInfo) -> Option<usize> {
        self.total += 1;
        if self.has_ended {
            return None;
        }
        let is_write = ["create", "update", "patch", "delete", "deletecollection"].contains(&info.verb.as_str());
        let is_record = info.resource == "events" && info.verb != "delete";
        self.writes += usize::from(is_write && !is_record);
        self.requests.push(shown(info));
        Some(self.requests.len())
    }

    /// Counts an event; returns its number during the life.
    fn event(&mut self, info: &EventInfo) -> Option<usize> {
        if self.has_ended {
            return None;
        }
        self.events.push(format!("{} {} {}/{}", info.event, info.resource, info.namespace, info.name));
        Some(self.events.len())
    }
}

fn shown(info: &RequestInfo) -> String {
    let query = if info.query.is_empty() { String::new() } else { format!("?{}", info.query) };
    format!("{} {}{query} by {}", info.verb, info.path, info.user)
}

/// Returns what a request deletes, without the letters of a generated name. `None` if the request deletes nothing, or what is
/// gone already.
fn deletion(sim: &Sim, info: &RequestInfo) -> Option<String> {
    if !info.verb.starts_with("delete") || info.query.contains("dryRun") {
        return None;
    }
    let RequestInfo { group, resource, namespace, name, .. } = info;
    let plural = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    if name.is_empty() {
        return Some(format!("all {plural} of {namespace}"));
    }
    let stem = |object: &Value| object["metadata"]["generateName"].as_str().map(|stem| format!("{stem}*"));
    let stem = sim.look_at(&plural, namespace, name, stem)?;
    Some(format!("{plural} {namespace}/{}", stem.as_ref().unwrap_or(name)))
}
