//! What wakes the actors of ManagedResources: event handlers of watches, and listeners of other sources.

use std::{
    collections::BTreeSet,
    rc::{Rc, Weak},
};

use cluster::{
    Cached, Definitions, How, Index, Watch,
    object::{GroupKind, NamespacedName, ObjectKey},
};
use kit::{Causes, Signal, Wake, WeakSupervised};
use tokio::sync::watch;

use super::{
    super::{
        known::{
            CachedManagedResource, CachedSecret, HealthListener, HealthRegistry, ManagedObjects,
            ManagedResourceSummary, News, PodsListener, ScalingListener,
        },
        report::{self, ConditionCounts, Summaries},
        shared::{CHANGED, HEALTH, ManagedResources, REJUDGE, ROLLOUT, SCALED, SECRET},
    },
    trigger,
};
use crate::{
    actors::resource_manager::{
        bundle::identity::Equivalences,
        health::eligibility::{self, Eligibility},
    },
    api::resources::class::OwnClass,
};

type Waker = WeakSupervised<ManagedResources>;

pub(crate) fn subscribe_bundles(
    controller: &Rc<ManagedResources>,
    bundles: &Watch<CachedManagedResource>,
    waker: &Waker,
) {
    let (class, waker, registry) =
        (controller.settings.class.clone(), waker.clone(), controller.health_registry.clone());
    let summaries = Summaries::new(&class);
    let counts = ConditionCounts::new(&controller.env.observers, &class, controller.settings.metric_per_bundle);
    bundles.subscribe(move |change| {
        let (old, new) =
            (change.old.map(CachedManagedResource::summary), change.new.map(CachedManagedResource::summary));
        registry.set(change.name, new.is_some_and(|new| eligibility::of(&class, &new.mr) == Eligibility::Eligible));
        let causes = bundle_causes(&class, change.how, old, new);
        let first = change.how == How::First;
        waker.wake(change.name, if first { Wake::low(causes) } else { Wake::high(causes) });
        counts.change(change.name, old.map(|old| &old.mr), new.map(|new| &new.mr));
        let own = new.filter(|new| class.is_responsible(&new.mr));
        let problem = own.and_then(|own| report::problem(&own.mr.status.conditions));
        waker.set_object(change.name, new.and_then(|new| summaries.of(change.name, new)), problem);
    });
}

fn bundle_causes(
    class: &OwnClass,
    how: How<'_>,
    old: Option<&ManagedResourceSummary>,
    new: Option<&ManagedResourceSummary>,
) -> Causes {
    let references = old.map(|old| old.references) != new.map(|new| new.references);
    let (old, new) = (old.map(|old| &old.mr), new.map(|new| &new.mr));
    let is_triggered = trigger::is_triggered(class, old, new);
    let is_judged = eligibility::is_triggered(class, old, new, references);
    match (how, is_triggered) {
        (_, false) if !is_judged => Causes::NONE,
        (How::First, _) => Causes::LISTED,
        (_, true) => CHANGED.with(Causes::OBJECT).with(if is_judged { REJUDGE } else { Causes::NONE }),
        (_, false) => REJUDGE,
    }
}

pub(crate) fn subscribe_secrets(
    controller: &Rc<ManagedResources>,
    secrets: &Watch<CachedSecret>,
    index: Index<NamespacedName>,
    waker: &Waker,
) {
    let (class, bundles) = (controller.settings.class.clone(), controller.bundles.clone());
    let waker = waker.clone();
    secrets.subscribe(move |change| {
        // Secrets that a reconcile read are entered too: if one is newer than the known version, the other
        // ManagedResources must know.
        let (old, new) = (change.old.map(Cached::version), change.new.map(Cached::version));
        if !trigger::is_new_version(old, new, change.how == How::First) {
            return;
        }
        for key in index.get(change.name) {
            let is_concerned = |bundle: &CachedManagedResource| {
                trigger::is_woken_by_secret(&class, &change.name.name, &bundle.summary().mr)
            };
            if bundles.store().get(&key).as_ref().is_some_and(is_concerned) {
                waker.wake(&key, Wake::high(SECRET));
            }
        }
    });
}

pub(crate) async fn wake_on_new_kinds(
    controller: Weak<ManagedResources>,
    waker: Waker,
    mut changes: watch::Receiver<u64>,
) {
    while changes.changed().await.is_ok() {
        let Some(controller) = controller.upgrade() else { return };
        controller.objects.follow_discovery();
        let awaiting = controller.awaiting_kinds.take();
        for (bundle, causes) in awaiting {
            waker.wake(&bundle, Wake::high(causes));
        }
    }
}

/// Starts watches that wait for definitions, whenever these may have become known. Ends after the controller.
pub(crate) async fn watch_defined_kinds(controller: Weak<ManagedResources>, definitions: Definitions) {
    loop {
        let moment = definitions.signal().moment();
        let Some(controller) = controller.upgrade() else { return };
        controller.objects.follow_definitions();
        drop(controller);
        Signal::raised_after(&moment).await;
    }
}

pub(crate) fn wake_on_health(registry: &Rc<HealthRegistry>, waker: &Waker) -> HealthListener {
    let (registry, waker) = (registry.clone(), waker.clone());
    Rc::new(move |bundle, object, news| {
        if !registry.is_judged(bundle) {
            return;
        }
        if let (News::Gone, Some(object)) = (news, object) {
            registry.note_absence(bundle, object);
        }
        let causes = match news {
            News::Gone | News::Judged { health: true, rollout: false } => HEALTH,
            News::Judged { health: true, rollout: true } => HEALTH.with(ROLLOUT),
            News::Judged { health: false, rollout: true } => ROLLOUT,
            News::Judged { health: false, rollout: false } => Causes::NONE,
        };
        waker.wake(bundle, Wake::high(causes));
    })
}

pub(crate) fn wake_on_pods(objects: &Rc<ManagedObjects>, registry: &Rc<HealthRegistry>, waker: &Waker) -> PodsListener {
    let (objects, registry, waker) = (objects.clone(), registry.clone(), waker.clone());
    Rc::new(move |namespace, pods| {
        let bundles: BTreeSet<NamespacedName> = match namespace {
            Some(namespace) => {
                let deployments = objects.deployments_of(namespace, pods);
                deployments.iter().flat_map(|deployment| objects.holders(deployment)).collect()
            }
            None => objects.holders_of(&GroupKind::new("apps", "Deployment")),
        };
        objects.news_for(&bundles);
        for bundle in bundles.iter().filter(|bundle| registry.is_judged(bundle)) {
            waker.wake(bundle, Wake::high(ROLLOUT));
        }
    })
}

pub(crate) fn wake_on_scaling(objects: &Rc<ManagedObjects>, waker: &Waker) -> ScalingListener {
    let (waker, objects) = (waker.clone(), objects.clone());
    Rc::new(move |object: &ObjectKey| {
        // The ManagedResource may own it under an equivalent group.
        for key in Equivalences::predefined().of_key(object).chain([object.clone()]) {
            for bundle in objects.holders(&key) {
                waker.wake(&bundle, Wake::high(SCALED).about(key.clone()));
            }
        }
    })
}
