use cluster::object::GroupKind;
use gardener_resource_manager::api::resources::{keys, managed_resource::ResourceRef};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::checks::plan::{Case, Settings, check};

const KINDS: [(&str, &str); 8] = [
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
    ("extensions/v1beta1", "Ingress"),
    ("networking.k8s.io/v1", "Ingress"),
    ("networking.k8s.io/v1beta1", "Ingress"),
    ("a.io/v1", "Thing"),
    ("b.io/v1", "Thing"),
    ("a.io/v1", "Namespace"),
];

const NAMES: [&str; 4] = ["ConfigMap", "Namespace", "Ingress", "Thing"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn plan_removes_nothing_wanted_and_forgets_nothing(
        wanted in prop::collection::vec((object(), 0..5), 0..6),
        old in prop::collection::vec(object(), 0..6),
        equivalences in prop::collection::vec(equivalence(), 0..3),
        scopes in prop::collection::vec(0..3, NAMES.len()),
        incomplete in prop::bool::weighted(0.2),
    ) {
        let documents = wanted.into_iter().map(|((api_version, kind, namespace, name), mode)| {
            let mode = if mode == 0 { "Ignore" } else { "" };
            json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"namespace": namespace, "name": name, "annotations": {keys::MODE: mode}}})
        });
        let old = old.into_iter().map(|(api_version, kind, namespace, name)| {
            ResourceRef { api_version, kind, namespace, name, ..ResourceRef::default() }
        });
        let kinds_of_scope = |wanted| {
            let kinds = NAMES.iter().zip(&scopes).filter(move |(_, scope)| **scope == wanted);
            kinds.map(|(kind, _)| (*kind).to_owned()).collect()
        };
        let settings = Settings {
            old: old.collect(), equivalences, cluster: kinds_of_scope(1), namespaced: kinds_of_scope(2), incomplete,
        };

        check(&Case { settings, documents: documents.collect::<Vec<Value>>() });
    }
}

fn object() -> impl Strategy<Value = (String, String, String, String)> {
    (prop::sample::select(KINDS.to_vec()), "[ab]?", "[ab]")
        .prop_map(|((api_version, kind), namespace, name)| (api_version.to_owned(), kind.to_owned(), namespace, name))
}

fn equivalence() -> impl Strategy<Value = Vec<GroupKind>> {
    let groups = prop::sample::subsequence(vec!["", "a.io", "b.io", "extensions", "networking.k8s.io"], 1..4);
    (prop::sample::select(NAMES.to_vec()), groups.prop_shuffle())
        .prop_map(|(kind, groups)| groups.into_iter().map(|group| GroupKind::new(group, kind)).collect())
}
