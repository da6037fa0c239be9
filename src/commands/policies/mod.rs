//! `policies`: shows the NetworkPolicies that a Service should have and why, by the controller's own function.

mod gather;

use std::{collections::BTreeSet, fmt::Write as _};

use cluster::object::{self, NamespacedName};
use serde_json::{Value, json};

pub(super) use self::gather::gather;
use super::{
    CommandError, DIFFERENT, Said,
    columns::WIDEST,
    input::{self, Source},
    output::one_line,
};
use crate::{
    actors::resource_manager::network_policy::{
        name,
        plan::{Plan, plan},
        policy::{Policy, Wording},
        rules::Rules,
        snapshot::Snapshot,
    },
    api::config::resource_manager::{self as config, Draft, NetworkPolicyController},
    cli::PoliciesFormat,
    producer::yaml,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    /// `None` for the table.
    pub(super) format: Option<PoliciesFormat>,
    pub(super) compared: bool,
}

pub(super) fn rules(config: Option<&Source>) -> Result<Rules, CommandError> {
    let settings = settings(config).map_err(|error| {
        let name = config.map_or("the defaults", |source| &*source.name);
        CommandError::Usage(format!("{name}: {error}"))
    })?;
    Rules::new(&settings).map_err(|error| CommandError::Usage(format!("failed parsing namespace selector: {error}")))
}

fn settings(config: Option<&Source>) -> Result<NetworkPolicyController, String> {
    let loaded = match config {
        Some(source) => config::load(&source.bytes),
        None => {
            let mut draft = Draft::default();
            draft.config.controllers.network_policy.enabled = true;
            draft.finish(&[])
        }
    };
    let settings = loaded.map_err(|error| error.to_string())?.config.controllers.network_policy;
    settings
        .on()
        .cloned()
        .ok_or_else(|| "controllers.networkPolicy.enabled is not true — no policies are written".to_owned())
}

/// Reads the objects of files, and returns them with warnings. Objects without a namespace get `namespace`.
pub(super) fn from_files(
    sources: &[Source],
    rules: &Rules,
    namespace: Option<&str>,
) -> Result<(Snapshot, Vec<String>), CommandError> {
    let (mut snapshot, mut remarks) = (Snapshot::default(), Vec::new());
    for document in input::documents(sources) {
        let object =
            document.content.map_err(|error| CommandError::Usage(format!("{}: {error}", document.location)))?;
        let objects = match object["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![object],
        };
        for mut object in objects {
            if object["metadata"].is_object() && object::namespace(&object).is_empty() {
                *object::field_mut(&mut object, &["metadata", "namespace"]) = namespace.unwrap_or("default").into();
            }
            snapshot.add(&object);
        }
    }
    let assumed = snapshot.assume_namespaces(rules);
    if !assumed.is_empty() {
        let names = assumed.join(", ");
        remarks.push(format!(
            "warning: not among the files: namespace {names} — assumed to exist without labels of its own"
        ));
    }
    Ok((snapshot, remarks))
}

pub(super) fn meant(snapshot: &Snapshot, service: Option<&str>, namespace: Option<&str>) -> Vec<NamespacedName> {
    let (namespace, name) = match service.map(|service| (service, service.split_once('/'))) {
        Some((_, Some((namespace, name)))) => (Some(namespace), Some(name)),
        Some((name, None)) => (namespace, Some(name)),
        None => (namespace, None),
    };
    let is_meant = |service: &&NamespacedName| {
        namespace.is_none_or(|namespace| service.namespace == namespace) && name.is_none_or(|name| service.name == name)
    };
    snapshot.services().filter(is_meant).cloned().collect()
}

pub(super) fn show(snapshot: &Snapshot, services: &[NamespacedName], rules: &Rules, shown: Shown) -> Said {
    let mut said = Said::default();
    let mut rows = Vec::new();
    for service in services {
        let plan = match plan(service, rules, snapshot) {
            Ok(plan) => plan,
            Err(error) => {
                said.remarks.push(format!("error: {service}: {error}"));
                said.code = DIFFERENT;
                continue;
            }
        };
        let wanted: Vec<Policy> =
            plan.desired.policies.iter().map(|policy| evading(snapshot, service, policy)).collect();
        let before = rows.len();
        rows.extend(wanted.iter().map(|policy| row(snapshot, service, policy, shown)));
        if shown.compared {
            rows.extend(left(snapshot, service, &plan, &wanted));
        }
        let is_right = rows.iter().skip(before).all(|row| matches!(row.state, "" | "right" | "kept"));
        if !is_right || !plan.failing.texts.is_empty() {
            said.code = DIFFERENT;
        }
        if shown.format == Some(PoliciesFormat::Yaml) && !is_right {
            said.remarks.push(format!("{service}: some policies are not right; without -o yaml, STATE shows which"));
        }
        remark(service, &plan, &mut said.remarks);
    }
    said.out = match shown.format {
        None => table(&rows, shown.compared),
        Some(PoliciesFormat::Yaml) => yaml::stream(rows.iter().filter_map(|row| row.policy.as_ref())),
        Some(PoliciesFormat::Json) => {
            let rows = Value::Array(rows.iter().map(|row| row.json(shown.compared)).collect());
            format!("{rows:#}\n")
        }
    };
    said
}

/// The policy under the name it has while another Service uses its own name (spec 40 §7.11), if that exists.
fn evading(snapshot: &Snapshot, service: &NamespacedName, policy: &Policy) -> Policy {
    let mut evading = policy.clone();
    evading.name.name = name::evading(&policy.name.name, service);
    let is_taken = snapshot.found(&policy.name).is_some_and(|found| found.owner != *service);
    if is_taken && snapshot.has_policy(&evading.name) { evading } else { policy.clone() }
}

fn remark(service: &NamespacedName, plan: &Plan, remarks: &mut Vec<String>) {
    if let Some(reason) = plan.none_because {
        remarks.push(format!("{service}: no policies: {reason}"));
    }
    for text in &plan.failing.texts {
        remarks.push(format!("warning: {service}: {text}; the policies of this source stay unchanged"));
    }
    for key in &plan.desired.shortened {
        let (long, short) = (key.usual(), key.effective());
        remarks.push(format!("note: {service}: the label {long} is too long; clients need {short} instead"));
    }
}

struct Row {
    service: NamespacedName,
    state: &'static str,
    way: &'static str,
    name: NamespacedName,
    why: String,
    /// As the controller would create it; `None` for a policy that nothing asks for.
    policy: Option<Value>,
}

impl Row {
    fn json(&self, compared: bool) -> Value {
        let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        json!({
            "service": self.service.to_string(), "state": text(self.state).filter(|_| compared), "way": text(self.way),
            "namespace": self.name.namespace, "name": self.name.name, "why": self.why, "policy": self.policy,
        })
    }
}

fn row(snapshot: &Snapshot, service: &NamespacedName, policy: &Policy, shown: Shown) -> Row {
    let found = snapshot.found(&policy.name);
    let owner = found.map(|found| &found.owner).filter(|owner| *owner != service);
    let state = match found {
        _ if !shown.compared => "",
        _ if owner.is_some() => "taken",
        _ if !snapshot.has_policy(&policy.name) => "missing",
        Some(found) if policy.is(found) => "right",
        _ => "differs",
    };
    let mut why = policy.text(Wording::Present);
    if let Some(owner) = owner {
        write!(why, " (Service {owner} uses this name. While it does, the name of this policy ends with a hash.)").ok();
    }
    let (way, policy_name) = (policy.direction.as_str(), policy.name.clone());
    Row { service: service.clone(), state, way, name: policy_name, why, policy: Some(policy.created()) }
}

fn left(snapshot: &Snapshot, service: &NamespacedName, plan: &Plan, wanted: &[Policy]) -> Vec<Row> {
    let wanted: BTreeSet<_> = wanted.iter().map(|policy| &policy.name).collect();
    let there = snapshot.policies_of(service);
    let is_kept = |name: &NamespacedName| {
        let is_open = |namespace: &str| snapshot.is_open(namespace);
        snapshot.found(name).is_some_and(|found| plan.failing.keeps(name, found, &is_open))
    };
    let row = |name: &NamespacedName| {
        let (state, why) = match is_kept(name) {
            true => ("kept", "It may come from an annotation or a Gateway that cannot be read at present."),
            false => ("obsolete", "Nothing asks for it any more: the controller deletes it."),
        };
        Row { service: service.clone(), state, way: "", name: name.clone(), why: why.to_owned(), policy: None }
    };
    there.iter().filter(|name| !wanted.contains(name)).map(row).collect()
}

fn table(rows: &[Row], compared: bool) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|row| row.name.namespace.len()).max().unwrap_or_default();
    let width = width.clamp("NAMESPACE".len(), WIDEST);
    let state = |state: &str| if compared { format!("{state:<8}  ") } else { String::new() };
    let mut text = format!("{}WAY  {:<width$}  NAME\n", state("STATE"), "NAMESPACE");
    for row in rows {
        let [namespace, name, why] = [&row.name.namespace, &row.name.name, &row.why].map(|text| one_line(text));
        writeln!(text, "{}{:<3}  {namespace:<width$}  {name}", state(row.state), row.way).ok();
        writeln!(text, "{}     {why}", state("")).ok();
    }
    text
}

pub(super) fn missing(snapshot: &Snapshot, service: Option<&str>, namespace: Option<&str>) -> Said {
    let there: Vec<String> = snapshot.services().take(10).map(ToString::to_string).collect();
    let there = if there.is_empty() { "there is none".to_owned() } else { format!("there are {}", there.join(", ")) };
    let name = service.map(|service| format!(" {service}")).unwrap_or_default();
    let location = namespace.map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    let text = format!("error: the files have no Service{name}{location}: {there}");
    Said { remarks: vec![text], code: DIFFERENT, ..Said::default() }
}
