//! The conditions of a ManagedResource: each names the first object with a finding (spec 20 §10.2, §13).

use kit::quote::quoted;

use crate::api::{meta::conditions::ConditionStatus, resources::managed_resource::ResourceRef};

pub(crate) const RESOURCES_HEALTHY: &str = "ResourcesHealthy";
const HEALTHY_MESSAGE: &str = "All resources are healthy.";
pub(crate) const HEALTH_CHECK_ERROR: &str = "HealthCheckError";
const RESOURCES_ROLLED_OUT: &str = "ResourcesRolledOut";
const ROLLED_OUT_MESSAGE: &str = "All resources have been fully rolled out.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// It does not exist, with the error of the look-up if its kind is not served.
    Missing(Option<String>),
    Unhealthy(String),
    CheckError(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) status: ConditionStatus,
    pub(crate) reason: String,
    pub(crate) message: String,
}

pub(crate) fn health(first: Option<(&ResourceRef, &Finding)>) -> Report {
    let Some((reference, finding)) = first else {
        return Report::new(ConditionStatus::True, RESOURCES_HEALTHY, HEALTHY_MESSAGE);
    };
    let kind = &reference.kind;
    let (reason, message) = match finding {
        Finding::Missing(error) => {
            let (name, namespace) = (quoted(&reference.name), quoted(&reference.namespace));
            let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let text = format!("Required {kind} {name} in namespace {namespace} is missing{error}");
            (format!("{kind}Missing"), text)
        }
        Finding::Unhealthy(text) => {
            (format!("{kind}Unhealthy"), format!("{kind} {} is unhealthy: {text}", place(reference)))
        }
        Finding::CheckError(error) => {
            let text = format!("Error executing health check for {kind} {}: {error}", place(reference));
            (HEALTH_CHECK_ERROR.to_owned(), text)
        }
    };
    Report::new(ConditionStatus::False, reason, message)
}

pub(crate) fn progress(first: Option<(&ResourceRef, &str)>) -> Report {
    let Some((reference, description)) = first else {
        return Report::new(ConditionStatus::False, RESOURCES_ROLLED_OUT, ROLLED_OUT_MESSAGE);
    };
    let kind = &reference.kind;
    let message = format!("{kind} {} is progressing: {description}", place(reference));
    Report::new(ConditionStatus::True, format!("{kind}Progressing"), message)
}

/// `"namespace/name"`, or `"/name"` for a cluster-scoped object.
fn place(reference: &ResourceRef) -> String {
    quoted(&format!("{}/{}", reference.namespace, reference.name))
}

impl Report {
    fn new(status: ConditionStatus, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(report: &Report) -> [&str; 3] {
        [report.status.as_str(), &report.reason, &report.message]
    }

    /// spec 20 scenario 1.
    #[test]
    fn report_without_findings_says_that_all_is_well() {
        assert_eq!(reported(&health(None)), ["True", "ResourcesHealthy", "All resources are healthy."]);
        let rolled_out = ["False", "ResourcesRolledOut", "All resources have been fully rolled out."];
        assert_eq!(reported(&progress(None)), rolled_out);
    }

    /// spec 20 scenarios 4, 5, 6, 8, 9; §10.2.
    #[test]
    fn report_has_a_reason_and_a_text_for_each_finding() {
        let table = [
            (
                ResourceRef::new("v1", "ConfigMap", "a", "cfg"),
                Finding::Missing(None),
                ["False", "ConfigMapMissing", r#"Required ConfigMap "cfg" in namespace "a" is missing"#],
            ),
            (
                ResourceRef::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", "r"),
                Finding::Missing(None),
                ["False", "ClusterRoleMissing", r#"Required ClusterRole "r" in namespace "" is missing"#],
            ),
            (
                ResourceRef::new("example.org/v1", "Foo", "a", "f"),
                Finding::Missing(Some(r#"no matches for kind "Foo" in version "example.org/v1""#.into())),
                [
                    "False",
                    "FooMissing",
                    r#"Required Foo "f" in namespace "a" is missing: no matches for kind "Foo" in version "example.org/v1""#,
                ],
            ),
            (
                ResourceRef::new("apps/v1", "Deployment", "a", "web"),
                Finding::Unhealthy("why".into()),
                ["False", "DeploymentUnhealthy", r#"Deployment "a/web" is unhealthy: why"#],
            ),
            (
                ResourceRef::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "foos.example.org"),
                Finding::Unhealthy(r#"condition "NamesAccepted" is missing"#.into()),
                [
                    "False",
                    "CustomResourceDefinitionUnhealthy",
                    r#"CustomResourceDefinition "/foos.example.org" is unhealthy: condition "NamesAccepted" is missing"#,
                ],
            ),
            (
                ResourceRef::new("monitoring.coreos.com/v1", "Prometheus", "a", "p"),
                Finding::CheckError("status.conditions: expected a list, found a string".into()),
                [
                    "False",
                    "HealthCheckError",
                    r#"Error executing health check for Prometheus "a/p": status.conditions: expected a list, found a string"#,
                ],
            ),
        ];

        for (reference, finding, expected) in table {
            assert_eq!(reported(&health(Some((&reference, &finding)))), expected);
        }
    }

    #[test]
    fn report_describes_a_roll_out() {
        let web = ResourceRef::new("apps/v1", "Deployment", "a", "web");

        let expected = ["True", "DeploymentProgressing", r#"Deployment "a/web" is progressing: 1 of 2"#];
        assert_eq!(reported(&progress(Some((&web, "1 of 2")))), expected);
        let empty = ["True", "DeploymentProgressing", r#"Deployment "a/web" is progressing: "#];
        assert_eq!(reported(&progress(Some((&web, "")))), empty);
    }

    #[test]
    fn report_quotes_names() {
        let odd = ResourceRef::new("v1", "Odd", "n\"s", "a\\b");

        assert_eq!(
            health(Some((&odd, &Finding::Missing(None)))).message,
            r#"Required Odd "a\\b" in namespace "n\"s" is missing"#
        );
    }
}
