//! `validate`: finds mistakes in manifests and in ManagedResources with their Secrets, without a cluster.

mod built_in;
mod bundle;
mod metadata;
mod names;
mod object;
mod template;

use std::{collections::BTreeMap, fmt};

use cluster::object::ObjectKey;
use serde_json::Value;

use super::{
    DIFFERENT, OK, Said,
    bundles::{Bundles, Located},
    input::{InputLocation, Source},
    output::one_line,
};
use crate::{
    actors::resource_manager::bundle::identity::{self, Equivalences},
    api::config::{
        controller_manager,
        resource_manager::{self, ConfigError, Warning},
    },
    producer::decode::{DuplicateKey, LabelWarning},
};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    location: InputLocation,
    /// Position in a Secret (`data.yaml.br:2`); empty outside of Secrets.
    inside: String,
    object: String,
    issue: Issue,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Issue {
    severity: Severity,
    what: String,
    remedy: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// The controller or the API server refuses it, or it has no effect.
    Error,
    /// It works, but perhaps not as its author expects.
    Warning,
}

struct Manifest<'a> {
    location: &'a InputLocation,
    inside: String,
    object: &'a Value,
    warnings: &'a [LabelWarning],
    duplicate_keys: &'a [DuplicateKey],
}

pub(super) fn validate(sources: &[Source]) -> Said {
    let mut findings = Vec::new();
    let Bundles { managed_resources, secrets, manifests, broken } = Bundles::of(sources);
    for (location, unreadable) in broken {
        let issue = Issue::error(unreadable.to_string(), unreadable.remedy());
        findings.push(Finding { location, inside: String::new(), object: String::new(), issue });
    }
    let (configurations, manifests): (Vec<_>, Vec<_>) =
        manifests.into_iter().partition(|located| ConfigurationKind::of(&located.object).is_some());
    for located in &configurations {
        let issues =
            ConfigurationKind::of(&located.object).map(|kind| configuration(located, kind)).unwrap_or_default();
        findings.extend(issues.into_iter().map(|issue| located.finding(issue)));
    }
    for located in managed_resources.iter().chain(&secrets).chain(&configurations) {
        findings.extend(duplicates(&located.duplicate_keys).map(|issue| located.finding(issue)));
    }
    bundle::check(&managed_resources, &secrets, &mut findings);
    let all = manifests.iter().map(|located| Manifest {
        location: &located.location,
        inside: String::new(),
        object: &located.object,
        warnings: &located.warnings,
        duplicate_keys: &located.duplicate_keys,
    });
    check_set(all, &Equivalences::predefined(), &mut findings);

    findings.sort();
    findings.dedup();
    let errors = findings.iter().filter(|finding| finding.issue.severity == Severity::Error).count();
    let warnings = findings.len() - errors;
    let documents = managed_resources.len() + secrets.len() + manifests.len() + configurations.len();
    let summary = format!("documents: {documents}, errors: {errors}, warnings: {warnings}");
    Said {
        out: findings.iter().map(|finding| format!("{finding}\n")).collect(),
        remarks: vec![summary],
        code: if errors > 0 { DIFFERENT } else { OK },
    }
}

fn check_set<'a>(
    manifests: impl IntoIterator<Item = Manifest<'a>>,
    equivalences: &Equivalences,
    findings: &mut Vec<Finding>,
) {
    let mut seen: BTreeMap<ObjectKey, String> = BTreeMap::new();
    for manifest in manifests {
        let mut issues = object::check(manifest.object, manifest.warnings);
        issues.extend(duplicates(manifest.duplicate_keys));
        let key = identity::key_of_object(manifest.object);
        if !key.name.is_empty() && !key.kind.is_empty() {
            let at = manifest.at();
            if let Some(first) = seen.get(&key) {
                issues.push(Issue::error(format!("the same object is in {first}"), "remove one of them"));
            } else if let Some((other, first)) =
                equivalences.of_key(&key).find_map(|other| seen.get(&other).map(|first| (other, first)))
            {
                let what = format!("stands for the same object as {} in {first}", other.group_kind());
                issues.push(Issue::error(what, "remove one of them"));
            } else {
                seen.insert(key, at);
            }
        }
        findings.extend(issues.into_iter().map(|issue| manifest.finding(issue)));
    }
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

impl Issue {
    pub(super) fn error(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Error, what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, what: what.into(), remedy: remedy.into() }
    }
}

impl Located {
    fn finding(&self, issue: Issue) -> Finding {
        let object = identity::display_of_object(&self.object);
        Finding { location: self.location.clone(), inside: String::new(), object, issue }
    }
}

impl Manifest<'_> {
    fn at(&self) -> String {
        if self.inside.is_empty() { self.location.to_string() } else { format!("{}[{}]", self.location, self.inside) }
    }

    fn finding(&self, issue: Issue) -> Finding {
        let object = identity::display_of_object(self.object);
        Finding { location: self.location.clone(), inside: self.inside.clone(), object, issue }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { location, inside, object, issue: Issue { severity, what, remedy } } = self;
        write!(f, "{}", one_line(&location.to_string()))?;
        if !inside.is_empty() {
            write!(f, "[{}]", one_line(inside))?;
        }
        if !object.is_empty() {
            write!(f, " {}", one_line(object))?;
        }
        let mark = if *severity == Severity::Warning { "warning: " } else { "" };
        write!(f, ": {mark}{} — {remedy}", one_line(what))
    }
}
