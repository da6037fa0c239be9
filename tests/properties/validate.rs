//! Reviews of extension objects (spec 62).

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{checks::validate::check, json_value};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn extension_objects_are_answered(review in review()) {
        check(review.to_string().as_bytes());
    }
}

/// With two objects of one kind; some of their fields are those of that kind.
fn review() -> impl Strategy<Value = Value> {
    let kind = select(vec!["Bastion", "DNSRecord", "Etcd", "Network", "OperatingSystemConfig", "Worker"]);
    let fields =
        vec!["type", "userData", "values", "backup", "ipFamilies", "files", "units", "pools", "providerConfig"];
    let spec = prop::collection::btree_map(select(fields), json_value(), 0..4);
    let operation = select(vec!["CREATE", "UPDATE", "DELETE", "CONNECT"]);
    (kind, operation, json_value(), spec.clone(), spec).prop_map(|(kind, operation, metadata, new, old)| {
        let group = if kind == "Etcd" { "druid.gardener.cloud" } else { "extensions.gardener.cloud" };
        let object = |spec| {
            json!({
                "apiVersion": format!("{group}/v1alpha1"), "kind": kind, "metadata": metadata, "spec": spec,
            })
        };
        json!({ "request": { "uid": "u", "operation": operation, "object": object(new), "oldObject": object(old) } })
    })
}
