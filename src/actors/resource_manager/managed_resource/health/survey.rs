//! Walks over the objects of a ManagedResource: the first with a finding, and what is wrong with the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use cluster::{
    ApiError, Context, Resource,
    object::{self, GroupKind, GroupVersionKind, ObjectKey},
};
use kit::Deadline;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    super::{
        known::{Counted, Standing},
        shared::{ManagedResources, REJUDGE},
    },
    memory::{HealthMemory, Seen},
    run::{HealthReconciler, HealthRun},
};
use crate::{
    actors::resource_manager::health::{
        HealthVerdict, Judgement, judge,
        pods::{OLD_PODS, Quota},
        report::{self, Finding, Report},
    },
    api::resources::{keys::MANAGED_BY, managed_resource::ResourceRef},
};

const SHOWN: usize = 20;

const FIRST_PAUSE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Survey {
    pub(super) health: Answer<(usize, Finding)>,
    pub(super) progress: Answer<(usize, String)>,
    /// Why the verdict on roll-outs is unknown. The reconcile of `health-progressing` fails with it.
    pub(super) progress_error: Option<String>,
    pub(super) again: Option<Duration>,
    /// All objects with a finding, up to a bound, and why.
    pub(super) shown: Vec<(String, String)>,
    pub(super) hidden: usize,
    kinds: Vec<(GroupKind, Tally)>,
    /// Objects that are missing or unhealthy, or that could not be checked.
    pub(super) bad: usize,
    pub(super) progressing: usize,
    unwatched: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    healthy: usize,
    unhealthy: usize,
    unknown: usize,
}

/// A question to all objects in order: the first *yes* decides, unless an earlier object is not known yet.
#[derive(Default, Debug)]
pub(super) enum Answer<T> {
    #[default]
    None,
    First(T),
    Pending,
}

#[derive(Clone)]
enum SurveyState {
    Judged(Option<Box<Judgement>>),
    Missing(Option<String>),
    /// Why it is unknown, since when, and what would help.
    Unknown(String, Duration, Remedy),
    Starting,
    /// Only a read would tell, and nothing depends on it.
    Unread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    Watch,
    Attempt,
}

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

/// Checks all objects. Objects that no watch delivers are read, as long as something depends on them.
pub(super) async fn survey(
    run: &HealthRun<'_>,
    memory: &mut HealthMemory,
    refs: &[ResourceRef],
    absent: &BTreeSet<ObjectKey>,
) -> Survey {
    let kinds = kinds(run, memory, refs).await;
    let mut survey = Survey::default();
    for (index, reference) in refs.iter().enumerate() {
        let kind = reference.group_version_kind();
        if run.reconciler == HealthReconciler::Progress && !is_workload(&kind) {
            continue;
        }
        let state = match kinds.get(&kind) {
            Some(Ok(_)) if absent.contains(&reference.key()) => SurveyState::Missing(None),
            Some(Ok(resource)) => {
                let read = !survey.health.is_decided() || (is_workload(&kind) && !survey.progress.is_decided());
                let (state, is_reported) = run.state(memory, reference, resource, read).await;
                survey.unwatched += usize::from(!is_reported);
                state
            }
            Some(Err(state)) => state.clone(),
            None => continue,
        };
        let (bad, is_judged) = (survey.bad, matches!(state, SurveyState::Judged(_)));
        survey.enter(run, index, reference, &kind, state);
        let is_bad = survey.bad > bad;
        survey.count(kind.group_kind(), |tally| match (is_bad, is_judged) {
            (true, _) => &mut tally.unhealthy,
            (false, true) => &mut tally.healthy,
            (false, false) => &mut tally.unknown,
        });
    }
    survey
}

/// Returns how each kind is served, or what follows for its objects.
async fn kinds(
    run: &HealthRun<'_>,
    memory: &mut HealthMemory,
    refs: &[ResourceRef],
) -> BTreeMap<GroupVersionKind, Result<Resource, SurveyState>> {
    let counts = |kind: &GroupVersionKind| run.reconciler == HealthReconciler::Health || is_workload(kind);
    let wanted: BTreeSet<GroupVersionKind> = refs.iter().map(ResourceRef::group_version_kind).filter(counts).collect();
    let controller = run.controller;
    let mut kinds = BTreeMap::new();
    for kind in wanted {
        let served = match controller.target.discovery().mapping(&kind).await {
            Ok(resource) => {
                controller.objects.watch(&resource);
                memory.is_discovered(&kind);
                Ok(resource)
            }
            Err(error @ ApiError::NoMatch(_)) => {
                controller.awaits_kind(&run.reconcile.key, REJUDGE);
                memory.is_discovered(&kind);
                Err(SurveyState::Missing(Some(error.to_string())))
            }
            Err(error) => {
                controller.awaits_kind(&run.reconcile.key, REJUDGE);
                let since = memory.is_undiscovered_for(&kind, controller.env.clock.monotonic());
                Err(SurveyState::Unknown(format!("cannot discover {kind}: {error}"), since, Remedy::Attempt))
            }
        };
        kinds.insert(kind, served);
    }
    kinds
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

impl Survey {
    fn enter(
        &mut self,
        run: &HealthRun<'_>,
        index: usize,
        reference: &ResourceRef,
        kind: &GroupVersionKind,
        state: SurveyState,
    ) {
        match state {
            SurveyState::Missing(error) => self.bad(index, reference, Finding::Missing(error)),
            SurveyState::Starting => {
                self.health.pending();
                self.show(reference, || "not known yet: the watch of its kind begins".to_owned());
                if is_workload(kind) {
                    self.progress.pending();
                }
            }
            SurveyState::Unknown(error, since, remedy) => {
                if is_workload(kind) {
                    self.progress_error.get_or_insert_with(|| error.clone());
                }
                let patience = run.patience();
                if since >= patience {
                    self.bad(index, reference, Finding::CheckError(error));
                    return;
                }
                self.health.pending();
                self.show(reference, || format!("not known yet: {error}"));
                let next = match remedy {
                    Remedy::Watch => patience - since,
                    // Each pause is about as long as all before it together.
                    Remedy::Attempt => since.max(FIRST_PAUSE).min(patience - since),
                };
                self.again = Some(self.again.map_or(next, |again| again.min(next)));
            }
            SurveyState::Unread | SurveyState::Judged(None) => {}
            SurveyState::Judged(Some(judgement)) => self.judged(run, index, reference, kind, &judgement),
        }
    }

    fn judged(
        &mut self,
        run: &HealthRun<'_>,
        index: usize,
        reference: &ResourceRef,
        kind: &GroupVersionKind,
        judgement: &Judgement,
    ) {
        match &judgement.health {
            // Versions without rules only need to exist, although the watch judges another version.
            _ if !judge::is_checked(kind) => {}
            HealthVerdict::Fine => {}
            HealthVerdict::Bad(text) => self.bad(index, reference, Finding::Unhealthy(text.to_string())),
            HealthVerdict::Unreadable(text) => self.bad(index, reference, Finding::CheckError(text.to_string())),
        }
        match (&judgement.rollout, &judgement.pods) {
            _ if !is_workload(kind) => {}
            (HealthVerdict::Fine, None) => {}
            (HealthVerdict::Fine, Some(quota)) => match run.counted(&reference.key(), quota) {
                Counted::Known(true) => {}
                Counted::Known(false) => self.progressing(index, reference, OLD_PODS),
                Counted::Starting => self.progress.pending(),
                Counted::Failing(error) => {
                    self.progress_error.get_or_insert_with(|| format!("cannot watch v1, Kind=Pod: {error}"));
                }
            },
            (HealthVerdict::Bad(text), _) => self.progressing(index, reference, text),
            (HealthVerdict::Unreadable(text), _) => {
                self.progress_error.get_or_insert_with(|| format!("cannot check the roll-out of {reference}: {text}"));
            }
        }
    }

    fn bad(&mut self, index: usize, reference: &ResourceRef, finding: Finding) {
        self.bad += 1;
        self.show(reference, || match &finding {
            Finding::Missing(None) => "missing".to_owned(),
            Finding::Missing(Some(error)) => format!("missing: {error}"),
            Finding::Unhealthy(text) => format!("unhealthy: {text}"),
            Finding::CheckError(text) => format!("cannot be checked: {text}"),
        });
        self.health.yes((index, finding));
    }

    fn progressing(&mut self, index: usize, reference: &ResourceRef, text: &str) {
        self.progressing += 1;
        self.show(reference, || format!("progressing: {text}"));
        self.progress.yes((index, text.to_owned()));
    }

    /// Returns true if everything is fine, and any change would be reported.
    pub(super) fn is_unchanged(&self) -> bool {
        let (health, progress) = (&self.health, &self.progress);
        matches!((health, progress), (Answer::None, Answer::None))
            && self.progress_error.is_none()
            && self.again.is_none()
            && self.unwatched == 0
    }

    fn show(&mut self, reference: &ResourceRef, text: impl FnOnce() -> String) {
        if self.shown.len() < SHOWN {
            self.shown.push((reference.to_string(), text()));
        } else {
            self.hidden += 1;
        }
    }

    /// Counts an object. The refs are sorted by kind, so its kind is the last or a new one.
    fn count(&mut self, kind: GroupKind, standing: impl FnOnce(&mut Tally) -> &mut usize) {
        if self.kinds.last().is_none_or(|(last, _)| *last != kind) {
            self.kinds.push((kind, Tally::default()));
        }
        if let Some((_, tally)) = self.kinds.last_mut() {
            *standing(tally) += 1;
        }
    }

    pub(super) fn by_kind(&self) -> String {
        let parts = self.kinds.iter().take(SHOWN).map(|(kind, tally)| format!("{kind} {tally}"));
        let mut line = parts.collect::<Vec<_>>().join("; ");
        if self.kinds.len() > SHOWN {
            line.push_str(&format!("; and {} more kinds", self.kinds.len() - SHOWN));
        }
        line
    }

    pub(super) fn progress_report(&self, refs: &[ResourceRef]) -> Option<Report> {
        match &self.progress {
            Answer::First((index, text)) => refs.get(*index).map(|named| report::progress(Some((named, text)))),
            Answer::None if self.progress_error.is_none() => Some(report::progress(None)),
            Answer::None | Answer::Pending => None,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [(self.healthy, "healthy"), (self.unhealthy, "unhealthy"), (self.unknown, "unknown")];
        for (index, (count, word)) in counts.into_iter().filter(|(count, _)| *count > 0).enumerate() {
            write!(f, "{}{count} {word}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl HealthRun<'_> {
    /// How long to wait for a kind that cannot be watched, before it is reported (spec 20 §12).
    fn patience(&self) -> Duration {
        self.controller.settings.health.sync_period.get().min(Duration::from_secs(180)) / 2
    }

    fn counted(&self, deployment: &ObjectKey, quota: &Quota) -> Counted {
        let ManagedResources { pods, objects, .. } = &**self.controller;
        pods.count(&deployment.namespace, quota, || objects.namespaces_of(&deployment.group_kind()))
    }

    /// Returns the state, and whether a watch delivers it. `read`: something depends on the state of an unwatched object.
    async fn state(
        &self,
        memory: &mut HealthMemory,
        reference: &ResourceRef,
        resource: &Resource,
        read: bool,
    ) -> (SurveyState, bool) {
        let (key, now) = (reference.key(), self.controller.env.clock.monotonic());
        let kind = key.group_kind();
        let standing = self.controller.objects.standing(&key);
        let is_reported = matches!(standing, Standing::Known(_));
        if !matches!(standing, Standing::Failing(_)) {
            memory.is_watched(&kind);
        }
        let state = match standing {
            Standing::Known(judgement) => {
                memory.forget_read(&key);
                SurveyState::Judged(judgement)
            }
            Standing::Starting => SurveyState::Starting,
            Standing::Failing(error) => {
                let error = format!("cannot watch {}: {error}", reference.group_version_kind());
                SurveyState::Unknown(error, memory.has_failed_for(&kind, now), Remedy::Watch)
            }
            Standing::Unknown => {
                // A period may be a tenth shorter than set. Reads of the last period must be too old for this one.
                let limit = self.controller.settings.health.sync_period.get() * 8 / 10;
                let known = memory.read(&key, now, limit);
                let seen = match known {
                    Some(seen) => Ok(seen),
                    None if read => self.read(memory, reference, resource, now).await,
                    None => return (SurveyState::Unread, is_reported),
                };
                match seen {
                    Ok(Seen::Missing) => SurveyState::Missing(None),
                    Ok(Seen::There(judgement)) => SurveyState::Judged(judgement),
                    Err(error) => {
                        let since = memory.is_unread_for(&key, now);
                        SurveyState::Unknown(format!("cannot read it: {error}"), since, Remedy::Attempt)
                    }
                }
            }
        };
        (state, is_reported)
    }

    /// Reads an object that no watch delivers. If a watch should deliver it, enters it into the cache.
    async fn read(
        &self,
        memory: &mut HealthMemory,
        reference: &ResourceRef,
        resource: &Resource,
        now: Instant,
    ) -> Result<Seen, ApiError> {
        let (controller, key) = (self.controller, reference.key());
        let resource = &self.judged_in(resource);
        let at = resource.at(if resource.namespaced { key.namespace.as_str() } else { "" }, &reference.name);
        let asked = controller.env.clock.monotonic();
        // A server that does not answer must not use up the time in which the other objects are judged.
        let deadline = self.context.deadline.min(Deadline::after(self.patience()));
        let context = Context { deadline, ..self.context.clone() };
        let seen = match controller.target.get(&context, &at).await {
            Ok(live) => {
                if self.is_watched(&live) {
                    controller.objects.wrote(&key, &live, &self.context.key, asked);
                }
                Seen::There(Judgement::of(&resource.group_version_kind(), &live))
            }
            Err(error) if error.is_not_found() => Seen::Missing,
            Err(error) => return Err(error),
        };
        memory.has_read(&key, now, seen.clone());
        Ok(seen)
    }

    /// Returns how to read an object that may be in a roll-out: in the version whose rules are known, whatever the
    /// reference says (spec 20 §13). If that version is not served, only the object's existence counts.
    fn judged_in(&self, resource: &Resource) -> Resource {
        let kind = resource.group_version_kind();
        let known = judge::checked_version(&kind.group_kind()).filter(|_| is_workload(&kind));
        let known = known.map(|version| GroupVersionKind::new(&kind.group, version, &kind.kind));
        let served = known.and_then(|kind| self.controller.target.discovery().known(&kind));
        served.unwrap_or_else(|| resource.clone())
    }

    fn is_watched(&self, live: &Value) -> bool {
        object::label(live, MANAGED_BY) == Some(self.controller.settings.apply.managed_by_label_value.as_str())
    }
}
