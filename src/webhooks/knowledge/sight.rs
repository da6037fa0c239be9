//! The view of one attempt.

use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::{caches::Stores, live::Known, too_late};
use crate::{
    api::object::NamespacedName,
    webhooks::{
        mutating::load_balancing::{CONFIG_MAP, SERVICE},
        view::{Annotations, Failure, Lookup, Scaled, ServiceAccount, View},
    },
};

/// The kind is not watched, because no enabled webhook declares that it reads it.
const NOT_STARTED: &str = "the cache is not started, can not read objects";

/// Reads that one review may need one after the other: a webhook has at most two.
const MOST_LOOKS: usize = 8;

/// What was read live for a review. It counts more than the stores, which may lag behind it.
#[derive(Debug, Default)]
pub struct Answers(Vec<(Lookup, Known)>);

/// What is known to one attempt.
#[derive(Debug)]
pub struct Sight<'a> {
    pub(super) stores: &'a Stores,
    pub(super) answers: &'a Answers,
}

// === impl Answers ===

impl Answers {
    /// Adds one. False if the question was answered before, or too many were: then the webhook would never come to an end.
    pub fn add(&mut self, lookup: Lookup, known: Known) -> bool {
        let fits = self.0.len() < MOST_LOOKS && self.get(&lookup).is_none();
        self.0.push((lookup, known));
        fits
    }

    fn get(&self, lookup: &Lookup) -> Option<&Known> {
        self.0.iter().find_map(|(asked, known)| (asked == lookup).then_some(known))
    }
}

// === impl Sight ===

impl Sight<'_> {
    /// The answer to a question, or the question.
    fn answer<T>(&self, lookup: Lookup, of: impl FnOnce(&Known) -> Option<T>) -> Result<T, Failure> {
        match self.answers.get(&lookup) {
            None => Err(Failure::Look(lookup)),
            Some(Known::Failed(failure)) => Err(failure.clone()),
            Some(known) => of(known).ok_or_else(|| {
                let message = format!("the answer to {lookup:?} is of another kind");
                Failure::Errored { code: 500, message }
            }),
        }
    }

    fn is_answered(&self, lookup: &Lookup) -> bool {
        self.answers.get(lookup).is_some()
    }

    /// Spec 50 §2.7, restricted namespaces.
    fn is_visible(&self, namespace: &str) -> bool {
        let visible = &self.stores.namespaces;
        visible.is_empty() || visible.iter().any(|visible| visible == namespace)
    }

    fn check_get(&self, namespace: &str, name: &str) -> Result<(), Failure> {
        let text = || format!("unable to get: {namespace}/{name} because of unknown namespace for the cache");
        self.is_visible(namespace).then_some(()).ok_or_else(|| Failure::Denied(text()))
    }

    fn check_list(&self, namespace: &str) -> Result<(), Failure> {
        let text = || format!("unable to list: {namespace} because of unknown namespace for the cache");
        self.is_visible(namespace).then_some(()).ok_or_else(|| Failure::Denied(text()))
    }

    /// Nodes are not read one by one: without their first list nothing is known of them.
    fn nodes<T>(&self, look: impl FnOnce(&super::caches::NodeStore) -> T) -> Result<T, Failure> {
        let nodes = self.stores.nodes.as_ref().ok_or_else(not_started)?;
        if !nodes.store.is_listed() {
            self.answer(Lookup::Nodes, |_| Some(()))?;
            return Err(too_late(&Lookup::Nodes));
        }
        Ok(look(nodes))
    }
}

fn not_started() -> Failure {
    Failure::Denied(NOT_STARTED.to_owned())
}

impl View for Sight<'_> {
    fn service_account(&self, name: &NamespacedName) -> Result<Option<ServiceAccount>, Failure> {
        let store = self.stores.service_accounts.as_ref().ok_or_else(not_started)?;
        self.check_get(&name.namespace, &name.name)?;
        let lookup = Lookup::ServiceAccount(name.clone());
        if !self.is_answered(&lookup)
            && let Some(known) = store.with(name, |record| record.fields)
        {
            return Ok(Some(known));
        }
        self.answer(lookup, |known| if let Known::ServiceAccount(account) = known { Some(*account) } else { None })
    }

    /// One that lacks the label without which the API server does not ask is out of date, as is one that is missing
    /// (spec 51, "better" 4).
    fn namespace(&self, name: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        let store = self.stores.spaces.as_ref().ok_or_else(not_started)?;
        let lookup = Lookup::Namespace(name.to_owned());
        let known = store.with(&NamespacedName::new("", name), |record| record.fields.clone());
        if !self.is_answered(&lookup)
            && let Some(space) = known.filter(|space| space.considered)
        {
            return Ok(Some(space.annotations));
        }
        self.answer(
            lookup,
            |known| if let Known::Namespace(annotations) = known { Some(annotations.clone()) } else { None },
        )
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
            |known| if let Known::Autoscalers(limits) = known { Some(limits.0.of(scaled)) } else { None },
        )
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        self.nodes(|nodes| nodes.store.len() == 1)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        self.nodes(|nodes| nodes.taints.read().unwrap_or_else(PoisonError::into_inner).tolerations())
    }

    fn load_balancing(&self, namespace: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        let store = self.stores.load_balancing.as_ref().ok_or_else(not_started)?;
        self.check_get(namespace, CONFIG_MAP)?;
        let lookup = Lookup::LoadBalancing(namespace.to_owned());
        let name = NamespacedName::new(namespace, CONFIG_MAP);
        if !self.is_answered(&lookup)
            && let Some(known) = store.with(&name, |record| record.fields.clone())
        {
            return Ok(Some(known));
        }
        self.answer(lookup, |known| if let Known::LoadBalancing(data) = known { Some(data.clone()) } else { None })
    }

    fn gateway(&self, namespace: &str) -> Result<Option<Arc<Vec<String>>>, Failure> {
        let store = self.stores.gateways.as_ref().ok_or_else(not_started)?;
        self.check_get(namespace, SERVICE)?;
        let lookup = Lookup::Gateway(namespace.to_owned());
        let name = NamespacedName::new(namespace, SERVICE);
        if !self.is_answered(&lookup)
            && let Some(known) = store.with(&name, |record| record.fields.clone())
        {
            return Ok(Some(known));
        }
        self.answer(lookup, |known| if let Known::Gateway(addresses) = known { Some(addresses.clone()) } else { None })
    }
}
