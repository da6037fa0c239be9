//! `validate`: finds mistakes in manifests and in ManagedResources with their Secrets, without a cluster.

mod bundle;
mod metadata;
mod object;

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
    api::config::resource_manager::{self as config, ConfigError, KIND as CONFIG_KIND},
    producer::decode::LabelWarning,
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
}

pub(super) fn validate(sources: &[Source]) -> Said {
    let mut findings = Vec::new();
    let Bundles { managed_resources, secrets, manifests, broken } = Bundles::of(sources);
    for (location, text) in broken {
        let issue = Issue::error(text, "correct the document");
        findings.push(Finding { location, inside: String::new(), object: String::new(), issue });
    }
    let (configurations, manifests): (Vec<_>, Vec<_>) = manifests.into_iter().partition(is_configuration);
    for located in &configurations {
        findings.extend(configuration(located).into_iter().map(|issue| located.finding(issue)));
    }
    bundle::check(&managed_resources, &secrets, &mut findings);
    let all = manifests.iter().map(|located| Manifest {
        location: &located.location,
        inside: String::new(),
        object: &located.object,
        warnings: &located.warnings,
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

fn is_configuration(located: &Located) -> bool {
    let group = located.object["apiVersion"].as_str().and_then(|text| text.split_once('/')).map(|(group, _)| group);
    located.object["kind"] == CONFIG_KIND || group == config::API_VERSION.split_once('/').map(|(group, _)| group)
}

fn configuration(located: &Located) -> Vec<Issue> {
    const SEE: &str = "see docs/configuration.md";

    match config::load(located.object.to_string().as_bytes()) {
        Ok(loaded) => loaded.warnings.iter().map(|warning| Issue::warning(warning.to_string(), SEE)).collect(),
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
