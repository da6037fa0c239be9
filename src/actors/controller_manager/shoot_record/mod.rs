//! The Shoots as their controllers see them (spec 84 "better" 1): one watch, one small record per Shoot. The controllers of
//! Shoots share it, except `shoot_hibernation`, `shoot_maintenance` and those of references: these keep parts of their own.
//!
//! A record has a part per controller, which the rules of that controller read from the Shoot. A controller that needs
//! more adds its part to [`ShootRecord`]. Parts are small, because there may be ten thousand Shoots: yes or no, an enum, a
//! time, a short text. What only few Shoots have is in a `Box`. `last_operation`: what several parts need.
//!
//! The watch is shared, so a write of one controller is no news from the server for another one. [`on_shoots`] selects own
//! writes, too.

mod last_operation;

use std::sync::Arc;

use cluster::{
    CachedFields, How, Watch, WatchOptions, Watches,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use kit::{Causes, GeneralController, Supervised, Wake};
use serde_json::Value;

pub use self::last_operation::{LastOperation, OperationState, OperationType, is_failed};
use super::{
    fields::time,
    installations::{FINALIZER, shoot_needs::ShootNeeds},
    shoot_conditions::rules::KeptConditions,
    shoot_migration::rules::Migration,
    shoot_quota::rules::Term,
    shoot_retry::rules::RateLimit,
    shoot_status_label::rules::StatusLabel,
};
use crate::api::kinds;

/// A record at a version.
pub type CachedShoot = CachedFields<ShootRecord>;

/// What is kept of a Shoot.
#[derive(Debug, Clone)]
pub struct ShootRecord {
    /// When it was created; `None` if that is unreadable.
    pub created: Option<Timestamp>,
    /// It is being deleted.
    pub is_deleting: bool,
    /// `status.lastOperation`; `None` if there is none.
    pub operation: Option<LastOperation>,
    /// Its conditions.
    pub conditions: KeptConditions,
    /// What its lifetime depends on.
    pub term: Term,
    /// It failed because of rate limits of the infrastructure; `None` if it did not.
    pub rate_limit: Option<RateLimit>,
    /// Its status label.
    pub label: StatusLabel,
    /// Its way from one Seed to another.
    pub migration: Migration,
    /// The extensions that it needs.
    pub needs: Arc<ShootNeeds>,
    /// It has the finalizer of ControllerInstallations.
    pub is_held_for_installations: bool,
}

impl ShootRecord {
    /// Reads a Shoot of any shape.
    pub fn of(shoot: &Value) -> Self {
        Self {
            created: time(shoot, "/metadata/creationTimestamp"),
            is_deleting: object::deletion_timestamp(shoot).is_some(),
            operation: LastOperation::of(shoot),
            conditions: KeptConditions::of(shoot),
            term: Term::of(shoot),
            rate_limit: RateLimit::of(shoot),
            label: StatusLabel::of(shoot),
            migration: Migration::of(shoot),
            needs: Arc::new(ShootNeeds::of(shoot)),
            is_held_for_installations: object::finalizers(shoot).any(|finalizer| finalizer == FINALIZER),
        }
    }
}

/// Opens the watch of Shoots that several controllers share. A write of one of them is an own write for all, so each event
/// handler must include own writes.
pub fn open(watches: &Watches) -> Watch<CachedShoot> {
    watches.open(WatchOptions::fields_with_finalizers(kinds::SHOOT, ShootRecord::of))
}

/// Wakes the actor of each Shoot that concerns a controller after a change. `concerns` gets the record before and after
/// it. The record before is `None` if the Shoot was not known, or if another Shoot had its name. Own writes count. The
/// wakes of the first list have low priority (spec 80 §16 S-20).
pub fn on_shoots<C: GeneralController<Key = NamespacedName>>(
    shoots: &Watch<CachedShoot>,
    supervised: &Supervised<C>,
    concerns: impl Fn(&NamespacedName, Option<&ShootRecord>, &ShootRecord) -> bool + 'static,
) {
    let waker = supervised.weak();
    shoots.subscribe(move |change| {
        let Some(new) = change.new.map(|shoot| &shoot.fields) else { return };
        let old = change.old.map(|shoot| &shoot.fields).filter(|old| old.created == new.created);
        if concerns(change.name, old, new) {
            let is_first = change.how == How::First;
            waker.wake(change.name, if is_first { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) });
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// There may be ten thousand of them.
    #[test]
    fn shoot_record_is_small() {
        let size = std::mem::size_of::<ShootRecord>();

        assert!(size <= 216, "{size}");
    }

    /// A tenant, or a server that knows other fields, may write anything at any place.
    #[test]
    fn shoot_record_of_any_shape_is_read() {
        let odd =
            [json!(null), json!(true), json!(-1), json!(1.5), json!("x"), json!([]), json!({}), json!([[null, 7]])];
        let fields = [
            "/metadata",
            "/metadata/annotations",
            "/metadata/creationTimestamp",
            "/metadata/generation",
            "/metadata/labels",
            "/spec",
            "/spec/credentialsBindingName",
            "/spec/dns",
            "/spec/dns/domain",
            "/spec/dns/providers",
            "/spec/dns/providers/0/primary",
            "/spec/dns/providers/0/type",
            "/spec/extensions",
            "/spec/extensions/0/disabled",
            "/spec/extensions/0/type",
            "/spec/networking",
            "/spec/networking/type",
            "/spec/provider",
            "/spec/provider/type",
            "/spec/provider/workers",
            "/spec/provider/workers/0/controlPlane",
            "/spec/provider/workers/0/controlPlane/exposure",
            "/spec/provider/workers/0/cri",
            "/spec/provider/workers/0/machine",
            "/spec/provider/workers/0/machine/image",
            "/spec/secretBindingName",
            "/spec/seedName",
            "/status",
            "/status/conditions",
            "/status/conditions/0/status",
            "/status/conditions/0/type",
            "/status/constraints",
            "/status/constraints/0/lastTransitionTime",
            "/status/lastErrors",
            "/status/lastErrors/0/codes",
            "/status/lastOperation",
            "/status/lastOperation/lastUpdateTime",
            "/status/lastOperation/state",
            "/status/lastOperation/type",
            "/status/observedGeneration",
            "/status/seedName",
        ];
        let whole = json!({
            "metadata": {
                "namespace": "garden", "name": "s", "generation": 1, "creationTimestamp": "2026-08-21T12:00:00Z",
                "labels": { "shoot.gardener.cloud/status": "healthy" }, "annotations": { "gardener.cloud/operation": "retry" },
            },
            "spec": {
                "seedName": "b", "secretBindingName": "x", "credentialsBindingName": "y",
                "dns": { "domain": "a.b", "providers": [{ "type": "d", "primary": true }] },
                "extensions": [{ "type": "e", "disabled": true }],
                "networking": { "type": "n" },
                "provider": { "type": "p", "workers": [{
                    "machine": { "image": { "name": "os" } }, "cri": { "containerRuntimes": [{ "type": "cr" }] },
                    "controlPlane": { "backup": { "provider": "b" }, "exposure": { "extension": { "type": "x" } } },
                }] },
            },
            "status": {
                "conditions": [{ "type": "EveryNodeReady", "status": "True" }],
                "constraints": [{ "type": "ReadyForMigration", "status": "True", "lastTransitionTime": null }],
                "lastErrors": [{ "codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"] }],
                "lastOperation": { "type": "Create", "state": "Failed", "lastUpdateTime": "2026-08-21T12:00:00Z" },
                "observedGeneration": 1, "seedName": "a",
            },
        });
        for field in fields {
            for value in &odd {
                let mut shoot = whole.clone();
                *shoot.pointer_mut(field).unwrap() = value.clone();
                let record = ShootRecord::of(&shoot);

                assert!(!record.is_deleting, "{field} {value}");
            }
        }
        assert!(odd.iter().all(|value| !ShootRecord::of(value).is_deleting));
    }
}
