//! The view of one attempt.

use std::sync::{Arc, PoisonError};

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    caches::{ObjectStore, Stores},
    live::LiveAnswer,
    too_late,
};
use crate::{
    api::resources::side::Side,
    webhooks::{
        cached_kind::{AnyCachedKind, Fields, Objects, Within},
        view::{Collection, Failure, Lookup, Recency, Scaled, View},
    },
};

/// The error if no enabled webhook declares that it reads the kind.
const NOT_STARTED: &str = "the cache is not started, can not read objects";

/// Bound of live reads for one review. The authorizer without Machines needs most: the Node, the first list of the
/// Secrets, a list of them and one of them, so four.
const MOST_LOOKS: usize = 8;

/// The live reads of one review. They take precedence over the stores, which may lag.
#[derive(Debug, Default)]
pub struct Answers(Vec<(Lookup, LiveAnswer)>);

/// The knowledge of one attempt.
#[derive(Debug)]
pub struct Sight<'a> {
    pub(super) stores: &'a Stores,
    pub(super) answers: &'a Answers,
}

impl Answers {
    /// Adds an answer. Returns false if it was answered before or the bound is reached: the webhook would not end.
    pub fn add(&mut self, lookup: Lookup, known: LiveAnswer) -> bool {
        let fits = self.0.len() < MOST_LOOKS && self.get(&lookup).is_none();
        self.0.push((lookup, known));
        fits
    }

    fn get(&self, lookup: &Lookup) -> Option<&LiveAnswer> {
        self.0.iter().find_map(|(asked, known)| (asked == lookup).then_some(known))
    }

    fn of_object(&self, wanted: &'static dyn AnyCachedKind, of: &NamespacedName) -> Option<(&LiveAnswer, &Lookup)> {
        self.0.iter().rev().find_map(|(asked, known)| {
            let Lookup::Object { cached_kind, name, .. } = asked else { return None };
            (name == of && *cached_kind == wanted).then_some((known, asked))
        })
    }
}

impl Sight<'_> {
    fn answer<T>(&self, lookup: Lookup, of: impl FnOnce(&LiveAnswer) -> Option<T>) -> Result<T, Failure> {
        match self.answers.get(&lookup) {
            None => Err(Failure::ReadLive(lookup)),
            Some(known) => answered(&lookup, known, of),
        }
    }

    fn store(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<&ObjectStore, Failure> {
        self.stores.objects.get(cached_kind).ok_or_else(not_started)
    }

    fn is_answered(&self, lookup: &Lookup) -> bool {
        self.answers.get(lookup).is_some()
    }

    /// Spec 50 §2.7, restricted namespaces.
    fn check_get(&self, objects: &Objects, name: &NamespacedName) -> Result<(), Failure> {
        let is_visible = match objects.within {
            _ if !objects.namespaced => true,
            Within::All => true,
            Within::One(namespace) => name.namespace == namespace,
            Within::Configured => self.stores.is_visible(objects.side, &name.namespace),
        };
        let NamespacedName { namespace, name } = name;
        let text = || format!("unable to get: {namespace}/{name} because of unknown namespace for the cache");
        is_visible.then_some(()).ok_or_else(|| Failure::Denied(text()))
    }

    fn check_list(&self, namespace: &str) -> Result<(), Failure> {
        let text = || format!("unable to list: {namespace} because of unknown namespace for the cache");
        self.stores.is_visible(Side::Target, namespace).then_some(()).ok_or_else(|| Failure::Denied(text()))
    }

    /// Nodes are not read one by one: before their first list nothing is known of them.
    fn nodes<T>(&self, look: impl FnOnce(&super::caches::NodeStore) -> T) -> Result<T, Failure> {
        let nodes = self.stores.nodes.as_ref().ok_or_else(not_started)?;
        if !nodes.store.is_listed() {
            self.answer(Lookup::Nodes, |_| Some(()))?;
            return Err(too_late(&Lookup::Nodes));
        }
        Ok(look(nodes))
    }
}

fn answered<T>(lookup: &Lookup, known: &LiveAnswer, of: impl FnOnce(&LiveAnswer) -> Option<T>) -> Result<T, Failure> {
    if let LiveAnswer::Failed(failure) = known {
        return Err(failure.clone());
    }
    of(known).ok_or_else(|| {
        let message = format!("the live read of {} has an answer of an unexpected kind", lookup.subject());
        Failure::Errored { code: 500, message }
    })
}

fn not_started() -> Failure {
    Failure::Denied(NOT_STARTED.to_owned())
}

impl View for Sight<'_> {
    fn find(
        &self,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
        recency: Recency,
    ) -> Result<Option<Fields>, Failure> {
        let objects = cached_kind.objects();
        let store = self.store(cached_kind)?;
        self.check_get(objects, name)?;
        if let Some((known, lookup)) = self.answers.of_object(cached_kind, name) {
            return answered(lookup, known, |known| {
                if let LiveAnswer::Object(found) = known { Some(found.clone()) } else { None }
            });
        }
        let recency = if objects.heard_of && !store.is_fresh_for(name) { Recency::Live } else { recency };
        let known = match recency {
            Recency::Known => store.with(name, |record| record.fields.clone()),
            Recency::Live => None,
        };
        known.map(Some).ok_or_else(|| Failure::ReadLive(Lookup::Object { cached_kind, name: name.clone(), recency }))
    }

    fn find_all(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure> {
        let store = self.store(cached_kind)?;
        if !store.is_listed() {
            let lookup = Lookup::Objects(cached_kind);
            self.answer(lookup.clone(), |_| Some(()))?;
            return Err(too_late(&lookup));
        }
        if cached_kind.objects().heard_of && (!store.is_fresh() || store.has_unreadable()) {
            let all = |known: &LiveAnswer| if let LiveAnswer::Objects(all) = known { Some(all.clone()) } else { None };
            return self.answer(Lookup::List(cached_kind), all);
        }
        let mut all = Vec::with_capacity(store.len());
        store.for_each(|name, record| all.push((name.clone(), record.fields.clone())));
        Ok(all)
    }

    fn autoscaler(&self, scaled: &Scaled<'_>, sure: bool) -> Result<Option<i64>, Failure> {
        let known = self.stores.autoscalers.as_ref().ok_or_else(not_started)?;
        self.check_list(scaled.namespace)?;
        let lookup = Lookup::Autoscalers(scaled.namespace.to_owned());
        if !self.is_answered(&lookup) {
            let limit = known.limits.of(scaled);
            if limit.is_some() || known.store.is_listed() && !sure {
                return Ok(limit);
            }
        }
        self.answer(
            lookup,
            |known| if let LiveAnswer::Autoscalers(limits) = known { Some(limits.of(scaled)) } else { None },
        )
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        self.nodes(|nodes| nodes.store.len() == 1)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        self.nodes(|nodes| nodes.taints.read().unwrap_or_else(PoisonError::into_inner).tolerations())
    }

    fn unconfirmed(&self, collection: &Collection) -> Result<Option<NamespacedName>, Failure> {
        let first = |known: &LiveAnswer| {
            if let LiveAnswer::Unconfirmed(first) = known { Some(first.clone()) } else { None }
        };
        self.answer(Lookup::Collection(Box::new(collection.clone())), first)
    }
}
