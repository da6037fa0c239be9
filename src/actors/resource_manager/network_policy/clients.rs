//! Finds client labels on pods and on pod templates, which exist earlier (`onlyForMatchingPods`, spec 40 §7.6).

use std::rc::Rc;

use cluster::{CachedFields, Change, Index, Resource, Watch, WatchOptions, Watches};
use kit::SyncRequirement;
use serde_json::Value;

use super::label::{ALLOWED, TO};
use crate::api::kinds;

pub(super) type Client = (Box<str>, Box<str>);

type Carried = Option<Box<[Box<str>]>>;

pub(super) struct Clients {
    watches: Vec<(Watch<CachedFields<Carried>>, Index<Client>)>,
}

/// Group, kind, plural, and the path of the pod labels.
pub(super) const TEMPLATES: [(Resource, &str); 5] = [
    (kinds::DEPLOYMENT, "/spec/template/metadata/labels"),
    (kinds::STATEFUL_SET, "/spec/template/metadata/labels"),
    (kinds::DAEMON_SET, "/spec/template/metadata/labels"),
    (kinds::JOB, "/spec/template/metadata/labels"),
    (kinds::CRON_JOB, "/spec/jobTemplate/spec/template/metadata/labels"),
];

impl Clients {
    pub(super) fn open(watches: &Watches) -> Self {
        let pods =
            WatchOptions::new(kinds::POD, |pod| CachedFields::of(pod, carried(pod, "/metadata/labels"))).metadata();
        let templates = TEMPLATES.into_iter().map(|(resource, place)| {
            WatchOptions::new(resource, move |object| CachedFields::of(object, carried(object, place))).unawaited()
        });
        let options = std::iter::once(pods).chain(templates);
        let watches = options.map(|options| {
            let watch = watches.open(options);
            let index = watch.index(|name, carrier| {
                let keys = carrier.fields.iter().flatten();
                keys.map(|key| (name.namespace.as_str().into(), key.clone())).collect()
            });
            (watch, index)
        });
        Self { watches: watches.collect() }
    }

    /// The required caches of a reconcile: all that decide whether a client exists. A role may lack access to pod
    /// templates (spec 40 §5.6). A single denial does not prove that: a starting server denies everything.
    pub(super) fn requires(&self) -> impl Iterator<Item = SyncRequirement> {
        self.watches.iter().enumerate().map(|(number, (watch, _))| {
            let (mut requirement, watch) = (watch.sync_requirement(), watch.clone());
            let is_listed = requirement.ready.clone();
            requirement.ready = Rc::new(move || is_listed() || (number > 0 && watch.was_denied_lastingly()));
            requirement
        })
    }

    pub(super) fn has(&self, namespace: &str, key: &str) -> bool {
        let client = (namespace.into(), key.into());
        self.watches.iter().any(|(_, index)| index.contains(&client))
    }

    /// Returns true if a missing client proves that there is none.
    pub(super) fn is_fresh(&self) -> bool {
        let mut all = self.watches.iter().enumerate();
        all.all(|(number, (watch, _))| watch.is_fresh() || (number > 0 && watch.is_denied_lastingly()))
    }

    /// Calls `report` for each client label that gets its first carrier in a namespace or loses its last.
    pub(super) fn subscribe(&self, report: impl Fn(Client) + Clone + 'static) {
        for (watch, index) in &self.watches {
            let (index, report) = (index.clone(), report.clone());
            watch.subscribe(move |change: &Change<'_, CachedFields<Carried>>| {
                let keys = |carrier: Option<&CachedFields<Carried>>| -> Vec<Box<str>> {
                    carrier.iter().flat_map(|carrier| carrier.fields.iter().flatten().cloned()).collect()
                };
                let (old, new) = (keys(change.old), keys(change.new));
                let came = new.iter().filter(|key| !old.contains(key)).map(|key| (key, 1));
                let went = old.iter().filter(|key| !new.contains(key)).map(|key| (key, 0));
                for (key, count) in came.chain(went) {
                    let client = (change.name.namespace.as_str().into(), key.clone());
                    if index.count(&client) == count {
                        report(client);
                    }
                }
            });
        }
    }
}

pub(super) fn labels_of(object: &Value) -> Vec<Box<str>> {
    place_of(object).and_then(|place| carried(object, place)).map(Vec::from).unwrap_or_default()
}

pub(super) fn place_of(object: &Value) -> Option<&'static str> {
    match object["kind"].as_str() {
        Some("Pod") => Some("/metadata/labels"),
        kind => TEMPLATES.iter().find(|(known, _)| kind == Some(&known.kind)).map(|(_, place)| *place),
    }
}

fn carried(object: &Value, place: &str) -> Carried {
    let labels = object.pointer(place).and_then(Value::as_object)?;
    let is_client = |(key, value): &(&String, &Value)| key.starts_with(TO) && *value == ALLOWED;
    let keys: Box<[Box<str>]> = labels.iter().filter(is_client).map(|(key, _)| key.as_str().into()).collect();
    (!keys.is_empty()).then_some(keys)
}
