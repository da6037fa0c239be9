//! Properties of the merge (spec 10 §11.3, §11.4, §12).

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{GroupKind, truthy};
use gardener_resource_manager::{
    actors::resource_manager::bundle::{
        inject,
        merge::{self, MergeContext},
        plan::Old,
        up_to_date::{differs, up_to_date},
    },
    api::resources::keys,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    fields::{at, differences, may_differ},
    kind_of, settings_and_objects,
};

const ORIGIN: &str = "ns/mr";
const MANAGED_BY: &str = "gardener";
const OWN_MANAGER: &str = "gardener-resource-manager";

type Strings = BTreeMap<String, String>;

#[derive(Debug, Clone)]
pub struct Case {
    pub settings: Settings,
    pub manifest: Value,
    pub live: Option<Value>,
}

/// Options of a merge: the first document of a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Settings {
    pub inject_labels: Strings,
    pub force_labels: bool,
    pub force_annotations: bool,
    pub scaled: bool,
    pub old_labels: Strings,
    pub old_annotations: Strings,
}

pub fn check(case: &Case) {
    let labels = case.labels();
    let old = Old { labels: case.settings.old_labels.clone(), annotations: case.settings.old_annotations.clone() };
    let context = MergeContext {
        origin: ORIGIN,
        labels: &labels,
        old: Some(&old),
        force_overwrite_labels: case.settings.force_labels,
        force_overwrite_annotations: case.settings.force_annotations,
        preserve_replicas: case.settings.scaled,
    };
    let merged = match &case.live {
        Some(live) => merge::merge(&case.manifest, live, &context),
        None => merge::for_create(&case.manifest, &context),
    };
    let merged = match merged {
        Ok(merged) => merged,
        Err(error) => {
            assert_eq!(merge::for_create(&case.manifest, &context), Err(error), "the live object is not to blame");
            return;
        }
    };

    if !has_a_port_twice(&case.manifest) {
        let again = merge::merge(&case.manifest, &merged, &context);
        assert_eq!(again.as_ref(), Ok(&merged), "a second merge changes nothing");
    }
    assert!(!differs(&merged, &merged), "an object equals itself");
    assert!(up_to_date(&merged, &merged, OWN_MANAGER), "the sent object is up to date");
    if !differs(&merged, case.live()) {
        assert!(up_to_date(&merged, case.live(), OWN_MANAGER), "the tolerant comparison finds no more differences");
    }
    if case.is_ignored() {
        check_ignored(case, &merged);
        return;
    }
    check_fields(case, &merged);
    check_metadata(case, &merged);
    if let Some(live) = &case.live {
        let mut injected = case.manifest.clone();
        inject::inject_labels(&mut injected, &labels)
            .expect("labels that could be injected once can be injected again");
        assert_eq!(merge::merge(&injected, live, &context), Ok(merged), "labels may be injected before the merge");
    }
}

/// spec 10 §11.3.4: the object stays as it is; only an old description is removed.
fn check_ignored(case: &Case, merged: &Value) {
    for path in differences(case.live(), merged) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        assert!(
            matches!(path[..], ["metadata", "annotations", keys::DESCRIPTION, ..]),
            "ignored, but changed at {path:?}"
        );
    }
}

fn check_fields(case: &Case, merged: &Value) {
    let kind = kind_of(&case.manifest).group_kind();
    for path in differences(&case.manifest, merged) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[..] {
            ["metadata", ..] => {}
            ["status", ..] => {
                let live = at(case.live(), &path);
                assert_eq!(at(merged, &path), live.filter(|_| at(merged, &["status"]).is_some()), "{path:?}");
            }
            _ => assert!(may_differ(case, &kind, &path), "merged differs from the manifest of a {kind} at {path:?}"),
        }
    }
}

/// spec 10 §12.1, §12.2
fn check_metadata(case: &Case, merged: &Value) {
    let live = case.live();
    for path in differences(live, merged) {
        if let ["metadata", field, ..] = path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            let is_merged = matches!(field, "labels" | "annotations" | "ownerReferences");
            assert!(is_merged, "metadata of the live object changed at {path:?}");
        }
    }
    let owners = |object| at(object, &["metadata", "ownerReferences"]).filter(|owners| is_something(owners));
    assert_eq!(owners(merged), owners(&case.manifest), "owner references come from the manifest alone");

    let mut wanted = inject::string_map(&case.manifest, "labels");
    wanted.extend(case.labels());
    let keep_labels = |_: &str| !case.settings.force_labels;
    check_map("labels", &wanted, live, &case.settings.old_labels, keep_labels, merged);

    let mut wanted = inject::string_map(&case.manifest, "annotations");
    wanted.insert(keys::DESCRIPTION.to_owned(), keys::DESCRIPTION_TEXT.to_owned());
    wanted.insert(keys::ORIGIN.to_owned(), ORIGIN.to_owned());
    let is_service = kind_of(&case.manifest).group_kind() == GroupKind::new("", "Service");
    let is_token = case.manifest["type"] == "kubernetes.io/service-account-token"
        && kind_of(&case.manifest).group_kind() == GroupKind::new("", "Secret");
    let keep_annotations = |key: &str| {
        if is_token && key == "kubernetes.io/service-account.uid" {
            return true;
        }
        if case.settings.force_annotations {
            is_service && key.starts_with(keys::OPENSTACK_LOAD_BALANCER_PREFIX)
        } else {
            !key.starts_with(keys::REFERENCE_PREFIX)
        }
    };
    check_map("annotations", &wanted, live, &case.settings.old_annotations, keep_annotations, merged);
}

/// All wanted entries are present. Any other entry comes from the live object, may be kept, and was not applied by us.
fn check_map(
    field: &'static str,
    wanted: &Strings,
    live: &Value,
    old: &Strings,
    may_keep: impl Fn(&str) -> bool,
    merged: &Value,
) {
    let (live, merged) = (inject::string_map(live, field), inject::string_map(merged, field));
    for (key, value) in wanted {
        assert_eq!(merged.get(key), Some(value), "{field}: {key} is wanted");
    }
    for (key, value) in merged.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
        assert_eq!(live.get(key), Some(value), "{field}: {key} is neither wanted nor live");
        assert!(may_keep(key), "{field}: {key} must not be kept");
    }
    for (key, value) in live.iter().filter(|(key, _)| !merged.contains_key(*key)) {
        assert!(!may_keep(key) || old.get(key) == Some(value), "{field}: {key} was not ours to remove");
    }
}

/// Whether two ports are indistinguishable. The API server refuses them; their node ports would swap with each merge.
fn has_a_port_twice(manifest: &Value) -> bool {
    let text = |port: &Value, field, default: &str| {
        let text = port.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.unwrap_or(default).to_owned()
    };
    let number = |port: &Value| port.get("port").and_then(Value::as_f64).unwrap_or_default() as i64;
    let ports = at(manifest, &["spec", "ports"]).and_then(Value::as_array);
    let mut seen = BTreeSet::new();
    let is_new = |port| seen.insert((number(port), text(port, "name", ""), text(port, "protocol", "TCP")));
    !ports.into_iter().flatten().all(is_new)
}

fn is_something(value: &Value) -> bool {
    !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty())
}

impl TryFrom<&[u8]> for Case {
    type Error = String;

    fn try_from(input: &[u8]) -> Result<Self, String> {
        let (settings, mut objects) = settings_and_objects(input)?;
        let case = Self { settings, manifest: objects.next().ok_or("no manifest")?, live: objects.next() };
        if objects.next().is_some() { Err("more than two objects".to_owned()) } else { Ok(case) }
    }
}

impl Case {
    /// Returns the live object. For a creation, that is the manifest (spec 10 §11.3.2).
    pub(super) fn live(&self) -> &Value {
        self.live.as_ref().unwrap_or(&self.manifest)
    }

    pub(super) fn labels(&self) -> Strings {
        inject::labels_to_inject(&self.settings.inject_labels, MANAGED_BY)
    }

    pub(super) fn keeps_replicas(&self) -> bool {
        self.settings.scaled || self.annotation(keys::PRESERVE_REPLICAS).is_some_and(|value| value == "true")
    }

    pub(super) fn keeps_resources(&self) -> bool {
        self.annotation(keys::PRESERVE_RESOURCES).is_some_and(|value| value == "true")
    }

    fn is_ignored(&self) -> bool {
        truthy(self.annotation(keys::IGNORE).as_deref())
    }

    fn annotation(&self, key: &str) -> Option<String> {
        inject::string_map(&self.manifest, "annotations").remove(key)
    }
}
