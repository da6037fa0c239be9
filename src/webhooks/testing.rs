//! For tests of webhooks: a [`View`] whose answers are put in and that remembers what it was asked, and objects written as
//! YAML, before and after.
//!
//! ```text
//! let view = TestView::new().service_account("kube-system/dns", Some(false));
//! changes(&webhook, &view, "before …\n---\nafter …");
//! assert_eq!(view.reads(), ["ServiceAccount kube-system/dns"]);
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    mutating::{Mutator, Outcome, Request},
    view::{Annotations, Failure, Scaled, ServiceAccount, View},
};
use crate::api::object::{GroupVersionKind, NamespacedName};

/// The namespace of a [`request`].
pub const NAMESPACE: &str = "kube-system";

/// A cluster that holds what the test put into it. What was not put in does not exist, for sure.
#[derive(Debug, Default)]
pub struct TestView {
    service_accounts: BTreeMap<String, ServiceAccount>,
    namespaces: BTreeMap<String, Arc<Annotations>>,
    autoscalers: BTreeMap<String, i64>,
    nodes: usize,
    tolerations: Arc<Vec<Value>>,
    load_balancing: BTreeMap<String, Arc<Annotations>>,
    gateways: BTreeMap<String, Arc<Vec<String>>>,
    failures: BTreeMap<String, Failure>,
    reads: Mutex<Vec<String>>,
}

// === impl TestView ===

impl TestView {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a ServiceAccount, `namespace/name`.
    #[must_use]
    pub fn service_account(mut self, name: &str, automount: Option<bool>) -> Self {
        self.service_accounts.insert(name.to_owned(), ServiceAccount { automount });
        self
    }

    /// With a Namespace and its annotations.
    #[must_use]
    pub fn namespace<const N: usize>(mut self, name: &str, annotations: [(&str, &str); N]) -> Self {
        self.namespaces.insert(name.to_owned(), Arc::new(texts(annotations)));
        self
    }

    /// With a HorizontalPodAutoscaler.
    #[must_use]
    pub fn autoscaler(mut self, scaled: &Scaled<'_>, max_replicas: i64) -> Self {
        self.autoscalers.insert(shown(scaled), max_replicas);
        self
    }

    /// With so many Nodes.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// With Nodes whose taints lead to these tolerations, a list in YAML.
    #[must_use]
    pub fn tolerations_of_nodes(mut self, tolerations: &str) -> Self {
        let Value::Array(tolerations) = object(tolerations) else { panic!("no list: {tolerations}") };
        self.tolerations = Arc::new(tolerations);
        self
    }

    /// With a ConfigMap `istio-internal-load-balancing` and its data.
    #[must_use]
    pub fn load_balancing<const N: usize>(mut self, namespace: &str, data: [(&str, &str); N]) -> Self {
        self.load_balancing.insert(namespace.to_owned(), Arc::new(texts(data)));
        self
    }

    /// With a Service `istio-ingressgateway-internal` and its addresses.
    #[must_use]
    pub fn gateway<const N: usize>(mut self, namespace: &str, addresses: [&str; N]) -> Self {
        self.gateways.insert(namespace.to_owned(), Arc::new(addresses.map(str::to_owned).into()));
        self
    }

    /// Fails one read, named as in [`TestView::reads`].
    #[must_use]
    pub fn failing(mut self, read: &str, failure: Failure) -> Self {
        self.failures.insert(read.to_owned(), failure);
        self
    }

    /// What was read, in order: `ServiceAccount ns/a`, `Namespace ns`, `HorizontalPodAutoscaler of ns apps/v1 Deployment a`
    /// (and ` for sure`), `number of Nodes`, `taints of Nodes`, `ConfigMap ns/istio-internal-load-balancing`,
    /// `Service ns/istio-ingressgateway-internal`.
    pub fn reads(&self) -> Vec<String> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_reads(&self, reads: Vec<String>) {
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner) = reads;
    }

    fn read<T>(&self, read: String, answer: T) -> Result<T, Failure> {
        let failure = self.failures.get(&read).cloned();
        self.reads.lock().unwrap_or_else(PoisonError::into_inner).push(read);
        failure.map_or(Ok(answer), Err)
    }
}

impl View for TestView {
    fn service_account(&self, name: &NamespacedName) -> Result<Option<ServiceAccount>, Failure> {
        let name = format!("{}/{}", name.namespace, name.name);
        let found = self.service_accounts.get(&name).copied();
        self.read(format!("ServiceAccount {name}"), found)
    }

    fn namespace(&self, name: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        self.read(format!("Namespace {name}"), self.namespaces.get(name).cloned())
    }

    fn autoscaler(&self, scaled: &Scaled<'_>, sure: bool) -> Result<Option<i64>, Failure> {
        let scaled = shown(scaled);
        let sure = if sure { " for sure" } else { "" };
        self.read(format!("HorizontalPodAutoscaler of {scaled}{sure}"), self.autoscalers.get(&scaled).copied())
    }

    fn has_one_node(&self) -> Result<bool, Failure> {
        self.read("number of Nodes".to_owned(), self.nodes == 1)
    }

    fn tolerations_of_nodes(&self) -> Result<Arc<Vec<Value>>, Failure> {
        self.read("taints of Nodes".to_owned(), Arc::clone(&self.tolerations))
    }

    fn load_balancing(&self, namespace: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        let read = format!("ConfigMap {namespace}/istio-internal-load-balancing");
        self.read(read, self.load_balancing.get(namespace).cloned())
    }

    fn gateway(&self, namespace: &str) -> Result<Option<Arc<Vec<String>>>, Failure> {
        let read = format!("Service {namespace}/istio-ingressgateway-internal");
        self.read(read, self.gateways.get(namespace).cloned())
    }
}

// === objects, before and after ===

/// An object, or another value, written as YAML, in which `Off` and `y` are texts.
///
/// # Panics
/// When it is no YAML.
pub fn object(yaml: &str) -> Value {
    serde_saphyr::from_str_with_options(yaml, serde_saphyr::options! { strict_booleans: true })
        .unwrap_or_else(|error| panic!("no YAML: {error}\n{yaml}"))
}

/// A CREATE in [`NAMESPACE`] of an object that the webhook takes, or of the kind that the object says it is.
pub fn request(webhook: &dyn Mutator, object: &Value) -> Request<'static> {
    let taken = webhook.takes().map(|(group, kind)| GroupVersionKind::new(group, "v1", kind));
    let kind = GroupVersionKind::of(object).or(taken).unwrap_or_else(|| GroupVersionKind::new("", "v1", "Pod"));
    Request { kind, namespace: NAMESPACE, name: "", operation: "CREATE" }
}

/// What a webhook makes of an object that is written as YAML and created in [`NAMESPACE`]. It is made again of what it made,
/// to see that nothing changes; that does not count as read.
///
/// # Errors
/// What the webhook says.
///
/// # Panics
/// When the webhook is not concerned ([`Outcome::Unexpected`]), or when it changes what it made.
pub fn mutated(webhook: &dyn Mutator, view: &TestView, yaml: &str) -> Result<Value, Failure> {
    let mut object = object(yaml);
    let request = request(webhook, &object);
    let outcome = webhook.mutate(&mut object, &request, view)?;
    assert_eq!(outcome, Outcome::Done, "{yaml}");

    let reads = view.reads();
    let mut again = object.clone();
    let outcome = webhook.mutate(&mut again, &request, view);
    view.set_reads(reads);
    assert_eq!(outcome, Ok(Outcome::Done), "when sent again: {yaml}");
    assert_eq!(again, object, "changed when sent again: {yaml}");
    Ok(object)
}

/// Asserts that a webhook makes the second document of the first.
///
/// # Panics
/// When it does not.
#[track_caller]
pub fn changes(webhook: &dyn Mutator, view: &TestView, before_and_after: &str) {
    let (before, after) = before_and_after.split_once("---\n").expect("two documents");

    let made = mutated(webhook, view, before).unwrap_or_else(|failure| panic!("{failure:?} for {before}"));

    assert_eq!(pretty(&made), pretty(&object(after)), "of {before}");
}

/// Asserts that a webhook leaves an object as it is.
///
/// # Panics
/// When it does not.
#[track_caller]
pub fn leaves(webhook: &dyn Mutator, view: &TestView, yaml: &str) {
    let made = mutated(webhook, view, yaml).unwrap_or_else(|failure| panic!("{failure:?} for {yaml}"));

    assert_eq!(pretty(&made), pretty(&object(yaml)));
}

/// The failure of a webhook.
///
/// # Panics
/// When there is none.
#[track_caller]
pub fn failure(webhook: &dyn Mutator, view: &TestView, yaml: &str) -> Failure {
    mutated(webhook, view, yaml).map_or_else(|failure| failure, |made| panic!("no failure, but {made}"))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON can be written")
}

fn shown(scaled: &Scaled<'_>) -> String {
    format!("{} {} {} {}", scaled.namespace, scaled.api_version, scaled.kind, scaled.name)
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> Annotations {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
