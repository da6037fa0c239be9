//! What must hold at the end of a life, when all disturbances are over.

use std::{collections::BTreeMap, time::Duration};

use cluster::object;
use gardener_resource_manager::api::kinds;
use jiff::SignedDuration;
use serde_json::Value;
use sim::Recorded;

use super::{
    common::{Common, has_finalizer, is_deleting, list, parse, text},
    life::{Life, trace},
    ties::{is_in_use, ties},
};
use crate::controller_manager::{guards::finalizer_of, references::PROTECTION};

/// For this long nothing is asked for. It is longer than the period in which objects in use are looked at.
const REST: Duration = Duration::from_secs(700);

pub(super) async fn end(life: &Life) {
    assert_eq!(wrong(life), [""; 0], "all is as the rules say: {:#?}", trace(&life.common));
    nothing_is_asked_for_at_rest(life).await;
    assert_eq!(wrong(life), [""; 0], "all stays as the rules say: {:#?}", trace(&life.common));
}

fn wrong(life: &Life) -> Vec<String> {
    let common = &life.common;
    [
        life.watchman.wrong(),
        life.seeds.wrong(),
        life.conditions.wrong(),
        life.certificates.wrong(),
        life.small.wrong(),
        life.projects.wrong(),
        referrers_hold_themselves(common),
        profiles(common),
    ]
    .concat()
}

/// A referrer in use has the finalizer if one of its objects exists (spec 81 §3.2 G-13).
fn referrers_hold_themselves(common: &Common) -> Vec<String> {
    let ties = ties(common);
    let mut wrong = Vec::new();
    for kind in [&kinds::CONTROLLER_DEPLOYMENT, &kinds::SEED, &kinds::SHOOT] {
        for referrer in common.all(kind) {
            let own = ties.iter().filter(|tie| tie.uid == object::uid(&referrer) && tie.finalizer == PROTECTION);
            let is_kept = |live: Value| has_finalizer(&live, PROTECTION);
            let mut live = own.map(|tie| {
                let target = &tie.target;
                common.sim.object(&target.resource, &target.namespace, &target.name)
            });
            let is_due = live.any(|live| live.is_some_and(is_kept));
            let is_held = has_finalizer(&referrer, PROTECTION);
            // Nobody can give an object in deletion a finalizer.
            let is_used = is_in_use(&referrer) || has_finalizer(&referrer, finalizer_of(kind));
            let is_right = is_due == is_held || (is_deleting(&referrer) && is_used);
            if !is_right {
                wrong.push(format!(
                    "{kind} {} holds itself: {is_held}, due: {is_due}: {referrer}",
                    object::name(&referrer)
                ));
            }
        }
    }
    wrong
}

/// The versions of CloudProfiles are classified, and profiles of namespaces follow their parents (spec 81 C, D).
fn profiles(common: &Common) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut parents = BTreeMap::new();
    for profile in common.all(&kinds::CLOUD_PROFILE).into_iter().filter(|profile| !is_deleting(profile)) {
        let expiry = parse(text(&profile, "/spec/kubernetes/versions/0/expirationDate"));
        let is_expired = expiry.is_some_and(|expiry| expiry <= common.wall());
        let class = text(&profile, "/status/kubernetes/versions/0/classification");
        if expiry.is_some() && (class == "expired") != is_expired {
            wrong.push(format!("a version is expired: {is_expired}, and shown as {class:?}: {profile}"));
        }
        parents.insert(object::name(&profile).to_owned(), profile);
    }
    for profile in common.all(&kinds::NAMESPACED_CLOUD_PROFILE).into_iter().filter(|profile| !is_deleting(profile)) {
        let Some(parent) = parents.get(text(&profile, "/spec/parent/name")) else { continue };
        // An own version overrides the date of the parent's, also by none.
        let has_own = list(&profile, "/spec/kubernetes/versions").any(|version| version["version"] == "1.2.3");
        let mut expected = parent["spec"]["kubernetes"].clone();
        if has_own && let Some(version) = expected.pointer_mut("/versions/0").and_then(Value::as_object_mut) {
            version.remove("expirationDate");
        }
        if profile["status"]["cloudProfileSpec"]["kubernetes"] != expected {
            wrong.push(format!("a profile does not follow its parent {expected}: {profile}"));
        }
    }
    wrong
}

async fn nothing_is_asked_for_at_rest(life: &Life) {
    let common = &life.common;
    common.sim.clear_requests();
    let begin = common.wall();
    tokio::time::sleep(REST).await;
    let expires = |profile: &Value| {
        let expiry = parse(text(profile, "/spec/kubernetes/versions/0/expirationDate"));
        expiry.is_some_and(|expiry| expiry + SignedDuration::from_secs(60) > begin && expiry <= common.wall())
    };
    let some_version_expires = common.all(&kinds::CLOUD_PROFILE).iter().any(expires);
    let may_come = |request: &&Recorded| {
        let info = &request.info;
        let is_period = match (info.verb.as_str(), info.resource.as_str()) {
            // Discovery, and watches that end at their time.
            (_, "") | ("watch", _) => true,
            // The election.
            (_, "leases") => info.name == "gardener-controller-manager-leader-election",
            // Events are repeated, and go at their time.
            ("create" | "patch" | "update" | "delete", "events") => true,
            // Bastions go at their time.
            ("get", "shoots") | ("delete", "bastions") => true,
            (_, "cloudprofiles" | "namespacedcloudprofiles") => some_version_expires,
            _ => false,
        };
        !info.user.starts_with("gcm") || is_period
    };
    let requests = common.sim.requests();
    let asked: Vec<_> = requests.iter().filter(|request| !may_come(request)).map(brief).collect();
    assert!(asked.is_empty(), "nothing is asked for at rest: {asked:#?}");
}

fn brief(request: &Recorded) -> String {
    format!("{} {} {} {:?}", request.info.user, request.info.verb, request.info.path, request.code)
}
