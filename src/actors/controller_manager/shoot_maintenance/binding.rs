//! The CredentialsBinding that takes the place of a SecretBinding (spec 84 C.10.1). Pure.

use std::collections::BTreeSet;

use cluster::object::{self, NamespacedName};
use serde_json::{Value, json};

use crate::{
    actors::controller_manager::fields::{list, text},
    api::kinds,
};

/// Label of the bindings that a maintenance creates.
const STATUS: &str = "credentialsbinding.gardener.cloud/status";

/// Returns the name of the CredentialsBinding that a maintenance creates.
pub(super) fn migrated_name(secret_binding: &NamespacedName) -> NamespacedName {
    NamespacedName::new(&*secret_binding.namespace, format!("force-migrated-{}", secret_binding.name))
}

/// In what a CredentialsBinding differs from a SecretBinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    Secret,
    Quotas,
}

fn difference(secret_binding: &Value, credentials_binding: &Value) -> Option<Difference> {
    let field = |pointer| text(credentials_binding, pointer);
    let is_secret = (field("/credentialsRef/apiVersion"), field("/credentialsRef/kind")) == ("v1", "Secret");
    let is_same = secret(credentials_binding, "/credentialsRef") == secret(secret_binding, "/secretRef");
    let quotas = |binding| list(binding, "/quotas").map(|entry| quota(binding, entry)).collect::<BTreeSet<_>>();
    let count = |binding| list(binding, "/quotas").count();
    if !is_secret || !is_same {
        Some(Difference::Secret)
    } else if count(secret_binding) != count(credentials_binding)
        || quotas(secret_binding) != quotas(credentials_binding)
    {
        Some(Difference::Quotas)
    } else {
        None
    }
}

/// Namespace and name of a reference.
fn secret<'a>(binding: &'a Value, reference: &str) -> [&'a str; 2] {
    let field = |name| text(binding, &format!("{reference}/{name}"));
    [or_own(field("namespace"), binding), field("name")]
}

fn quota<'a>(binding: &'a Value, reference: &'a Value) -> [&'a str; 4] {
    let [version, kind, namespace, name] =
        ["/apiVersion", "/kind", "/namespace", "/name"].map(|field| text(reference, field));
    [version, kind, or_own(namespace, binding), name]
}

/// An empty namespace is that of the binding (spec 80 §10.2).
fn or_own<'a>(namespace: &'a str, binding: &'a Value) -> &'a str {
    if namespace.is_empty() { object::namespace(binding) } else { namespace }
}

/// Checks that an existing CredentialsBinding says the same as the SecretBinding (step 2).
pub(super) fn check_existing(secret_binding: &Value, existing: &Value) -> Result<(), String> {
    let what = match difference(secret_binding, existing) {
        None => return Ok(()),
        Some(Difference::Secret) => "reference the same Secret",
        Some(Difference::Quotas) => "have the same Quotas",
    };
    let (existing, secret_binding) = (NamespacedName::of(existing), NamespacedName::of(secret_binding));
    Err(format!("existing CredentialsBinding {existing} does not {what} as SecretBinding {secret_binding}"))
}

/// Returns the name of the alphabetically first CredentialsBinding that says the same and is not being deleted (step 3).
pub(super) fn first_matching<'a>(secret_binding: &Value, all: impl Iterator<Item = &'a Value>) -> Option<&'a str> {
    let matches = |binding: &&Value| {
        object::deletion_timestamp(binding).is_none() && difference(secret_binding, binding).is_none()
    };
    all.filter(matches).map(object::name).min()
}

/// Returns the CredentialsBinding to create (step 4).
pub(super) fn migrated(secret_binding: &Value, provider_of_shoot: &str) -> Value {
    let own = text(secret_binding, "/provider/type");
    let provider = if own.is_empty() { provider_of_shoot } else { own };
    let name = migrated_name(&NamespacedName::of(secret_binding));
    let [secret_namespace, secret_name] = secret(secret_binding, "/secretRef");
    let mut binding = json!({
        "apiVersion": kinds::CREDENTIALS_BINDING.api_version(),
        "kind": &*kinds::CREDENTIALS_BINDING.kind,
        "metadata": { "name": name.name, "namespace": name.namespace, "labels": { STATUS: "force-migrated" } },
        "provider": { "type": provider },
        "credentialsRef": {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": secret_name,
            "namespace": secret_namespace,
        },
    });
    let quotas = secret_binding.get("quotas").filter(|quotas| !quotas.is_null());
    if let (Some(quotas), Some(fields)) = (quotas, binding.as_object_mut()) {
        fields.insert("quotas".to_owned(), quotas.clone());
    }
    binding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret_binding(quotas: Value) -> Value {
        json!({ "metadata": { "namespace": "ns", "name": "sb" }, "secretRef": { "name": "s", "namespace": "ns" }, "quotas": quotas })
    }

    fn credentials_binding(name: &str, secret: &str, quotas: Value) -> Value {
        let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": secret, "namespace": "ns" });
        json!({ "metadata": { "namespace": "ns", "name": name }, "credentialsRef": reference, "quotas": quotas })
    }

    fn quota(name: &str) -> Value {
        json!({ "name": name, "namespace": "ns" })
    }

    /// spec 84 C.10.1, scenario 52
    #[test]
    fn binding_that_exists_must_say_the_same() {
        let with = |quotas: Value| credentials_binding("force-migrated-sb", "s", quotas);
        let own = secret_binding(json!([quota("a"), quota("b")]));

        assert_eq!(check_existing(&own, &with(json!([quota("b"), quota("a")]))), Ok(()));
        let other =
            "existing CredentialsBinding ns/force-migrated-sb does not have the same Quotas as SecretBinding ns/sb";
        for quotas in [
            json!([quota("a")]),
            json!([quota("a"), quota("a")]),
            json!([quota("a"), quota("b"), quota("b")]),
            json!(null),
        ] {
            assert_eq!(check_existing(&own, &with(quotas)), Err(other.to_owned()));
        }
        let other = "existing CredentialsBinding ns/force-migrated-sb does not reference the same Secret as SecretBinding ns/sb";
        assert_eq!(
            check_existing(&own, &credentials_binding("force-migrated-sb", "x", json!([]))),
            Err(other.to_owned())
        );
        assert_eq!(check_existing(&secret_binding(json!(null)), &with(json!([]))), Ok(()));
    }

    /// spec 84 C.10.1 step 3, scenario 52
    #[test]
    fn binding_of_users_is_the_alphabetically_first_that_matches() {
        let mut deleted = credentials_binding("a", "s", json!(null));
        deleted["metadata"]["deletionTimestamp"] = json!("2026-08-21T12:00:00Z");
        let all = [
            credentials_binding("d", "s", json!(null)),
            credentials_binding("b", "other", json!(null)),
            credentials_binding("c", "s", json!(null)),
            deleted,
        ];
        assert_eq!(first_matching(&secret_binding(json!(null)), all.iter()), Some("c"));
        assert_eq!(first_matching(&secret_binding(json!([quota("a")])), all.iter()), None);
    }

    /// spec 84 C.10.1 step 4, scenario 51
    #[test]
    fn binding_of_a_maintenance_has_the_secret_and_the_quotas() {
        let binding = migrated(&secret_binding(json!([quota("a")])), "p");

        let expected = json!({ "apiVersion": "security.gardener.cloud/v1alpha1", "kind": "CredentialsBinding",
            "metadata": { "name": "force-migrated-sb", "namespace": "ns", "labels": { STATUS: "force-migrated" } },
            "provider": { "type": "p" }, "quotas": [quota("a")],
            "credentialsRef": { "apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "ns" } });
        assert_eq!(binding, expected);
        assert_eq!(check_existing(&secret_binding(json!([quota("a")])), &binding), Ok(()));
        let typed = json!({ "metadata": {}, "provider": { "type": "own" } });
        assert_eq!(migrated(&typed, "p").pointer("/provider/type"), Some(&json!("own")));
    }
}
