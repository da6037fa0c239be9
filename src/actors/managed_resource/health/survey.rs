//! The walk over the objects of a bundle: which of them is the first that is not fine, and what is wrong with the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    super::targets::Standing,
    memory::{HealthMemory, Seen},
    pass::{Duty, Round},
    pods::Counted,
};
use crate::{
    actors::{
        health::{
            Judgement, Verdict, judge,
            pods::OLD_PODS,
            report::{self, Finding, Report},
        },
        kit::Failure,
    },
    api::{
        keys::MANAGED_BY,
        managed_resource::ResourceRef,
        object::{self, GroupVersionKind, ObjectKey},
    },
    cluster::{ApiError, Resource},
};

/// Objects that are shown on the dashboard; the others are counted.
const SHOWN: usize = 20;

/// What a walk found.
#[derive(Default)]
pub(super) struct Survey {
    /// The first object with a finding; its place in the refs.
    pub(super) health: Answer<(usize, Finding)>,
    /// The first object that is being rolled out.
    pub(super) progress: Answer<(usize, String)>,
    /// Why the verdict on roll-outs cannot be had; the pass of `health-progressing` fails with it.
    pub(super) progress_error: Option<String>,
    /// When to look again, if that is before the period.
    pub(super) again: Option<Duration>,
    /// All objects that are not fine, up to a bound, and how many there are.
    pub(super) shown: Vec<(String, String)>,
    /// Objects that are missing or unhealthy, or that could not be checked.
    pub(super) bad: usize,
    /// Objects that are being rolled out.
    pub(super) progressing: usize,
    /// Objects that no watch told of.
    unwatched: usize,
}

/// A question to all objects in order: the first *yes* decides, unless something before it is not known yet.
#[derive(Default, Debug)]
pub(super) enum Answer<T> {
    /// None of them.
    #[default]
    None,
    /// This one.
    First(T),
    /// Not known yet.
    Pending,
}

/// How an object stands.
enum State {
    Judged(Option<Box<Judgement>>),
    Missing(Option<String>),
    /// Its kind cannot be watched, for this reason, and for this long.
    Unwatchable(String, Duration),
    /// Its kind's watch has not begun.
    Starting,
}

// === impl Answer ===

impl<T> Answer<T> {
    fn yes(&mut self, first: T) {
        if let Self::None = self {
            *self = Self::First(first);
        }
    }

    fn pending(&mut self) {
        if let Self::None = self {
            *self = Self::Pending;
        }
    }

    fn is_decided(&self) -> bool {
        !matches!(self, Self::None)
    }
}

// === the walk ===

/// Looks at all objects. Objects that no watch tells of are read, as long as something depends on them.
pub(super) async fn survey(
    round: &Round<'_>,
    memory: &mut HealthMemory,
    refs: &[ResourceRef],
    absent: &BTreeSet<ObjectKey>,
) -> Result<Survey, Failure> {
    let kinds = kinds(round, refs).await?;
    let mut survey = Survey::default();
    for (index, reference) in refs.iter().enumerate() {
        let kind = reference.group_version_kind();
        if round.duty == Duty::Progress && !is_workload(&kind) {
            continue;
        }
        let resource = match kinds.get(&kind) {
            Some(Ok(resource)) => Some(resource),
            Some(Err(_)) | None => None,
        };
        let state = match resource {
            Some(_) if absent.contains(&reference.key()) => State::Missing(None),
            Some(resource) => {
                let read = !survey.health.is_decided() || (is_workload(&kind) && !survey.progress.is_decided());
                let (state, is_told) = round.state(memory, reference, resource, read).await?;
                survey.unwatched += usize::from(!is_told);
                match state {
                    Some(state) => state,
                    None => continue,
                }
            }
            None => State::Missing(kinds.get(&kind).and_then(|kind| kind.as_ref().err().cloned())),
        };
        survey.enter(round, index, reference, &kind, state);
    }
    Ok(survey)
}

/// How the target serves the kinds; the text of the error where it does not.
async fn kinds(
    round: &Round<'_>,
    refs: &[ResourceRef],
) -> Result<BTreeMap<GroupVersionKind, Result<Resource, String>>, Failure> {
    let counts = |kind: &GroupVersionKind| round.duty == Duty::Health || is_workload(kind);
    let wanted: BTreeSet<GroupVersionKind> = refs.iter().map(ResourceRef::group_version_kind).filter(counts).collect();
    let controller = round.controller;
    let mut kinds = BTreeMap::new();
    for kind in wanted {
        let served = match controller.target.discovery().mapping(&kind).await {
            Ok(resource) => {
                controller.targets.watch(&resource);
                Ok(resource)
            }
            Err(error @ ApiError::NoMatch(_)) => {
                controller.desk.awaits_kind(&round.pass.key);
                Err(error.to_string())
            }
            Err(error) => return Err(error.into()),
        };
        kinds.insert(kind, served);
    }
    Ok(kinds)
}

/// The kinds that can be in a roll-out (spec 20 §13); their version does not matter.
fn is_workload(kind: &GroupVersionKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet")
            | ("monitoring.coreos.com", "Prometheus" | "Alertmanager")
            | ("cert.gardener.cloud", "Certificate" | "Issuer")
    )
}

// === impl Survey ===

impl Survey {
    fn enter(
        &mut self,
        round: &Round<'_>,
        index: usize,
        reference: &ResourceRef,
        kind: &GroupVersionKind,
        state: State,
    ) {
        match state {
            State::Missing(error) => self.bad(index, reference, Finding::Missing(error)),
            State::Starting => {
                self.health.pending();
                if is_workload(kind) {
                    self.progress.pending();
                }
            }
            State::Unwatchable(error, since) => {
                let patience = round.patience();
                if since < patience {
                    self.health.pending();
                    self.again = Some(self.again.map_or(patience - since, |again| again.min(patience - since)));
                } else {
                    self.bad(index, reference, Finding::CheckError(format!("cannot watch {kind}: {error}")));
                }
                if is_workload(kind) {
                    self.progress_error.get_or_insert_with(|| format!("cannot watch {kind}: {error}"));
                }
            }
            State::Judged(None) => {}
            State::Judged(Some(judgement)) => self.judged(round, index, reference, kind, &judgement),
        }
    }

    fn judged(
        &mut self,
        round: &Round<'_>,
        index: usize,
        reference: &ResourceRef,
        kind: &GroupVersionKind,
        judgement: &Judgement,
    ) {
        match &judgement.health {
            // Of versions without rules only the existence counts, although the watch judges in another one.
            _ if !judge::is_checked(kind) => {}
            Verdict::Fine => {}
            Verdict::Bad(text) => self.bad(index, reference, Finding::Unhealthy(text.to_string())),
            Verdict::Unreadable(text) => self.bad(index, reference, Finding::CheckError(text.to_string())),
        }
        match (&judgement.rollout, &judgement.pods) {
            _ if !is_workload(kind) => {}
            (Verdict::Fine, None) => {}
            (Verdict::Fine, Some(quota)) => match round.controller.pods.count(&reference.key().namespace, quota) {
                Counted::Settled(true) => {}
                Counted::Settled(false) => self.progressing(index, reference, OLD_PODS),
                Counted::Starting => self.progress.pending(),
                Counted::Failing(error) => {
                    self.progress_error.get_or_insert_with(|| format!("cannot watch v1, Kind=Pod: {error}"));
                }
            },
            (Verdict::Bad(text), _) => self.progressing(index, reference, text),
            (Verdict::Unreadable(text), _) => {
                self.progress_error.get_or_insert_with(|| format!("cannot check the roll-out of {reference}: {text}"));
            }
        }
    }

    fn bad(&mut self, index: usize, reference: &ResourceRef, finding: Finding) {
        self.bad += 1;
        if self.shown.len() < SHOWN {
            let state = match &finding {
                Finding::Missing(None) => "missing".to_owned(),
                Finding::Missing(Some(error)) => format!("missing: {error}"),
                Finding::Unhealthy(text) => format!("unhealthy: {text}"),
                Finding::CheckError(text) => format!("cannot be checked: {text}"),
            };
            self.shown.push((reference.to_string(), state));
        }
        self.health.yes((index, finding));
    }

    fn progressing(&mut self, index: usize, reference: &ResourceRef, text: &str) {
        self.progressing += 1;
        if self.shown.len() < SHOWN {
            self.shown.push((reference.to_string(), format!("progressing: {text}")));
        }
        self.progress.yes((index, text.to_owned()));
    }

    /// Whether all is fine, and any change of that would be told of.
    pub(super) fn is_calm(&self) -> bool {
        let (health, progress) = (&self.health, &self.progress);
        matches!((health, progress), (Answer::None, Answer::None))
            && self.progress_error.is_none()
            && self.again.is_none()
            && self.unwatched == 0
    }

    /// The condition `ResourcesProgressing`, if it is known.
    pub(super) fn progress_report(&self, refs: &[ResourceRef]) -> Option<Report> {
        match &self.progress {
            Answer::First((index, text)) => refs.get(*index).map(|named| report::progress(Some((named, text)))),
            Answer::None if self.progress_error.is_none() => Some(report::progress(None)),
            Answer::None | Answer::Pending => None,
        }
    }
}

// === impl Round ===

impl Round<'_> {
    /// How long a kind that cannot be watched is waited for, before it is reported (spec 20 §12).
    fn patience(&self) -> Duration {
        self.controller.settings.health.sync_period.min(Duration::from_secs(180)) / 2
    }

    /// How an object stands, and whether a watch tells of it. `None` if that is not known and `read` says that nothing
    /// depends on it.
    async fn state(
        &self,
        memory: &mut HealthMemory,
        reference: &ResourceRef,
        resource: &Resource,
        read: bool,
    ) -> Result<(Option<State>, bool), Failure> {
        let (key, now) = (reference.key(), self.controller.env.clock.monotonic());
        let kind = key.group_kind();
        let standing = self.controller.targets.standing(&key);
        let is_told = matches!(standing, Standing::Known(_));
        if !matches!(standing, Standing::Failing(_)) {
            memory.is_watched(&kind);
        }
        let state = match standing {
            Standing::Known(judgement) => {
                memory.forget_read(&key);
                State::Judged(judgement)
            }
            Standing::Starting => State::Starting,
            Standing::Failing(error) => State::Unwatchable(error, memory.has_failed_for(&kind, now)),
            Standing::Unknown => {
                // A period is stretched by up to a tenth: what was read in the last one is not old enough for this one.
                let limit = self.controller.settings.health.sync_period * 8 / 10;
                let known = memory.read(&key, now, limit).cloned();
                let seen = match known {
                    Some(seen) => seen,
                    None if read => self.read(memory, reference, resource, now).await?,
                    None => return Ok((None, is_told)),
                };
                match seen {
                    Seen::Missing => State::Missing(None),
                    Seen::There(judgement) => State::Judged(judgement),
                }
            }
        };
        Ok((Some(state), is_told))
    }

    /// Reads an object that no watch tells of. One that a watch should tell of is entered into its store.
    async fn read(
        &self,
        memory: &mut HealthMemory,
        reference: &ResourceRef,
        resource: &Resource,
        now: Instant,
    ) -> Result<Seen, Failure> {
        let (controller, key) = (self.controller, reference.key());
        let at = resource.at(if resource.namespaced { key.namespace.as_str() } else { "" }, &reference.name);
        let asked = controller.env.clock.monotonic();
        let seen = match controller.target.get(&self.context, &at).await {
            Ok(live) => {
                if self.is_watched(&live) {
                    controller.targets.wrote(&key, &live, &self.writer, asked);
                }
                Seen::There(Judgement::of(&resource.group_version_kind(), &live))
            }
            Err(error) if error.is_not_found() => Seen::Missing,
            Err(error) => return Err(Failure::new(format!("cannot read {reference}: {error}"))),
        };
        memory.has_read(&key, now, seen.clone());
        Ok(seen)
    }

    /// Whether the object carries the label by which objects are watched.
    fn is_watched(&self, live: &Value) -> bool {
        object::label(live, MANAGED_BY) == Some(self.controller.settings.managed_by.as_str())
    }
}
