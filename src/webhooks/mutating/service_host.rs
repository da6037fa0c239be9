//! `kubernetes-service-host`: points clients in the cluster at the API server's own name (spec 50 §8).

use serde_json::{Value, json};

use super::{Mutation, Mutator, Request};
use crate::webhooks::{
    fields::{self, Field, Type, WrongType},
    view::{Failure, View},
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/kubernetes-service-host";

const VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Lists of containers; ephemeral containers stay unchanged.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

const FIELDS: [Field; 2] =
    [("spec.initContainers[].env[].name", Type::Text), ("spec.containers[].env[].name", Type::Text)];

/// The webhook.
#[derive(Debug, Clone)]
pub struct ServiceHost {
    host: String,
}

impl ServiceHost {
    /// Creates a webhook that injects this host, which may be empty.
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into() }
    }

    /// Appends the variable, unless it exists with any value.
    fn inject(&self, container: &mut Value) -> Result<(), WrongType> {
        let has_it = fields::list(container, &["env"])?.iter().any(|variable| variable["name"] == VARIABLE);
        if !has_it {
            fields::list_mut(container, &["env"])?.push(json!({ "name": VARIABLE, "value": self.host }));
        }
        Ok(())
    }
}

impl Mutator for ServiceHost {
    fn mutate(&self, pod: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        for list in CONTAINERS {
            fields::each_mut(pod, &["spec", list], |container| self.inject(container))?;
        }
        Ok(Mutation::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves};

    fn webhook() -> ServiceHost {
        ServiceHost::new("api.demo.example.org")
    }

    /// spec 50 scenario 23
    #[test]
    fn host_is_injected_into_each_container_without_the_variable() {
        changes(
            &webhook(),
            &TestView::new(),
            "
spec:
  initContainers: [{name: c}]
  containers:
  - {name: a, env: null}
  - {name: b, env: [{name: KUBERNETES_SERVICE_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}
  - {name: d, env: [{name: MODE, value: fast}]}
  ephemeralContainers: [{name: e}]
---
spec:
  initContainers: [{name: c, env: [{name: KUBERNETES_SERVICE_HOST, value: api.demo.example.org}]}]
  containers:
  - {name: a, env: [{name: KUBERNETES_SERVICE_HOST, value: api.demo.example.org}]}
  - {name: b, env: [{name: KUBERNETES_SERVICE_HOST, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}
  - {name: d, env: [{name: MODE, value: fast}, {name: KUBERNETES_SERVICE_HOST, value: api.demo.example.org}]}
  ephemeralContainers: [{name: e}]
",
        );
    }

    #[test]
    fn pod_without_containers_stays() {
        for pod in ["{}", "spec: {}", "spec: {containers: []}", "spec: {containers: null, initContainers: []}"] {
            leaves(&webhook(), &TestView::new(), pod);
        }
    }

    /// spec 50 §2.2 row 7
    #[test]
    fn wrong_type_is_an_error_that_names_the_field() {
        let table = [
            ("spec: {containers: x}", "spec.containers: expected a list, found a string"),
            ("spec: {initContainers: [x]}", "spec.initContainers[0]: expected a map, found a string"),
            ("spec: {containers: [{env: x}]}", "spec.containers[0].env: expected a list, found a string"),
        ];

        for (pod, message) in table {
            let expected = Failure::Errored { code: 400, message: message.to_owned() };
            assert_eq!(failure(&webhook(), &TestView::new(), pod), expected, "{pod}");
        }
    }
}
