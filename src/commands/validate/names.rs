//! Checks names and namespaces as API servers do (tried with kube-apiserver 1.36).

use cluster::object::{self, GroupVersionKind};
use serde_json::Value;

use super::{Issue, Issues, built_in, template::has_braces};
use crate::{
    actors::resource_manager::bundle::identity::is_built_in_group,
    api::meta::field::formats::{dns_label, dns_subdomain},
};

const SUBDOMAIN: &str = "use lower-case letters, digits, - and ., at most 253 of them";
const LABEL: &str = "use lower-case letters, digits and -, at most 63 of them";
const LONGEST_CRON_JOB: usize = 52;

/// What API servers demand of the names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameRule {
    /// A DNS subdomain.
    Subdomain,
    /// A DNS label.
    Label,
    /// A DNS label that begins with a letter, unless the API server is a recent one.
    LabelOfServices,
    /// Any segment of a path.
    Segment,
    /// A group of a custom or an aggregated API. Custom resources have DNS subdomains, others have rules of their own.
    Foreign,
}

impl NameRule {
    fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") | ("apps", "StatefulSet") => Self::Label,
            ("", "Service") => Self::LabelOfServices,
            (
                "apiregistration.k8s.io"
                | "certificates.k8s.io"
                | "internal.apiserver.k8s.io"
                | "rbac.authorization.k8s.io",
                _,
            )
            | ("", "Event")
            | ("networking.k8s.io", "IPAddress")
            | ("policy", "PodDisruptionBudget") => Self::Segment,
            (group, _) if is_built_in_group(group) => Self::Subdomain,
            _ => Self::Foreign,
        }
    }
}

pub(super) fn check(manifest: &Value, issues: &mut Issues) {
    let gvk = GroupVersionKind::of(manifest).unwrap_or_default();
    let name = object::name(manifest);
    // Other checks report a name that is missing, or that is a template or no segment of a path.
    if !name.is_empty() && !has_braces(name) && !is_no_segment(name) {
        issues.extend(name_issue(name, NameRule::of(&gvk.group, &gvk.kind)));
        issues.extend(derived_name_issue(manifest, &gvk, name));
    }
    namespace(manifest, issues);
}

/// Checks the namespace only.
pub(super) fn namespace(manifest: &Value, issues: &mut Issues) {
    let gvk = GroupVersionKind::of(manifest).unwrap_or_default();
    let namespace = object::namespace(manifest);
    if namespace.is_empty() || has_braces(namespace) || is_no_segment(namespace) {
        return;
    }
    if built_in::is_namespaced(&gvk) == Some(false) {
        let what = format!("metadata.namespace has no effect: a {} belongs to no namespace", gvk.kind);
        issues.push(Issue::warning(what, "leave it out"));
    } else if !dns_label(namespace).is_empty() {
        issues.push(Issue::error("metadata.namespace is no DNS label", LABEL));
    }
}

/// Whether a text cannot be part of a path.
pub(super) fn is_no_segment(text: &str) -> bool {
    matches!(text, "." | "..") || text.contains(['/', '%'])
}

fn name_issue(name: &str, rule: NameRule) -> Option<Issue> {
    let (is_label, is_subdomain) = (dns_label(name).is_empty(), dns_subdomain(name).is_empty());
    match rule {
        NameRule::Segment => None,
        NameRule::Subdomain => (!is_subdomain).then(|| Issue::error("metadata.name is no DNS subdomain", SUBDOMAIN)),
        NameRule::Foreign => (!is_subdomain).then(|| {
            let what = "metadata.name is no DNS subdomain, so API servers refuse it if the kind is a custom one";
            Issue::warning(what, SUBDOMAIN)
        }),
        NameRule::Label | NameRule::LabelOfServices if !is_label => {
            Some(Issue::error("metadata.name is no DNS label", LABEL))
        }
        NameRule::LabelOfServices => name.starts_with(|first: char| first.is_ascii_digit()).then(|| {
            let what = "metadata.name begins with a digit, which not all API servers accept for a Service";
            Issue::warning(what, "begin it with a letter")
        }),
        NameRule::Label => None,
    }
}

/// Checks names that follow from the spec, and the names of CronJobs, which get a suffix for each Job.
fn derived_name_issue(manifest: &Value, gvk: &GroupVersionKind, name: &str) -> Option<Issue> {
    let text = |path: &str| manifest.pointer(path).and_then(Value::as_str);
    let (wanted, rule) = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("batch", "CronJob") if name.len() > LONGEST_CRON_JOB => {
            let what = format!("metadata.name has more than {LONGEST_CRON_JOB} characters");
            return Some(Issue::error(what, "shorten it: each Job of a CronJob gets a suffix"));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            (format!("{}.{}", text("/spec/names/plural")?, text("/spec/group")?), "spec.names.plural and spec.group")
        }
        ("apiregistration.k8s.io", "APIService") => {
            (format!("{}.{}", text("/spec/version")?, text("/spec/group")?), "spec.version and spec.group")
        }
        _ => return None,
    };
    (name != wanted && !has_braces(&wanted))
        .then(|| Issue::error(format!("metadata.name does not consist of {rule}"), format!("write {wanted:?}")))
}
