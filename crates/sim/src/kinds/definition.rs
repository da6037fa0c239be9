use std::sync::Arc;

use serde_json::Value;

use super::{Generation, Scale, ServedKind, Subresource, version_order};

/// All verbs in the order of the documents of custom groups.
const CUSTOM_VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

pub(crate) fn of_definition(definition: &Value) -> Vec<ServedKind> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["served"] == true).map(|version| kind(spec, version)).collect()
}

fn kind(spec: &Value, version: &Value) -> ServedKind {
    let names = &spec["names"];
    let kind = text(&names["kind"]);
    let or =
        |field: &str, default: String| Some(text(&names[field])).filter(|name| !name.is_empty()).unwrap_or(default);
    let has_status = version["subresources"]["status"].is_object();
    let scale = scale(&version["subresources"]["scale"]);
    ServedKind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        plural: text(&names["plural"]),
        singular: or("singular", kind.to_lowercase()),
        list_kind: or("listKind", format!("{kind}List")),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        has_status,
        generation: if has_status { Generation::ContentWithoutStatus } else { Generation::Content },
        verbs: CUSTOM_VERBS.to_vec(),
        subresources: subresources(&kind, has_status, scale.is_some()),
        scale,
        requires_resource_version: true,
        creates_on_update: false,
        answers_delete_with_object: false,
        custom: true,
        schema: version["schema"].get("openAPIV3Schema").cloned().map(Arc::new),
        warning: (version["deprecated"] == true).then(|| deprecation(spec, version)),
        kind,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn scale(paths: &Value) -> Option<Scale> {
    // Definitions write `.spec.replicas`.
    let pointer = |field: &str| paths[field].as_str().map(|path| path.replace('.', "/"));
    Some(Scale {
        spec_replicas: pointer("specReplicasPath")?,
        status_replicas: pointer("statusReplicasPath")?,
        selector: pointer("labelSelectorPath"),
    })
}

fn subresources(kind: &str, has_status: bool, has_scale: bool) -> Vec<Subresource> {
    let of = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: vec!["get", "patch", "update"],
    };
    let scale = has_scale.then(|| of("scale", "autoscaling", "v1", "Scale"));
    let status = has_status.then(|| of("status", "", "", kind));
    scale.into_iter().chain(status).collect()
}

/// The warning of a deprecated version: the author's, or a text with the newest better version.
fn deprecation(spec: &Value, version: &Value) -> String {
    if let Some(own) = version["deprecationWarning"].as_str() {
        return own.to_owned();
    }
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let name = text(&version["name"]);
    let all = spec["versions"].as_array().into_iter().flatten();
    let better = all
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(&other["name"]))
        .filter(|other| version_order(other) < version_order(&name))
        .min_by_key(|other| version_order(other));
    match better {
        None => format!("{group}/{name} {kind} is deprecated"),
        Some(better) => format!("{group}/{name} {kind} is deprecated; use {group}/{better} {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_served_version_of_a_definition_is_a_kind() {
        let definition = json!({"spec": {
            "group": "g.io",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "versions": [
                {"name": "v1beta1", "served": true, "deprecated": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v1", "served": true, "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}},
                {"name": "v2", "served": false},
            ],
        }});

        let kinds = of_definition(&definition);

        assert_eq!(kinds.iter().map(ServedKind::api_version).collect::<Vec<_>>(), ["g.io/v1beta1", "g.io/v1"]);
        assert_eq!(kinds[0].warning.as_deref(), Some("g.io/v1beta1 Thing is deprecated; use g.io/v1 Thing"));
        assert!(kinds[0].schema.is_some() && !kinds[0].has_status && kinds[0].generation == Generation::Content);
        assert_eq!((kinds[1].singular.as_str(), kinds[1].list_kind.as_str()), ("thing", "ThingList"));
        assert_eq!(kinds[1].scale.as_ref().map(|scale| scale.spec_replicas.as_str()), Some("/spec/replicas"));
        assert_eq!(kinds[1].generation, Generation::ContentWithoutStatus);
    }
}
