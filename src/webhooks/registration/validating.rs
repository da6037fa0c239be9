//! The registration of the validating webhooks (spec 60 §4). It exists only for clusters that run control planes.

use serde_json::Value;

use super::{
    Deployment,
    entries::{Row, Rule, WRITES},
};
use crate::{
    api::meta::selector::Selector,
    webhooks::validating::{deletion, extensions},
};

const VERSION: &[&str] = &["v1alpha1"];
const DELETE: &[&str] = &["DELETE"];
const DEFINITIONS: [Rule<'static>; 1] = [Rule {
    groups: &["apiextensions.k8s.io"],
    versions: &["v1beta1", "v1"],
    resources: &["customresourcedefinitions"],
    operations: DELETE,
}];

pub(super) fn webhooks(deployment: &Deployment, is_served: impl Fn(&str) -> bool) -> Vec<Value> {
    let webhook = |name: &str, path, rules: &[Rule<'_>], objects| {
        let name = format!("{name}.resources.gardener.cloud");
        deployment.webhook(&Row { rules, ..Row::pods(&name, path) }, &Selector::default(), &objects)
    };
    let mut webhooks = Vec::new();
    if is_served(deletion::PATH) {
        let protected = Selector::default().label("gardener.cloud/deletion-protected", "true");
        webhooks.push(webhook("crd-deletion-protection", deletion::PATH, &DEFINITIONS, protected));
        // Bastions are sent too, and always allowed (spec 60 §2.2).
        let plurals = extensions::all().map(|extension| extension.kind.plural).into_iter();
        let plurals: Vec<_> = plurals.filter(|plural| *plural != "etcds").collect();
        let rules = [
            Rule { groups: &["druid.gardener.cloud"], versions: VERSION, resources: &["etcds"], operations: DELETE },
            Rule { groups: &["extensions.gardener.cloud"], versions: VERSION, resources: &plurals, operations: DELETE },
        ];
        webhooks.push(webhook("cr-deletion-protection", deletion::PATH, &rules, Selector::default()));
    }
    let mut kinds = extensions::all().to_vec();
    kinds.dedup_by_key(|extension| extension.kind.kind); // keeps the first path of each kind
    webhooks.extend(kinds.iter().filter(|extension| is_served(extension.path)).map(|extension| {
        let kind = extension.kind;
        let rule = Rule { groups: &[kind.group], versions: VERSION, resources: &[kind.plural], operations: WRITES };
        webhook(&format!("validation.extensions.{}", kind.plural), extension.path, &[rule], Selector::default())
    }));
    webhooks
}
