//! Creates and patches policies that differ, then prunes, so that a new name closes no connection (spec 40 §8).

use std::collections::BTreeSet;

use cluster::{ApiError, CachedFields, Context, Lock, Wrote, difference, object::NamespacedName};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::{
    NetworkPolicies,
    direction::Direction,
    name,
    others::Others,
    plan::Plan,
    policy::{self, Found, Policy},
    turns::Turns,
};

/// Requests of one reconcile in flight ("Better than upstream" 13).
const SIDE_BY_SIDE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) count: usize,
    pub(super) errors: Vec<String>,
    /// Something changed meanwhile: reconcile again.
    pub(super) is_overtaken: bool,
    /// Deletions wait, because a cache is stale.
    pub(super) is_cache_stale: bool,
}

enum Fate {
    Written,
    Overtaken,
    Failed(String),
}

struct PolicyWrites<'p> {
    context: &'p Context,
    plan: &'p Plan,
    others: &'p Others,
}

impl NetworkPolicies {
    /// Creates, patches and prunes the policies of a Service. Renames those whose names belong to another Service.
    pub(super) async fn write(&self, context: &Context, owner: &NamespacedName, plan: &mut Plan) -> Written {
        let others = Others::default();
        self.evade(owner, plan, &others).await;
        let writes = PolicyWrites { context, plan, others: &others };
        let mut written = Written::default();
        let wanted = &writes.plan.desired.policies;
        let (mut turns, mut differing) = (Turns::with_pauses(), Vec::new());
        for policy in wanted {
            if self.known.policies.store().with(&policy.name, |found| policy.is(&found.fields)) != Some(true) {
                differing.push(policy);
            }
            turns.piece().await;
        }
        written.add_all(differing.into_iter().map(|policy| self.bring_about(&writes, policy))).await;

        let names: BTreeSet<&NamespacedName> = wanted.iter().map(|policy| &policy.name).collect();
        let mut stale = Vec::new();
        for policy in self.known.by_owner.get(owner) {
            let found = || self.known.policies.store().with(&policy, |found| found.fields.clone());
            if !names.contains(&policy) && !found().is_some_and(|found| self.keeps(&writes, &policy, &found)) {
                stale.push(policy);
            }
            turns.piece().await;
        }
        if stale.is_empty() {
            return written;
        }
        if !self.known.is_evidence(owner) {
            written.is_cache_stale = true;
            return written;
        }
        written.add_all(stale.iter().map(|name| self.delete(context, owner, name))).await;
        written
    }

    fn keeps(&self, writes: &PolicyWrites<'_>, policy: &NamespacedName, found: &Found) -> bool {
        writes.plan.failing.keeps(policy, found, &|namespace| self.known.is_open(namespace))
    }

    /// Renames policies whose names another Service has and wants (spec 40 §7.11).
    async fn evade(&self, owner: &NamespacedName, plan: &mut Plan, others: &Others) {
        let mut turns = Turns::with_pauses();
        for policy in &mut plan.desired.policies {
            let other = self.known.policies.store().with(&policy.name, |found| found.fields.owner.clone());
            if let Some(other) = other.filter(|other| other != owner)
                && self.wants(others, &other, &policy.name).await
            {
                policy.name.name = name::evading(&policy.name.name, owner);
            }
            turns.piece().await;
        }
        plan.desired.policies.sort_by(|one, other| one.name.cmp(&other.name));
    }

    async fn wants(&self, others: &Others, other: &NamespacedName, policy: &NamespacedName) -> bool {
        let plan = || async {
            let plan = self.plan(other).await.ok()?;
            Some(plan.desired.policies.into_iter().map(|policy| policy.name).collect())
        };
        others.want(other, policy, plan).await
    }

    async fn bring_about(&self, writes: &PolicyWrites<'_>, policy: &Policy) -> Fate {
        let is_known = self.known.policies.store().with(&policy.name, |_| ()).is_some();
        let result = match is_known {
            true => self.patch(writes, policy).await,
            false => self.create(writes, policy).await,
        };
        result.unwrap_or_else(|error| Fate::Failed(format!("policy {}: {error}", policy.name)))
    }

    async fn create(&self, writes: &PolicyWrites<'_>, policy: &Policy) -> Result<Fate, ApiError> {
        let wanted = policy.created();
        match self.known.policies.create(writes.context, &wanted).await {
            Ok(answer) if policy::says_the_same(&answer, &wanted) => Ok(Fate::Written),
            // A webhook has changed it. No later event reports that; the back-off slows down a fight with the webhook.
            Ok(_) => Ok(Fate::Overtaken),
            // It lacks our labels, so it is adopted, or its watch event has not arrived yet.
            Err(error) if error.is_already_exists() => self.patch(writes, policy).await,
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, writes: &PolicyWrites<'_>, policy: &Policy) -> Result<Fate, ApiError> {
        let (owner, policies) = (&policy.service, &self.known.policies);
        let Some(live) = policies.read_object(writes.context, &policy.name).await? else { return Ok(Fate::Overtaken) };
        let former = Found::of(&live).map(|found| found.owner);
        if let Some(former) = former.as_ref().filter(|former| *former != owner)
            && self.wants(writes.others, former, &policy.name).await
        {
            return Ok(Fate::Overtaken);
        }
        let is_shared = |found: &Found| {
            policy.direction == Direction::Ingress && found.owner == *owner && self.keeps(writes, &policy.name, found)
        };
        let decide = |live: &Value| {
            let found = Found::of(live);
            if found.as_ref().is_some_and(|found| found.is_terminating) {
                return None; // its deletion event follows
            }
            let mut after = live.clone();
            policy.write_to(&mut after);
            if found.as_ref().is_some_and(is_shared) {
                writes.plan.failing.keep_peers(live, &mut after);
            }
            if Found::of(&after) == found { None } else { difference(live, &after) }
        };
        Ok(match policies.patch(writes.context, &live, Lock::None, decide).await? {
            Wrote::Altered(_) | Wrote::Gone => Fate::Overtaken,
            _ => Fate::Written,
        })
    }

    /// Deletes a policy unless it belongs to somebody else.
    async fn delete(&self, context: &Context, owner: &NamespacedName, name: &NamespacedName) -> Fate {
        let is_due = |policy: &CachedFields<Found>| !policy.fields.is_terminating && policy.fields.owner == *owner;
        if self.known.policies.store().with(name, is_due) != Some(true) {
            return Fate::Written;
        }
        match self.known.policies.delete_cached_if(context, name, None, is_due).await {
            Ok(Wrote::Unchanged(_)) => Fate::Overtaken,
            Ok(_) => Fate::Written,
            Err(error) if error.is_conflict() => Fate::Overtaken,
            Err(error) => Fate::Failed(format!("policy {name}: {error}")),
        }
    }
}

impl Written {
    async fn add_all<F: Future<Output = Fate>>(&mut self, writes: impl Iterator<Item = F>) {
        let mut fates = stream::iter(writes).buffer_unordered(SIDE_BY_SIDE);
        while let Some(fate) = fates.next().await {
            match fate {
                Fate::Written => self.count += 1,
                Fate::Overtaken => self.is_overtaken = true,
                Fate::Failed(error) => self.errors.push(error),
            }
        }
    }
}
