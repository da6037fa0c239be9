//! `validate`: finds mistakes in manifests and in ManagedResources with their Secrets, without a cluster.

mod built_in;
mod bundle;
mod finding;
mod metadata;
mod names;
mod object;
mod template;

use std::{cell::RefCell, collections::BTreeMap};

use cluster::object::ObjectKey;
use serde_json::Value;

use self::finding::{Findings, Issue, Issues, Place};
use super::{
    DIFFERENT, OK, Said,
    bundles::{Bundles, Located},
    input::{InputLocation, Source},
};
use crate::{
    actors::resource_manager::bundle::identity::{self, Equivalences},
    api::config::{
        controller_manager,
        resource_manager::{self, ConfigError, Warning},
    },
    producer::decode::{DuplicateKey, LabelWarning, ManifestDocument},
};

/// A manifest and what is wrong with it. Checks of a set add to it.
struct Manifest<'a> {
    location: &'a InputLocation,
    /// Data key and position in a Secret.
    inside: Option<(&'a str, usize)>,
    object: &'a Value,
    issues: RefCell<Issues>,
}

/// There are more manifests to compare than are allowed.
struct TooMany;

pub(super) fn validate(sources: &[Source]) -> Said {
    let mut findings = Findings::default();
    let Bundles { managed_resources, secrets, manifests, broken } = Bundles::of(sources);
    for (location, unreadable) in &broken {
        let place = Place { location, inside: None, object: String::new() };
        findings.add_one(&place, Issue::error(unreadable.to_string(), unreadable.remedy()));
    }
    let (configurations, manifests): (Vec<_>, Vec<_>) =
        manifests.into_iter().partition(|located| ConfigurationKind::of(&located.object).is_some());
    for located in &configurations {
        let mut issues = Issues::default();
        issues.extend(
            ConfigurationKind::of(&located.object).map(|kind| configuration(located, kind)).unwrap_or_default(),
        );
        findings.add(&located.place(), issues);
    }
    for located in managed_resources.iter().chain(&secrets).chain(&configurations) {
        let mut issues = Issues::default();
        issues.extend(duplicates(&located.duplicate_keys));
        findings.add(&located.place(), issues);
    }
    bundle::check(&managed_resources, &secrets, &mut findings);
    let loose: Vec<Manifest<'_>> = manifests.iter().map(Manifest::of_file).collect();
    let mut unlimited = usize::MAX; // each manifest is compared once only
    compare(&loose, &Equivalences::predefined(), &mut unlimited).ok();
    loose.into_iter().for_each(|manifest| manifest.report(&mut findings));

    let (errors, warnings) = (findings.errors, findings.warnings);
    let (out, more) = findings.into_text();
    let documents = managed_resources.len() + secrets.len() + manifests.len() + configurations.len();
    let mut remarks = Vec::new();
    if more > 0 {
        remarks.push(format!("{more} more findings are not listed — correct these first"));
    }
    remarks.push(format!("documents: {documents}, errors: {errors}, warnings: {warnings}"));
    Said { out, remarks, code: if errors > 0 { DIFFERENT } else { OK }, ..Said::default() }
}

/// Finds manifests that stand for the same object. Fails if there are more than `left`, which it counts down.
fn compare<'m, 'a: 'm>(
    manifests: impl IntoIterator<Item = &'m Manifest<'a>>,
    equivalences: &Equivalences,
    left: &mut usize,
) -> Result<(), TooMany> {
    let mut seen: BTreeMap<ObjectKey, &Manifest<'_>> = BTreeMap::new();
    for manifest in manifests {
        let key = identity::key_of_object(manifest.object);
        let others: Vec<ObjectKey> = equivalences.of_key(&key).collect();
        *left = left.checked_sub(1 + others.len()).ok_or(TooMany)?;
        if key.name.is_empty() || key.kind.is_empty() {
            continue;
        }
        let mut issues = manifest.issues.borrow_mut();
        if let Some(first) = seen.get(&key) {
            issues.error(|| format!("the same object is in {}", first.place()), "remove one of them");
        } else if let Some((other, first)) = others.iter().find_map(|other| Some((other, seen.get(other)?))) {
            let what = || format!("stands for the same object as {} in {}", other.group_kind(), first.place());
            issues.error(what, "remove one of them");
        } else {
            seen.insert(key, manifest);
        }
    }
    Ok(())
}

/// One of the values has no effect, whatever reads the document. So it is an error, although the last value is applied.
fn duplicates(keys: &[DuplicateKey]) -> impl Iterator<Item = Issue> {
    keys.iter().map(|DuplicateKey { path, line }| {
        let what = format!("duplicate key {path} in line {line}: only the last one has an effect");
        Issue::error(what, "remove one of them")
    })
}

/// A component configuration, as the program that it is for loads it.
struct ConfigurationKind {
    api_version: &'static str,
    kind: &'static str,
    /// Returns warnings about a file.
    load: fn(&[u8]) -> Result<Vec<Warning>, ConfigError>,
}

static CONFIGURATION_KINDS: [ConfigurationKind; 2] = [
    ConfigurationKind {
        api_version: resource_manager::API_VERSION,
        kind: resource_manager::KIND,
        load: |file| Ok(resource_manager::load(file)?.warnings),
    },
    ConfigurationKind {
        api_version: controller_manager::API_VERSION,
        kind: controller_manager::KIND,
        load: |file| Ok(controller_manager::load(file, None)?.warnings),
    },
];

impl ConfigurationKind {
    /// Returns the kind that a document has, or means: kind or group may be wrong.
    fn of(document: &Value) -> Option<&'static Self> {
        let group = |api_version: &str| api_version.split_once('/').map(|(group, _)| group.to_owned());
        let given = document.get("apiVersion").and_then(Value::as_str).and_then(group);
        let is_meant = |it: &&Self| {
            document.get("kind").and_then(Value::as_str) == Some(it.kind) || given == group(it.api_version)
        };
        CONFIGURATION_KINDS.iter().find(is_meant)
    }
}

fn configuration(located: &Located, kind: &ConfigurationKind) -> Vec<Issue> {
    const SEE: &str = "see docs/configuration.md";

    match (kind.load)(located.object.to_string().as_bytes()) {
        Ok(warnings) => warnings.iter().map(|warning| Issue::warning(warning.to_string(), SEE)).collect(),
        Err(error @ ConfigError::UnknownFeatureGate(_)) => vec![Issue::error(error.to_string(), SEE)],
        Err(ConfigError::Decode(error)) => vec![Issue::error(error.to_string(), SEE)],
        Err(ConfigError::Invalid(errors)) => errors.iter().map(|error| Issue::error(error.to_string(), SEE)).collect(),
    }
}

impl Located {
    fn place(&self) -> Place<'_> {
        Place::new(&self.location, None, &self.object)
    }
}

impl<'a> Manifest<'a> {
    fn of_file(located: &'a Located) -> Self {
        let Located { location, object, warnings, duplicate_keys } = located;
        Self::checked(location, None, object, (warnings, duplicate_keys))
    }

    fn of_document(location: &'a InputLocation, document: &'a ManifestDocument) -> Self {
        let inside = Some((&*document.data_key, document.index));
        Self::checked(location, inside, &document.manifest, (&document.warnings, &document.duplicate_keys))
    }

    fn checked(
        location: &'a InputLocation,
        inside: Option<(&'a str, usize)>,
        object: &'a Value,
        (warnings, duplicate_keys): (&[LabelWarning], &[DuplicateKey]),
    ) -> Self {
        let mut issues = object::check(object, warnings);
        issues.extend(duplicates(duplicate_keys));
        Self { location, inside, object, issues: RefCell::new(issues) }
    }

    fn place(&self) -> Place<'a> {
        Place::new(self.location, self.inside, self.object)
    }

    fn report(self, findings: &mut Findings) {
        let place = self.place();
        findings.add(&place, self.issues.into_inner());
    }
}
