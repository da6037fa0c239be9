//! One reconcile of a health reconciler: judge or not, survey, at most one write (spec 20 §7, §10, §13).

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::object::{NamespacedName, ObjectKey};
use kit::{Causes, Failure, Outcome, Reconcile};

use super::{
    super::{
        known::CachedManagedResource,
        report::{StatusCell, message},
        shared::{ActorObject, ManagedResources, REJUDGE},
    },
    idle::JudgedState,
    memory::HealthMemory,
    run::{HealthReconciler, HealthRun, are_pods_needed, period},
    service,
    survey::{Answer, Survey, survey},
};
use crate::{
    actors::resource_manager::health::{
        eligibility::{self, Eligibility},
        report::{self, Finding, Report},
    },
    api::{
        meta::conditions,
        resources::{
            condition_names::{RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
            managed_resource::{ManagedResource, ManagedResourceStatus, ResourceRef},
        },
    },
};

/// Texts that change while status and reason stay are written at most this often (spec 20, "Better than upstream" 10).
const TEXTS_EVERY: Duration = Duration::from_secs(2);

struct Surveyed {
    next: Duration,
    /// As long as nothing changes, another check would find the same.
    is_unchanged: bool,
    /// The state of the ManagedResource after the check, if its conditions are known to say what was found.
    judged_state: Option<JudgedState>,
}

pub(super) type NewCondition = (&'static str, Report);

pub(crate) async fn run(
    controller: &Rc<ManagedResources>,
    object: &ActorObject,
    memory: &mut HealthMemory,
    reconcile: &Reconcile<NamespacedName, ObjectKey>,
    reconciler: HealthReconciler,
) -> Result<Outcome, Failure> {
    if reconciler == HealthReconciler::Health {
        object.record.live_reads.replace(Rc::downgrade(memory.reads()));
    }
    if let Some(moment) = controller.initial_sync.under_way(&reconcile.key) {
        // The lists of the initial sync enter what would have to be read one by one.
        return Ok(Outcome::Wait(vec![moment]));
    }
    let now = controller.env.clock.monotonic();
    // After a failure the back-off is the pause: another outcome would restart the back-off.
    let is_repeated = reconcile.because_of(Causes::AGAIN);
    if let Some(pause) =
        memory.pause(reconcile.because_of(REJUDGE.with(Causes::RESTARTED)), now).filter(|_| !is_repeated)
    {
        return Ok(Outcome::After(pause));
    }
    let run = HealthRun { controller, reconcile, reconciler, context: controller.context(reconcile) };
    object.status.announce_unanswered(controller, &reconcile.key);
    controller.pods.end_if_idle(are_pods_needed(controller));
    let Some(mr) =
        controller.bundles.store().with(&reconcile.key, CachedManagedResource::managed_resource).transpose()?
    else {
        return Ok(Outcome::Retire);
    };
    match eligibility::of(&controller.settings.class, &mr) {
        Eligibility::Eligible => {}
        Eligibility::Deferred => return Ok(Outcome::After(period(controller))),
        Eligibility::Excluded => {
            reconcile.detail(Vec::new());
            let class = &controller.settings.class;
            // No further event may report a ManagedResource of another class.
            if class.is_responsible(&mr) || class.holds(&mr) {
                return Ok(Outcome::Done);
            }
            controller.objects.register(&reconcile.key, BTreeSet::new());
            return Ok(Outcome::Retire);
        }
    }
    memory.begins(mr.status.resources.len(), now);
    run.look(&object.status, memory, &mr).await
}

impl HealthRun<'_> {
    async fn look(
        &self,
        cell: &StatusCell,
        memory: &mut HealthMemory,
        mr: &ManagedResource,
    ) -> Result<Outcome, Failure> {
        let (controller, key) = (self.controller, &self.reconcile.key);
        let (revision, judged_state) = (controller.objects.revision(key), self.judged_state());
        let refs = &mr.status.resources;
        controller.objects.hold(key, refs.iter().map(ResourceRef::key));
        let absent = match self.reconciler {
            HealthReconciler::Health => controller.health_registry.take_absent(key),
            HealthReconciler::Progress => BTreeSet::new(),
        };
        let surveyed = self.surveyed(cell, memory, mr, judged_state, &absent).await;
        if surveyed.is_err() {
            // The absence was not reported.
            absent.iter().for_each(|object| controller.health_registry.note_absence(key, object));
        }
        let Surveyed { next, is_unchanged, judged_state } = surveyed?;
        Ok(match revision.filter(|_| is_unchanged).zip(judged_state) {
            _ if !absent.is_empty() => Outcome::Continue,
            Some((objects, judged_state)) => Outcome::Idle(next, self.next_idle_check(objects, judged_state)),
            None => Outcome::After(next),
        })
    }

    async fn surveyed(
        &self,
        cell: &StatusCell,
        memory: &mut HealthMemory,
        mr: &ManagedResource,
        judged_state: Option<JudgedState>,
        absent: &BTreeSet<ObjectKey>,
    ) -> Result<Surveyed, Failure> {
        let refs = &mr.status.resources;
        memory.keep_read(|key| self.controller.objects.is_held_by(key, &self.reconcile.key));
        let survey = survey(self, memory, refs, absent).await;
        let mut reports = self.reports(memory, mr, &survey).await;
        let held = self.hold_back(memory, mr, &survey, &mut reports);
        self.show(&survey, refs.len());
        let changes = changes(&mr.status, &reports);
        if let Some(pause) = self.put_off(memory, &mr.status, &changes) {
            let next = held.map_or(pause, |held| held.min(pause));
            return Ok(Surveyed { next, is_unchanged: false, judged_state: None });
        }
        let judged_state = if changes.is_empty() {
            judged_state
        } else {
            let written = self.write(cell, mr, &reports).await?;
            memory.written = Some(self.controller.env.clock.monotonic());
            written
        };
        match &survey.progress_error {
            Some(error)
                if self.reconciler == HealthReconciler::Progress && !matches!(survey.progress, Answer::First(_)) =>
            {
                Err(Failure::new(error.clone()))
            }
            Some(_) | None => {
                let period = period(self.controller);
                let next = survey.again.into_iter().chain(held).min().filter(|again| *again < period);
                let next = next.unwrap_or_else(|| self.controller.idle_period(period));
                Ok(Surveyed { next, is_unchanged: survey.is_unchanged() && held.is_none(), judged_state })
            }
        }
    }

    async fn reports(&self, memory: &mut HealthMemory, mr: &ManagedResource, survey: &Survey) -> Vec<NewCondition> {
        let refs = &mr.status.resources;
        let mut reports = Vec::new();
        let health = match &survey.health {
            _ if self.reconciler == HealthReconciler::Progress => None,
            Answer::Pending => None,
            Answer::None => Some(report::health(None)),
            Answer::First((index, finding)) => match (refs.get(*index), finding) {
                (Some(named), Finding::Unhealthy(text)) if service::has_events(named) => {
                    let text = format!("{text}{}", service::events(self, memory, named).await);
                    Some(report::health(Some((named, &Finding::Unhealthy(text)))))
                }
                (Some(named), finding) => Some(report::health(Some((named, finding)))),
                (None, _) => None,
            },
        };
        reports.extend(health.map(|report| (RESOURCES_HEALTHY, report)));
        reports.extend(survey.progress_report(refs).map(|report| (RESOURCES_PROGRESSING, report)));
        for (_, report) in &mut reports {
            report.message = message::bounded(&report.message);
        }
        reports
    }

    /// Returns how long a write has to wait that would only change texts.
    fn put_off(
        &self,
        memory: &HealthMemory,
        status: &ManagedResourceStatus,
        changes: &[&NewCondition],
    ) -> Option<Duration> {
        let only_texts = changes.iter().all(|(kind, report)| {
            let known = conditions::find(&status.conditions, kind);
            known.is_some_and(|known| known.status == report.status && known.reason == report.reason)
        });
        let since = self.controller.env.clock.monotonic().saturating_duration_since(memory.written?);
        (only_texts && !changes.is_empty() && since < TEXTS_EVERY).then(|| TEXTS_EVERY - since)
    }

    /// Writes what the conditions lack, unless the ManagedResource changed, which wakes it. Returns its state then.
    async fn write(
        &self,
        cell: &StatusCell,
        mr: &ManagedResource,
        reports: &[NewCondition],
    ) -> Result<Option<JudgedState>, Failure> {
        let controller = self.controller;
        let Some(basis) = controller.bundle(cell, &self.context, &self.reconcile.key).await? else { return Ok(None) };
        if basis.mr.metadata.uid != mr.metadata.uid {
            return Ok(None);
        }
        let now = controller.env.clock.wall();
        let mut is_same = false;
        let write = cell.write(controller, &self.context, &basis, |present| {
            let still = ManagedResource { status: present.clone(), ..basis.mr.clone() };
            let is_judged = eligibility::of(&controller.settings.class, &still) == Eligibility::Eligible;
            if !is_judged || present.resources != mr.status.resources {
                return present.clone();
            }
            is_same = true;
            let mut next = present.clone();
            // Another client may have changed a condition since the check began.
            for (kind, report) in changes(present, reports) {
                let (reason, message) = (&report.reason, &report.message);
                conditions::set(&mut next.conditions, kind, report.status.clone(), reason, message, now);
            }
            next
        });
        let after = write
            .await
            .map_err(|error| Failure::new(format!("could not update the ManagedResource status: {error}")))?;
        Ok(JudgedState::of(&controller.settings.class, self.reconciler, after.cached.summary()).filter(|_| is_same))
    }

    fn show(&self, survey: &Survey, objects: usize) {
        if self.reconciler != HealthReconciler::Health {
            return;
        }
        let Survey { bad, progressing, shown, hidden, .. } = survey;
        let summary = format!("{objects} objects: {bad} not healthy, {progressing} in a roll-out");
        let mut details = vec![("Health".to_owned(), summary)];
        if objects > 0 {
            // One line for all kinds: there are thousands of ManagedResources.
            details.push(("Kinds".to_owned(), survey.by_kind()));
        }
        details.extend(shown.iter().cloned());
        if *hidden > 0 {
            details.push(("…".to_owned(), format!("and {hidden} more")));
        }
        self.reconcile.detail(details);
        if bad + progressing > 0 {
            let all: BTreeMap<&str, &str> = shown.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            tracing::debug!(objects, bad, progressing, shown = ?all, "objects that are unhealthy or progressing");
        }
    }
}

fn changes<'a>(status: &ManagedResourceStatus, reports: &'a [NewCondition]) -> Vec<&'a NewCondition> {
    let differs = |kind: &str, report: &Report| {
        let condition = conditions::find(&status.conditions, kind);
        !condition.is_some_and(|known| {
            let codes = known.codes.is_empty();
            codes && known.status == report.status && known.reason == report.reason && known.message == report.message
        })
    };
    reports.iter().filter(|(kind, report)| differs(kind, report)).collect()
}
