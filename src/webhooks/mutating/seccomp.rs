//! `seccomp-profile`: the profile `RuntimeDefault` for Pods without one (spec 50 §7).

use serde_json::{Value, json};

use super::{Mutation, Mutator, Request};
use crate::webhooks::{
    fields::{self, Field, Type},
    view::{Failure, View},
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/seccomp-profile";

const FIELDS: [Field; 2] = [("spec.securityContext.seccompProfile.type", Type::Text), ("spec.os.name", Type::Text)];

/// Gives Pods without a seccomp profile the container runtime's default. Profiles of containers win anyway.
#[derive(Debug, Clone, Copy)]
pub struct Seccomp;

impl Mutator for Seccomp {
    fn mutate(&self, pod: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        let profile = fields::text(pod, &["spec", "securityContext", "seccompProfile", "type"])?.unwrap_or_default();
        // The API server refuses the field in a Pod for Windows (spec 50, "better" 13).
        let is_windows = fields::text(pod, &["spec", "os", "name"])? == Some("windows");
        if profile.is_empty() && !is_windows {
            let profile = json!({ "type": "RuntimeDefault" });
            fields::map_mut(pod, &["spec", "securityContext"])?.insert("seccompProfile".to_owned(), profile);
        }
        Ok(Mutation::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::{TestView, changes, failure, leaves};

    /// spec 50 §7, scenario 22
    #[test]
    fn pod_without_a_profile_gets_the_default_of_the_runtime() {
        let view = TestView::new();

        changes(
            &Seccomp,
            &view,
            "
spec: {securityContext: {runAsUser: 1000}}
---
spec: {securityContext: {runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}}
",
        );
        for before in [
            "{}",
            "spec: {securityContext: null}",
            "spec: {securityContext: {seccompProfile: null}}",
            "spec: {securityContext: {seccompProfile: {}}}",
            "spec: {securityContext: {seccompProfile: {type: ''}}}",
            // The whole profile is replaced.
            "spec: {securityContext: {seccompProfile: {type: '', localhostProfile: a}}}",
        ] {
            let after = "spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}}";
            changes(&Seccomp, &view, &format!("{before}\n---\n{after}"));
        }
        assert!(view.reads().is_empty());
    }

    /// spec 50 §7, scenario 22
    #[test]
    fn profile_of_a_pod_stays() {
        for profile in ["{type: Unconfined}", "{type: RuntimeDefault}", "{type: Localhost, localhostProfile: a}"] {
            let pod = format!("spec: {{securityContext: {{seccompProfile: {profile}}}}}");
            leaves(&Seccomp, &TestView::new(), &pod);
        }
    }

    /// spec 50 §7
    #[test]
    fn containers_are_neither_read_nor_changed() {
        changes(
            &Seccomp,
            &TestView::new(),
            "
spec: {containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}, {name: b}]}
---
spec:
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  containers: [{name: a, securityContext: {seccompProfile: {type: Unconfined}}}, {name: b}]
",
        );
    }

    /// spec 50, "better" 13
    #[test]
    fn windows_pod_gets_no_profile() {
        leaves(&Seccomp, &TestView::new(), "spec: {os: {name: windows}}");
        changes(
            &Seccomp,
            &TestView::new(),
            "
spec: {os: {name: linux}}
---
spec: {os: {name: linux}, securityContext: {seccompProfile: {type: RuntimeDefault}}}
",
        );
    }

    /// spec 50 §2.2 row 7
    #[test]
    fn wrong_type_is_an_error_that_names_the_field() {
        for (pod, message) in [
            ("spec: {securityContext: []}", "spec.securityContext: expected a map, found a list"),
            (
                "spec: {securityContext: {seccompProfile: a}}",
                "spec.securityContext.seccompProfile: expected a map, found a string",
            ),
            ("spec: {os: {name: 1}}", "spec.os.name: expected a string, found a number"),
        ] {
            let expected = Failure::Errored { code: 400, message: message.to_owned() };
            assert_eq!(failure(&Seccomp, &TestView::new(), pod), expected);
        }
    }
}
