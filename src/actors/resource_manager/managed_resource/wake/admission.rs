//! Wakes the ManagedResources concerned when mutating admission may answer differently (spec 10 §11.3, decision 40). A
//! kind that cannot be watched, because it is not served or denied, wakes no ManagedResource: then only the period of
//! [`Revalidation`](super::super::known::Revalidation) counts. Nothing waits for these watches.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::{Rc, Weak},
    time::Duration,
};

use cluster::{
    CachedFields, Change, How, Resource, Watch, WatchOptions, Watches,
    object::{GroupKind, GroupVersionKind, NamespacedName},
};
use kit::{Wake, WeakSupervised, hash_of};
use serde_json::Value;
use tokio::sync::Notify;

use super::super::{
    known::{ADMISSION_LAG, Admission, MatchedKinds, SPREAD, millis},
    shared::{ManagedResources, REVALIDATE},
};
use crate::api::kinds;

/// The versions in which policies may be read, the preferred one first. What they match is expressed alike.
const POLICY_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

const GROUP: &str = "admissionregistration.k8s.io";

/// Changes are collected for this long, so that the ManagedResources concerned are looked up once.
const COLLECTING: Duration = Duration::from_millis(250);

pub(crate) struct AdmissionChanges {
    watches: Vec<Watch<CachedFields<Admission>>>,
    namespaces: Watch<CachedFields<u64>>,
    turns: Rc<Turns>,
}

#[derive(Default)]
struct Turns {
    /// Kinds whose admission changed, and whose owners have not been looked up yet.
    kinds: RefCell<Option<MatchedKinds>>,
    namespaces: RefCell<BTreeSet<String>>,
    /// When namespaces changed last, for those that changed within [`SPREAD`].
    lately: RefCell<BTreeMap<String, u64>>,
    pending: RefCell<BTreeMap<NamespacedName, Turn>>,
    changed: Notify,
    ended: Cell<bool>,
}

/// The turn of a ManagedResource. If it comes before the last change has settled, another turn follows.
#[derive(Clone, Copy)]
struct Turn {
    at: u64,
    up_to_date: u64,
}

impl AdmissionChanges {
    /// Opens the watches. First lists wake no ManagedResource.
    pub(crate) fn open(controller: &Rc<ManagedResources>, watches: &Watches) -> Self {
        let turns = Rc::<Turns>::default();
        let namespaces =
            WatchOptions::new(kinds::NAMESPACE, |namespace| CachedFields::of(namespace, hash_of_marks(namespace)));
        let namespaces = watches.open(namespaces.metadata().unawaited());
        let (known, own) = (Rc::downgrade(controller), turns.clone());
        namespaces.subscribe(move |change| own.namespace_changed(change, &known));

        let kind = |version, kind, plural| Resource::new(GROUP, version, kind, plural, false);
        let open = |resource, of: fn(&Value) -> Admission| {
            watches.open(WatchOptions::new(resource, move |it| CachedFields::of(it, of(it))).optional().unawaited())
        };
        let configurations = kind("v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
        let configurations = open(configurations, Admission::of_configuration);
        let own = turns.clone();
        configurations.subscribe(move |change| own.admission_changed(change, |_| None));
        let mut all = vec![configurations];
        for version in POLICY_VERSIONS {
            let resource = kind(version, "MutatingAdmissionPolicy", "mutatingadmissionpolicies");
            let policies = open(resource, Admission::of_policy);
            let resource = kind(version, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings");
            let bindings = open(resource, Admission::of_binding);
            for watch in [&policies, &bindings] {
                let (own, store, cluster) = (turns.clone(), policies.store().clone(), watches.cluster().clone());
                let kind = watch.resource().kind.to_string();
                watch.subscribe(move |change| {
                    // Through a version that is not preferred, the same objects are seen once more.
                    let preferred = POLICY_VERSIONS.iter().find(|version| {
                        cluster.discovery().known(&GroupVersionKind::new(GROUP, **version, &kind)).is_some()
                    });
                    if preferred.is_none_or(|preferred| *preferred == version) {
                        own.admission_changed(change, |policy| {
                            store.with(&NamespacedName::new("", policy), |policy| policy.fields.kinds.clone())
                        });
                    }
                });
            }
            all.extend([policies, bindings]);
        }
        Self { watches: all, namespaces, turns }
    }

    pub(crate) fn take_turns(
        &self,
        controller: Weak<ManagedResources>,
        waker: WeakSupervised<ManagedResources>,
    ) -> impl Future<Output = ()> + 'static {
        let turns = self.turns.clone();
        async move {
            while !turns.ended.get() {
                let Some(known) = controller.upgrade() else { return };
                let now = known.elapsed();
                turns.look_for_bundles(&known, now);
                let due = turns.take_due(&known, now);
                drop(known);
                due.iter().for_each(|bundle| waker.wake(bundle, Wake::low(REVALIDATE)));
                let next = turns.pending.borrow().values().map(|turn| turn.at).min();
                match next {
                    None => turns.changed.notified().await,
                    Some(next) => {
                        let wait = Duration::from_millis(next.saturating_sub(now));
                        drop(tokio::time::timeout(wait, turns.changed.notified()).await);
                    }
                }
                tokio::time::sleep(COLLECTING).await;
            }
        }
    }

    pub(crate) fn stop(&self) {
        self.watches.iter().for_each(Watch::stop);
        self.namespaces.stop();
        self.turns.ended.set(true);
        self.turns.changed.notify_one();
    }
}

fn hash_of_marks(namespace: &Value) -> u64 {
    hash_of(&["labels", "annotations"].map(|marks| namespace["metadata"][marks].to_string()))
}

impl Turns {
    fn namespace_changed(&self, change: &Change<'_, CachedFields<u64>>, controller: &Weak<ManagedResources>) {
        match (change.how, change.old, change.new) {
            (How::First | How::Lost, ..) | (_, None, _) => {}
            (_, Some(old), Some(new)) if old.fields == new.fields => {}
            (_, Some(_), Some(_)) => {
                self.namespaces.borrow_mut().insert(change.name.name.clone());
                self.changed.notify_one();
            }
            (_, Some(_), None) => {
                if let Some(controller) = controller.upgrade() {
                    controller.revalidation.namespace_gone(&change.name.name);
                }
            }
        }
    }

    fn admission_changed(
        &self,
        change: &Change<'_, CachedFields<Admission>>,
        of_policy: impl Fn(&str) -> Option<MatchedKinds>,
    ) {
        let (old, new) = (change.old.map(|old| &old.fields), change.new.map(|new| &new.fields));
        let is_same = old.zip(new).is_some_and(|(old, new)| old.is_like(new));
        if matches!(change.how, How::First | How::Lost) || is_same {
            return;
        }
        let matched = [old, new].into_iter().flatten().map(|it| match (&it.kinds, &it.policy) {
            (MatchedKinds::Any, Some(policy)) => of_policy(policy).unwrap_or(MatchedKinds::Any),
            (kinds, _) => kinds.clone(),
        });
        let mut kinds = self.kinds.borrow_mut();
        *kinds = Some(matched.fold(kinds.take().unwrap_or(MatchedKinds::none()), MatchedKinds::or));
        self.changed.notify_one();
    }

    fn look_for_bundles(&self, controller: &ManagedResources, now: u64) {
        let known = &controller.revalidation;
        let up_to_date = now.saturating_add(millis(ADMISSION_LAG));
        if let Some(matched) = self.kinds.take() {
            let is_matched = |group: &str, plural: Option<&str>| plural.is_none_or(|it| matched.may_match(group, it));
            let kinds: Vec<GroupKind> = controller.objects.held_kinds(is_matched);
            known.kinds_changed((matched != MatchedKinds::Any).then_some(kinds.as_slice()), now);
            for bundle in kinds.iter().flat_map(|kind| controller.objects.holders_of(kind)) {
                let turn = known.turn(&bundle, up_to_date);
                self.add(&bundle, Turn { at: turn, up_to_date });
            }
        }
        let namespaces = self.namespaces.take();
        if namespaces.is_empty() {
            return;
        }
        let mut lately = self.lately.borrow_mut();
        lately.retain(|_, last| now < last.saturating_add(millis(SPREAD)));
        // A ManagedResource with an object in a namespace that was quiet is not delayed by the other namespaces.
        let by_turns: BTreeMap<String, bool> =
            namespaces.into_iter().map(|name| (name.clone(), lately.contains_key(&name))).collect();
        for (namespace, again) in &by_turns {
            known.namespace_changed(namespace, !again, now);
            lately.insert(namespace.clone(), now);
        }
        for (bundle, by_turns) in controller.objects.holders_in(&by_turns) {
            let at = if by_turns { known.turn(&bundle, up_to_date) } else { up_to_date };
            self.add(&bundle, Turn { at, up_to_date });
        }
    }

    fn add(&self, bundle: &NamespacedName, turn: Turn) {
        let mut pending = self.pending.borrow_mut();
        let turn = pending.get(bundle).map_or(turn, |known| Turn {
            at: known.at.min(turn.at),
            up_to_date: known.up_to_date.max(turn.up_to_date),
        });
        pending.insert(bundle.clone(), turn);
    }

    fn take_due(&self, controller: &ManagedResources, now: u64) -> Vec<NamespacedName> {
        let mut pending = self.pending.borrow_mut();
        let due: Vec<_> = pending.extract_if(.., |_, turn| turn.at <= now).collect();
        for (bundle, turn) in &due {
            if turn.up_to_date > now {
                let at = controller.revalidation.turn(bundle, turn.up_to_date);
                pending.insert(bundle.clone(), Turn { at, up_to_date: turn.up_to_date });
            }
        }
        due.into_iter().map(|(bundle, _)| bundle).collect()
    }
}
