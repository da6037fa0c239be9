//! From what a Service should have to requests: what differs is created or patched, then what is left is deleted, so that a
//! new name never closes a connection (spec 40 §8).

use std::collections::BTreeSet;

use cluster::{ApiError, Context, DeleteOptions, Deleted, Lock, Resource, Wrote, object::NamespacedName};
use futures::{StreamExt as _, stream};

use super::{
    NetworkPolicies, label,
    plan::Plan,
    policy::{Found, Policy},
};

/// Requests of one pass side by side ("Better than upstream" 13).
const SIDE_BY_SIDE: usize = 16;

/// How writing went.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Requests that changed something.
    pub(super) count: usize,
    /// What went wrong, with the policy's name.
    pub(super) errors: Vec<String>,
    /// Something happened meanwhile: to be looked at again.
    pub(super) is_overtaken: bool,
    /// Deletions wait: what is known may be out of date.
    pub(super) is_in_doubt: bool,
}

/// What became of one policy.
enum Fate {
    Written,
    Overtaken,
    Failed(String),
}

impl NetworkPolicies {
    /// Brings the policies of a Service about. Names that belong to another Service are changed in the plan.
    pub(super) async fn write(&self, context: &Context, owner: &NamespacedName, plan: &mut Plan) -> Written {
        self.evade(owner, plan);
        let mut written = Written::default();
        let wanted = &plan.desired.policies;
        let differs = |policy: &&Policy| {
            self.known.policies.store().with(&policy.name, |found| policy.is(&found.fields, owner)) != Some(true)
        };
        let mut fates = stream::iter(wanted.iter().filter(differs))
            .map(|policy| self.bring_about(context, owner, policy))
            .buffer_unordered(SIDE_BY_SIDE);
        while let Some(fate) = fates.next().await {
            written.add(fate);
        }
        drop(fates);

        let all = self.known.policies_of(owner);
        let names: BTreeSet<&NamespacedName> = wanted.iter().map(|policy| &policy.name).collect();
        let is_stale = |policy: &&NamespacedName| !names.contains(policy) && !plan.failing.keeps(policy, owner, &all);
        let stale: Vec<&NamespacedName> = all.iter().filter(is_stale).collect();
        if stale.is_empty() {
            return written;
        }
        if !self.known.is_evidence(owner) {
            written.is_in_doubt = true;
            return written;
        }
        let mut fates =
            stream::iter(stale).map(|name| self.delete(context, owner, name)).buffer_unordered(SIDE_BY_SIDE);
        while let Some(fate) = fates.next().await {
            written.add(fate);
        }
        written
    }

    /// Takes other names for policies whose names another Service has and wants (spec 40 §7.11).
    fn evade(&self, owner: &NamespacedName, plan: &mut Plan) {
        for policy in &mut plan.desired.policies {
            let other = self.known.policies.store().with(&policy.name, |found| found.fields.owner.clone());
            let Some(other) = other.filter(|other| other != owner) else { continue };
            let wants_it = match self.plan(&other) {
                Ok(plan) => plan.desired.policies.iter().any(|theirs| theirs.name == policy.name),
                Err(_) => true,
            };
            if wants_it {
                policy.name.name = label::evading(&policy.name.name, owner);
            }
        }
        plan.desired.policies.sort_by(|one, other| one.name.cmp(&other.name));
    }

    async fn bring_about(&self, context: &Context, owner: &NamespacedName, policy: &Policy) -> Fate {
        let is_known = self.known.policies.store().with(&policy.name, |_| ()).is_some();
        let result = match is_known {
            true => self.patch(context, owner, policy).await,
            false => self.create(context, owner, policy).await,
        };
        result.unwrap_or_else(|error| Fate::Failed(format!("policy {}: {error}", policy.name)))
    }

    async fn create(&self, context: &Context, owner: &NamespacedName, policy: &Policy) -> Result<Fate, ApiError> {
        let asked = self.target.clock().monotonic();
        let at = at(&policy.name);
        match self.target.create(context, &at, &policy.created(owner)).await {
            Ok(answer) => {
                self.known.policies.wrote(&answer, &owner.to_string(), asked);
                Ok(Fate::Written)
            }
            // One without our labels, which is adopted, or one that the watch has not told of yet.
            Err(error) if error.is_already_exists() => self.patch(context, owner, policy).await,
            Err(error) => Err(error),
        }
    }

    /// Changes one that is there, by what it is now.
    async fn patch(&self, context: &Context, owner: &NamespacedName, policy: &Policy) -> Result<Fate, ApiError> {
        let (at, asked) = (at(&policy.name), self.target.clock().monotonic());
        let Some(live) = self.target.find(context, &at).await? else { return Ok(Fate::Overtaken) };
        let found = Found::of(&live);
        let is_of_other = |found: &Found| {
            let wants_it = |plan: super::plan::Plan| plan.desired.policies.iter().any(|it| it.name == policy.name);
            found.owner != *owner && self.plan(&found.owner).map_or(true, wants_it)
        };
        if found.as_ref().is_some_and(is_of_other) {
            self.known.policies.found(&live, asked);
            return Ok(Fate::Overtaken);
        }
        if found.as_ref().is_some_and(|found| found.is_terminating) {
            return Ok(Fate::Written); // its event comes
        }
        let mut after = live.clone();
        policy.write_to(&mut after, owner);
        let asked = self.target.clock().monotonic();
        match self.target.patch_to(context, &at, &live, &after, Lock::None).await {
            Ok(Wrote::Updated(answer)) => {
                self.known.policies.wrote(&answer, &owner.to_string(), asked);
                Ok(Fate::Written)
            }
            Ok(_) => {
                self.known.policies.found(&live, asked);
                Ok(Fate::Written)
            }
            Err(error) if error.is_not_found() => Ok(Fate::Overtaken),
            Err(error) => Err(error),
        }
    }

    /// Deletes one as it was seen: one that changed since may be somebody else's by now.
    async fn delete(&self, context: &Context, owner: &NamespacedName, name: &NamespacedName) -> Fate {
        let seen = self.known.policies.store().with(name, |found| found.fields.is_terminating);
        let (Some(false), Some(version)) = (seen, self.known.policy_version(name)) else { return Fate::Written };
        let options = DeleteOptions { resource_version: Some(version.to_string()), ..DeleteOptions::default() };
        match self.target.delete(context, &at(name), &options).await {
            Ok(Deleted::Gone) => self.known.policies.deleted(name, version, &owner.to_string()),
            Ok(Deleted::Pending(_)) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) if error.is_conflict() => return Fate::Overtaken,
            Err(error) => return Fate::Failed(format!("policy {name}: {error}")),
        }
        Fate::Written
    }
}

fn at(name: &NamespacedName) -> cluster::Target {
    let policies = Resource::new("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", true);
    policies.at(&*name.namespace, &*name.name)
}

// === impl Written ===

impl Written {
    fn add(&mut self, fate: Fate) {
        match fate {
            Fate::Written => self.count += 1,
            Fate::Overtaken => self.is_overtaken = true,
            Fate::Failed(error) => self.errors.push(error),
        }
    }
}
