use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, GroupKind, truthy};
use serde_json::Value;

use super::{Findings, Issue, Issues, Manifest, compare, names};
use crate::{
    actors::resource_manager::bundle::identity::{Equivalences, is_built_in_group},
    api::resources::{keys, managed_resource::ManagedResource},
    commands::{
        bundles::Located,
        decoding::Decoding,
        input::{MOST_DUPLICATES, Unreadable, is_dns_subdomain},
    },
    producer::{
        decode::{ManifestDocument, SecretData},
        unique,
    },
};

const OPERATIONS: [&str; 4] =
    [keys::OPERATION_RECONCILE, keys::OPERATION_MIGRATE, keys::OPERATION_RESTORE, keys::OPERATION_WAIT_FOR_STATE];
const FIELDS: [&str; 8] = [
    "class",
    "secretRefs",
    "injectLabels",
    "forceOverwriteLabels",
    "forceOverwriteAnnotations",
    "keepObjects",
    "equivalences",
    "deletePersistentVolumeClaims",
];

/// How many manifests are compared with others of their ManagedResource, counting equivalent kinds: thousands of
/// ManagedResources may name the same Secret of thousands of manifests.
const MOST_COMPARED: usize = 1_000_000;

struct Opened<'a> {
    secret: &'a Located,
    documents: Vec<ManifestDocument>,
}

pub(super) fn check(managed_resources: &[Located], secrets: &[Located], findings: &mut Findings) {
    let mut decoding = Decoding::with_duplicate_keys(MOST_DUPLICATES);
    let opened: Vec<Opened<'_>> = secrets.iter().map(|secret| open(secret, &mut decoding, findings)).collect();
    let mut by_name = BTreeMap::new();
    for (index, Opened { secret, .. }) in opened.iter().enumerate() {
        by_name.entry((object::namespace(&secret.object), object::name(&secret.object))).or_insert(index);
    }
    let manifests: Vec<Vec<Manifest<'_>>> = opened.iter().map(Opened::manifests).collect();
    let mut used = BTreeSet::new();
    let mut left = MOST_COMPARED;
    for located in managed_resources {
        let mr = ManagedResource::from_value(&located.object);
        let mut issues = issues(&located.object, mr.is_err());
        if let Ok(mr) = &mr {
            let set = named(mr, &by_name, &mut issues);
            let all = set.iter().flat_map(|index| &manifests[*index]);
            if compare(all, &Equivalences::with(&mr.spec.equivalences), &mut left).is_err() {
                let what = format!(
                    "the ManagedResources of the input name more than {MOST_COMPARED} manifests, so those of this one \
                     are not all compared with each other"
                );
                issues.push(Issue::warning(what, "validate fewer ManagedResources at once"));
            }
            used.extend(set);
        }
        findings.add(&located.place(), issues);
    }
    let mut unlimited = usize::MAX; // each manifest is compared once only
    for (_, alone) in manifests.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
        compare(alone, &Equivalences::predefined(), &mut unlimited).ok();
    }
    manifests.into_iter().flatten().for_each(|manifest| manifest.report(findings));
}

/// Returns the Secrets that a ManagedResource names, each once, in their order.
fn named(mr: &ManagedResource, secrets: &BTreeMap<(&str, &str), usize>, issues: &mut Issues) -> Vec<usize> {
    let mut set = Vec::new();
    for name in mr.secret_names().filter(|name| !name.is_empty()) {
        match secrets.get(&(mr.metadata.namespace.as_str(), name)) {
            Some(index) => set.push(*index),
            None => issues.warning(
                || format!("Secret {name:?} is not in the input, so its manifests are not checked"),
                "give its file as well",
            ),
        }
    }
    set
}

fn open<'a>(secret: &'a Located, decoding: &mut Decoding, findings: &mut Findings) -> Opened<'a> {
    let mut documents = Vec::new();
    let mut issues = Issues::default();
    if object::name(&secret.object).is_empty() {
        issues.push(Issue::error("there is no metadata.name", "add it"));
    }
    names::check(&secret.object, &mut issues);
    let (namespace, name) = (object::namespace(&secret.object), object::name(&secret.object));
    let place = secret.place();
    match unique::content(&secret.object) {
        Ok(data) => {
            issues.extend(checksum_issue(&secret.object, &data));
            decoding.decode(SecretData { namespace, name, data: &data }, |read| match read {
                Ok(document) => documents.push(document),
                Err(error) => {
                    let (data_key, index) = (error.data_key.clone(), error.index);
                    let unreadable = Unreadable::from(error);
                    let issue = Issue::error(unreadable.to_string(), unreadable.remedy());
                    findings.add_one(&place.at(&data_key, index), issue);
                }
            });
        }
        Err(error) => issues.push(Issue::error(error.to_string(), "encode the value")),
    }
    findings.add(&place, issues);
    Opened { secret, documents }
}

/// Warns if the checksum in the name of an immutable Secret is not that of its data.
fn checksum_issue(secret: &Value, data: &BTreeMap<String, Vec<u8>>) -> Option<Issue> {
    let is_unique = secret["immutable"] == true && truthy(object::label(secret, keys::GARBAGE_COLLECTABLE));
    let (_, suffix) = object::name(secret).rsplit_once('-')?;
    let is_checksum = suffix.len() == 8 && suffix.bytes().all(|byte| byte.is_ascii_hexdigit());
    let expected = unique::checksum(data.values());
    (is_unique && is_checksum && !expected.starts_with(suffix)).then(|| {
        let what = format!("the checksum in the name is not that of the data, {}", &expected[..8]);
        Issue::warning(what, "pack the manifests again instead of editing the Secret")
    })
}

fn issues(object: &Value, is_unreadable: bool) -> Issues {
    let mut issues = Issues::default();
    let name = object::name(object);
    if name.is_empty() {
        issues.push(Issue::error("there is no metadata.name", "add it"));
    } else if !is_dns_subdomain(name) {
        issues.push(Issue::error("metadata.name is no DNS subdomain", "use lower-case letters, digits, - and ."));
    }
    let namespace = object.pointer("/metadata/namespace");
    if namespace.is_some_and(|namespace| !namespace.is_string() && !namespace.is_null()) {
        issues.push(Issue::error("metadata.namespace is no string", "quote it"));
    }
    names::namespace(object, &mut issues);
    let empty = serde_json::Map::new();
    let spec = object["spec"].as_object().unwrap_or(&empty);
    types(spec, &mut issues);
    if is_unreadable && issues.is_empty() {
        issues.push(Issue::error(
            "it does not fit the schema of ManagedResources",
            "see deploy/crd-managedresources.yaml",
        ));
    }
    for field in spec.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
        issues.push(Issue::warning(format!("spec.{field} is not known"), "leave it out"));
    }
    annotations(object, &mut issues);
    equivalences(&spec.get("equivalences").cloned().unwrap_or_default(), &mut issues);
    issues
}

fn types(spec: &serde_json::Map<String, Value>, issues: &mut Issues) {
    match spec.get("secretRefs") {
        None => issues.push(Issue::error("there is no spec.secretRefs", "add it; it may be empty: []")),
        Some(Value::Array(refs)) => {
            let mut seen = BTreeSet::new();
            for (index, reference) in refs.iter().enumerate() {
                match reference.get("name").and_then(Value::as_str) {
                    Some(name) if !name.is_empty() && seen.insert(name) => {}
                    Some(name) if !name.is_empty() => issues.error(
                        || {
                            format!(
                                "spec.secretRefs[{index}] names Secret {name:?} again, so its objects are applied twice"
                            )
                        },
                        "name it once",
                    ),
                    Some(_) | None => {
                        issues.error(|| format!("spec.secretRefs[{index}].name is no name"), "name a Secret");
                    }
                }
            }
        }
        Some(_) => issues.push(Issue::error("spec.secretRefs is no list", "write a list of {name: <Secret>}")),
    }
    let flags = ["forceOverwriteLabels", "forceOverwriteAnnotations", "keepObjects", "deletePersistentVolumeClaims"];
    for flag in flags {
        if spec.get(flag).is_some_and(|value| !value.is_boolean() && !value.is_null()) {
            issues.push(Issue::error(format!("spec.{flag} is no boolean"), "write true or false without quotes"));
        }
    }
    if spec.get("class").is_some_and(|class| !class.is_string() && !class.is_null()) {
        issues.push(Issue::error("spec.class is no string", "quote it"));
    }
    match spec.get("injectLabels") {
        None | Some(Value::Null) => {}
        Some(Value::Object(labels)) => {
            for (key, _) in labels.iter().filter(|(_, value)| !value.is_string()) {
                issues.push(Issue::error(format!("spec.injectLabels: the value of {key:?} is no string"), "quote it"));
            }
            if labels.contains_key(keys::MANAGED_BY) {
                let what = format!("spec.injectLabels: {} is overwritten by the controller", keys::MANAGED_BY);
                issues.push(Issue::warning(what, "leave it out"));
            }
        }
        Some(_) => issues.push(Issue::error("spec.injectLabels is no map", "write key: \"value\" pairs")),
    }
}

fn annotations(object: &Value, issues: &mut Issues) {
    if let Some(value) = object::annotation(object, keys::OPERATION).filter(|value| !OPERATIONS.contains(value)) {
        let what = format!("annotation {}: {value:?} has no effect", keys::OPERATION);
        issues.push(Issue::warning(what, format!("write one of {}", OPERATIONS.join(", "))));
    }
    if truthy(object::annotation(object, keys::IGNORE)) {
        let what = format!("annotation {} keeps the controller from applying anything", keys::IGNORE);
        issues.push(Issue::warning(what, "remove it when it is no longer wanted"));
    }
}

/// Checks for sets with a single kind, with the same kind twice, or with kinds that cannot be the same objects.
fn equivalences(lists: &Value, issues: &mut Issues) {
    let Some(lists) = lists.as_array() else {
        if !lists.is_null() {
            issues.push(Issue::error("spec.equivalences is no list", "write lists of {group: …, kind: …}"));
        }
        return;
    };
    let mut sets_of: BTreeMap<GroupKind, usize> = BTreeMap::new();
    for (index, list) in lists.iter().enumerate() {
        let mut error = |what: &str, remedy: &str| {
            issues.push(Issue::error(format!("spec.equivalences[{index}] {what}"), remedy));
        };
        let text = |item: &Value, field: &str| item.get(field).and_then(Value::as_str).map(str::to_owned);
        let members: Option<Vec<GroupKind>> = list.as_array().and_then(|items| {
            items.iter().map(|item| Some(GroupKind::new(text(item, "group")?, text(item, "kind")?))).collect()
        });
        let Some(members) = members else {
            error("has a member without group or kind", "give both; the group may be \"\"");
            continue;
        };
        let distinct: BTreeSet<&GroupKind> = members.iter().collect();
        if distinct.len() < 2 {
            error(
                "has less than two different kinds, so it has no effect",
                "name all kinds that are equivalent, or remove it",
            );
        }
        if members.iter().any(|member| member.kind.is_empty()) {
            error("has an empty kind", "name the kind");
        }
        let built_in: BTreeSet<&str> = distinct
            .iter()
            .filter(|member| is_built_in_group(&member.group))
            .map(|member| member.kind.as_str())
            .collect();
        if built_in.len() > 1 {
            let all = built_in.into_iter().collect::<Vec<_>>().join(", ");
            error(
                &format!("declares different kinds of the API server to be equivalent: {all}"),
                "name kinds that hold the same objects",
            );
        }
        for member in distinct {
            if let Some(first) = sets_of.get(member).filter(|first| **first != index) {
                let what = format!("names {member}, as spec.equivalences[{first}] does: only one list counts");
                issues.push(Issue::warning(format!("spec.equivalences[{index}] {what}"), "make one list of both"));
            }
            sets_of.entry(member.clone()).or_insert(index);
        }
    }
}

impl Opened<'_> {
    fn manifests(&self) -> Vec<Manifest<'_>> {
        let of_document = |document| Manifest::of_document(&self.secret.location, document);
        self.documents.iter().map(of_document).collect()
    }
}
