//! For tests of webhooks: a [`View`] with scripted answers that records its reads, and objects written as YAML.
//! ```text
//! let view = TestView::new().service_account("kube-system/dns", Some(false));
//! changes(&webhook, &view, "before …\n---\nafter …");
//! assert_eq!(view.reads(), ["ServiceAccount kube-system/dns"]);
//! ```

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use cluster::object::{GroupVersionKind, NamespacedName};
use serde_json::Value;

use super::{
    cached_kind::{AnyCachedKind, CachedKind, Fields},
    mutating::{
        Mutation, Mutator, Request,
        high_availability::{NAMESPACES, Space},
        load_balancing::{CONFIG_MAP, CONFIG_MAPS, SERVICE, SERVICES},
        token_mount::{SERVICE_ACCOUNTS, ServiceAccount},
    },
    view::{Annotations, Collection, Failure, Recency, Scaled, View},
};

/// The namespace of a [`request`].
pub const NAMESPACE: &str = "kube-system";

/// A cluster that holds exactly what the test puts into it.
#[derive(Debug, Default)]
pub struct TestView {
    objects: BTreeMap<&'static dyn AnyCachedKind, BTreeMap<NamespacedName, Fields>>,
    live: BTreeMap<&'static dyn AnyCachedKind, BTreeMap<NamespacedName, Fields>>,
    autoscalers: BTreeMap<String, i64>,
    nodes: usize,
    tolerations: Arc<Vec<Value>>,
    unconfirmed: Option<NamespacedName>,
    failures: BTreeMap<String, Failure>,
    reads: Mutex<Vec<String>>,
}

impl TestView {
    /// Returns an empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object with these cached fields; `name` is `namespace/name`, or only the name.
    #[must_use]
    pub fn object<T: Send + Sync + 'static>(
        mut self,
        cached_kind: &'static CachedKind<T>,
        name: &str,
        fields: T,
    ) -> Self {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let known = self.objects.entry(cached_kind).or_default();
        known.insert(NamespacedName::new(namespace, name), Arc::new(fields));
        self
    }

    /// Sets what live reads return for an object, where that differs from the store.
    #[must_use]
    pub fn by_now<T: Send + Sync + 'static>(
        mut self,
        cached_kind: &'static CachedKind<T>,
        name: &str,
        fields: T,
    ) -> Self {
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let known = self.live.entry(cached_kind).or_default();
        known.insert(NamespacedName::new(namespace, name), Arc::new(fields));
        self
    }

    /// Adds a ServiceAccount, `namespace/name`.
    #[must_use]
    pub fn service_account(self, name: &str, automount: Option<bool>) -> Self {
        self.object(&SERVICE_ACCOUNTS, name, ServiceAccount { automount })
    }

    /// Adds a Namespace with annotations.
    #[must_use]
    pub fn namespace<const N: usize>(self, name: &str, annotations: [(&str, &str); N]) -> Self {
        self.object(&NAMESPACES, name, Space { considered: true, annotations: texts(annotations) })
    }

    /// Adds a HorizontalPodAutoscaler.
    #[must_use]
    pub fn autoscaler(mut self, scaled: &Scaled<'_>, max_replicas: i64) -> Self {
        self.autoscalers.insert(shown(scaled), max_replicas);
        self
    }

    /// Sets the number of Nodes.
    #[must_use]
    pub fn nodes(mut self, count: usize) -> Self {
        self.nodes = count;
        self
    }

    /// Sets the tolerations for the Nodes' taints, a list in YAML.
    #[must_use]
    pub fn tolerations_of_nodes(mut self, tolerations: &str) -> Self {
        let Value::Array(tolerations) = object(tolerations) else { panic!("not a list: {tolerations}") };
        self.tolerations = Arc::new(tolerations);
        self
    }

    /// Adds an object whose deletion is not confirmed to every collection.
    #[must_use]
    pub fn unconfirmed(mut self, namespace: &str, name: &str) -> Self {
        self.unconfirmed = Some(NamespacedName::new(namespace, name));
        self
    }

    /// Adds a ConfigMap `istio-internal-load-balancing` with data.
    #[must_use]
    pub fn load_balancing<const N: usize>(self, namespace: &str, data: [(&str, &str); N]) -> Self {
        self.object(&CONFIG_MAPS, &format!("{namespace}/{CONFIG_MAP}"), texts(data))
    }

    /// Adds a Service `istio-ingressgateway-internal` with addresses.
    #[must_use]
    pub fn gateway<const N: usize>(self, namespace: &str, addresses: [&str; N]) -> Self {
        self.object(&SERVICES, &format!("{namespace}/{SERVICE}"), addresses.map(str::to_owned).into())
    }

    /// Makes one read fail; `read` is written as in [`TestView::reads`].
    #[must_use]
    pub fn failing(mut self, read: &str, failure: Failure) -> Self {
        self.failures.insert(read.to_owned(), failure);
        self
    }

    /// Returns the reads in order: objects as `ServiceAccount ns/a` or `Namespace ns` (with ` live`), `all Secrets`,
    /// `HorizontalPodAutoscaler of ns apps/v1 Deployment a` (with ` for sure`), `number of Nodes`, `taints of Nodes`.
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
    fn find(
        &self,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
        recency: Recency,
    ) -> Result<Option<Fields>, Failure> {
        let objects = cached_kind.objects();
        let of = |objects: &BTreeMap<_, BTreeMap<_, Fields>>| {
            objects.get(cached_kind).and_then(|known| known.get(name)).cloned()
        };
        let (found, live) = match recency {
            Recency::Known => (of(&self.objects), ""),
            Recency::Live => (of(&self.live).or_else(|| of(&self.objects)), " live"),
        };
        let NamespacedName { namespace, name } = name;
        let name = if objects.namespaced { format!("{namespace}/{name}") } else { name.clone() };
        self.read(format!("{} {name}{live}", objects.kind), found)
    }

    fn find_all(&self, cached_kind: &'static dyn AnyCachedKind) -> Result<Vec<(NamespacedName, Fields)>, Failure> {
        let known = self.objects.get(cached_kind).into_iter().flatten();
        let all = known.map(|(name, fields)| (name.clone(), fields.clone())).collect();
        self.read(format!("all {}s", cached_kind.objects().kind), all)
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

    fn unconfirmed(&self, collection: &Collection) -> Result<Option<NamespacedName>, Failure> {
        self.read(format!("{} of {:?}", collection.plural, collection.namespace), self.unconfirmed.clone())
    }
}

/// Parses YAML in which `Off` and `y` are strings. Panics if it is invalid.
pub fn object(yaml: &str) -> Value {
    serde_saphyr::from_str_with_options(yaml, serde_saphyr::options! { strict_booleans: true })
        .unwrap_or_else(|error| panic!("invalid YAML: {error}\n{yaml}"))
}

/// Returns a CREATE in [`NAMESPACE`] for an object of the kind that it names, or of the kind that the webhook takes.
pub fn request(webhook: &dyn Mutator, object: &Value) -> Request<'static> {
    let taken = webhook.takes().map(|(group, kind)| GroupVersionKind::new(group, "v1", kind));
    let kind = GroupVersionKind::of(object).or(taken).unwrap_or_else(|| GroupVersionKind::new("", "v1", "Pod"));
    Request { kind, namespace: NAMESPACE, name: "", operation: "CREATE" }
}

/// Runs a webhook on a YAML object created in [`NAMESPACE`], and returns the changed object or the failure. Runs it
/// again on its own result, which does not count as read. Panics if that changes anything or is not its task.
pub fn mutated(webhook: &dyn Mutator, view: &TestView, yaml: &str) -> Result<Value, Failure> {
    let mut object = object(yaml);
    let request = request(webhook, &object);
    let outcome = webhook.mutate(&mut object, &request, view)?;
    assert_eq!(outcome, Mutation::Done, "{yaml}");

    let reads = view.reads();
    let mut again = object.clone();
    let outcome = webhook.mutate(&mut again, &request, view);
    view.set_reads(reads);
    assert_eq!(outcome, Ok(Mutation::Done), "on its own result: {yaml}");
    assert_eq!(again, object, "changed its own result: {yaml}");
    Ok(object)
}

/// Asserts that a webhook turns the first document into the second.
#[track_caller]
pub fn changes(webhook: &dyn Mutator, view: &TestView, before_and_after: &str) {
    let (before, after) = before_and_after.split_once("---\n").expect("two documents");

    let made = mutated(webhook, view, before).unwrap_or_else(|failure| panic!("{failure:?} for {before}"));

    assert_eq!(pretty(&made), pretty(&object(after)), "from {before}");
}

/// Asserts that a webhook does not change an object.
#[track_caller]
pub fn leaves(webhook: &dyn Mutator, view: &TestView, yaml: &str) {
    let made = mutated(webhook, view, yaml).unwrap_or_else(|failure| panic!("{failure:?} for {yaml}"));

    assert_eq!(pretty(&made), pretty(&object(yaml)));
}

/// Returns the failure of a webhook. Panics if it succeeds.
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
