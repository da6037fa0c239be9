//! `seed-extensions-check`: whether the extensions of a Seed are installed and work (spec 83 C).

use std::{collections::BTreeMap, iter};

use kit::quote::cut_within;
use serde_json::Value;

use super::{
    check::{self, CheckDefinition},
    judgement::{Judgement, LONGEST_TEXT},
};
use crate::{
    actors::controller_manager::{
        context::{GardenContext, Registration, StartControllers},
        fields::{list, text},
    },
    api::{config::controller_manager::Config, kinds, meta::conditions::ConditionStatus},
};

const NAME: &str = "seed-extensions-check"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// The conditions of a ControllerInstallation that count, each with its good status, and what a Seed says of bad ones:
/// reason and words. The first one with a problem decides.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("Valid", "True", "NotAllExtensionsValid", "not valid"),
    ("Installed", "True", "NotAllExtensionsInstalled", "not installed"),
    ("Healthy", "True", "NotAllExtensionsHealthy", "not healthy"),
    ("Progressing", "False", "SomeExtensionsProgressing", "progressing"),
];

const NOT_INSTALLED: &str = "extension was not yet installed";
const INCOMPLETE: &str = "not all required conditions found in ControllerInstallation";

/// What counts of a ControllerInstallation: its conditions in the order of the table; `None` if it has none of any type.
pub type InstallationFacts = Option<[Option<Report>; 4]>;

/// A condition of a ControllerInstallation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    is_good: bool,
    message: Box<str>,
}

/// How ControllerInstallations are checked. Those of self-hosted Shoots have no `seedRef`.
pub static CHECK: CheckDefinition<InstallationFacts> = CheckDefinition {
    controller: NAME,
    condition: "ExtensionsReady",
    kind: kinds::CONTROLLER_INSTALLATION,
    seed: |installation| text(installation, "/spec/seedRef/name"),
    facts,
    judge,
};

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    Some(check::setup(&CHECK, &config.controllers.seed_extensions_check, ctx))
}

fn facts(installation: &Value) -> InstallationFacts {
    let conditions = || list(installation, "/status/conditions");
    conditions().next()?;
    Some(CONDITIONS.map(|(kind, good, ..)| {
        let condition = conditions().find(|condition| text(condition, "/type") == kind)?;
        let message = cut_within(LONGEST_TEXT, text(condition, "/message")).into();
        Some(Report { is_good: text(condition, "/status") == good, message })
    }))
}

fn judge(installations: &BTreeMap<String, InstallationFacts>) -> Judgement {
    let mut problems: [BTreeMap<&str, &str>; 4] = Default::default();
    for (name, facts) in installations {
        let Some(reports) = facts else {
            let [_, not_installed, ..] = &mut problems;
            not_installed.insert(name, NOT_INSTALLED);
            continue;
        };
        for (problems, report) in problems.iter_mut().zip(reports) {
            if let Some(report) = report.as_ref().filter(|report| !report.is_good) {
                problems.insert(name, &report.message);
            }
        }
        if reports.iter().any(Option::is_none) {
            let [_, _, not_healthy, _] = &mut problems;
            not_healthy.entry(name).or_insert(INCOMPLETE);
        }
    }
    match problems.iter().zip(CONDITIONS).find(|(problems, _)| !problems.is_empty()) {
        Some((problems, (.., reason, words))) => {
            let between = iter::once("").chain(iter::repeat(" "));
            let entries = problems.iter().zip(between).map(|((name, text), between)| format!("{between}{name}:{text}"));
            let text = format!("Some extensions are {words}: map[");
            Judgement::bad(ConditionStatus::False, reason, &text, entries.chain(["]".to_owned()]))
        }
        None => Judgement::good(
            "AllExtensionsReady",
            "All extensions installed into the seed cluster are ready and healthy.",
        ),
    }
}
