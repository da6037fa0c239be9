use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{self, GroupKind, truthy};
use serde_json::Value;

use super::{Finding, Issue, Manifest, check_set, names};
use crate::{
    actors::resource_manager::bundle::identity::{Equivalences, is_built_in_group},
    api::resources::{keys, managed_resource::ManagedResource},
    commands::{
        bundles::Located,
        input::{MOST_DUPLICATES, Unreadable, is_dns_subdomain},
    },
    producer::{
        decode::{Decoder, Limits, ManifestDocument, SecretData},
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

struct Opened<'a> {
    secret: &'a Located,
    documents: Vec<ManifestDocument>,
}

pub(super) fn check(managed_resources: &[Located], secrets: &[Located], findings: &mut Vec<Finding>) {
    let opened: Vec<Opened<'_>> = secrets.iter().map(|secret| open(secret, findings)).collect();
    let mut used = BTreeSet::new();
    for located in managed_resources {
        let mr = ManagedResource::from_value(&located.object);
        findings.extend(issues(&located.object, mr.is_err()).into_iter().map(|issue| located.finding(issue)));
        let Ok(mr) = mr else { continue };
        let equivalences = Equivalences::with(&mr.spec.equivalences);
        let mut set = Vec::new();
        for reference in &mr.spec.secret_refs {
            let found = opened.iter().position(|opened| {
                let namespace = object::namespace(&opened.secret.object);
                object::name(&opened.secret.object) == reference.name && namespace == mr.metadata.namespace
            });
            match found {
                Some(index) => {
                    used.insert(index);
                    set.push(index);
                }
                None if !reference.name.is_empty() => {
                    let what =
                        format!("Secret {:?} is not in the input, so its manifests are not checked", reference.name);
                    findings.push(located.finding(Issue::warning(what, "give its file as well")));
                }
                None => {}
            }
        }
        check_set(set.iter().flat_map(|index| opened[*index].manifests()), &equivalences, findings);
    }
    for (_, alone) in opened.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
        check_set(alone.manifests(), &Equivalences::predefined(), findings);
    }
}

fn open<'a>(secret: &'a Located, findings: &mut Vec<Finding>) -> Opened<'a> {
    let mut opened = Opened { secret, documents: Vec::new() };
    if object::name(&secret.object).is_empty() {
        findings.push(secret.finding(Issue::error("there is no metadata.name", "add it")));
    }
    let mut issues = Vec::new();
    names::check(&secret.object, &mut issues);
    findings.extend(issues.into_iter().map(|issue| secret.finding(issue)));
    let data = match unique::content(&secret.object) {
        Ok(data) => data,
        Err(error) => {
            findings.push(secret.finding(Issue::error(error.to_string(), "encode the value")));
            return opened;
        }
    };
    let (namespace, name) = (object::namespace(&secret.object), object::name(&secret.object));
    let decoder = Decoder::new([SecretData { namespace, name, data: &data }], Limits::default());
    for read in decoder.with_duplicate_keys(MOST_DUPLICATES) {
        match read {
            Ok(document) => opened.documents.push(document),
            Err(error) => {
                let inside = format!("{}:{}", error.data_key, error.index);
                let unreadable = Unreadable::from(error);
                let mut finding = secret.finding(Issue::error(unreadable.to_string(), unreadable.remedy()));
                finding.inside = inside;
                findings.push(finding);
            }
        }
    }
    findings.extend(checksum_issue(&secret.object, &data).map(|issue| secret.finding(issue)));
    opened
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

fn issues(object: &Value, is_unreadable: bool) -> Vec<Issue> {
    let mut issues = Vec::new();
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

fn types(spec: &serde_json::Map<String, Value>, issues: &mut Vec<Issue>) {
    match spec.get("secretRefs") {
        None => issues.push(Issue::error("there is no spec.secretRefs", "add it; it may be empty: []")),
        Some(Value::Array(refs)) => {
            let mut seen = BTreeSet::new();
            for (index, reference) in refs.iter().enumerate() {
                match reference.get("name").and_then(Value::as_str) {
                    Some(name) if !name.is_empty() && seen.insert(name) => {}
                    Some(name) if !name.is_empty() => issues.push(Issue::error(
                        format!(
                            "spec.secretRefs[{index}] names Secret {name:?} again, so its objects are applied twice"
                        ),
                        "name it once",
                    )),
                    Some(_) | None => {
                        issues.push(Issue::error(format!("spec.secretRefs[{index}].name is no name"), "name a Secret"));
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

fn annotations(object: &Value, issues: &mut Vec<Issue>) {
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
fn equivalences(lists: &Value, issues: &mut Vec<Issue>) {
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
    fn manifests(&self) -> impl Iterator<Item = Manifest<'_>> {
        self.documents.iter().map(|document| Manifest {
            location: &self.secret.location,
            inside: format!("{}:{}", document.data_key, document.index),
            object: &document.manifest,
            warnings: &document.warnings,
            duplicate_keys: &document.duplicate_keys,
        })
    }
}
