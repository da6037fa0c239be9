//! `maintenance` of gardener-controller-manager: what the next maintenance of a Shoot would change, and why. Offline.
//!
//! `files ─► Shoot, CloudProfile, bindings ─ actors' shoot_maintenance/preview.rs ─► text, JSON`

use cluster::{EventType, object::NamespacedName};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    CommandError, DIFFERENT, OK, Said,
    columns::{Cell, lines, plain},
    input::{self, Source},
    report,
};
use crate::{
    actors::controller_manager::shoot_maintenance::{
        plan::MaintenanceSettings,
        preview::{MaintenancePreview, preview},
        update::{Remark, RemarkLevel},
    },
    api::config::controller_manager::{self, Config},
    cli::ReportFormat,
    producer::yaml,
};

/// What the command reads.
pub(super) struct Input<'a> {
    pub(super) shoot: &'a [Source],
    pub(super) profile: &'a [Source],
    pub(super) objects: &'a [Source],
    pub(super) config: &'a [Source],
    pub(super) at: Timestamp,
}

/// Shows what a maintenance would do. The exit code is 1 if a part of it would fail.
pub(super) fn maintenance(input: &Input<'_>, format: Option<&ReportFormat>) -> Result<Said, CommandError> {
    let shoot = only(input.shoot, &["Shoot"])?;
    let profile = only(input.profile, &["CloudProfile", "NamespacedCloudProfile"])?;
    let objects = read(input.objects)?;
    let config = configured(input.config)?;
    let shown = preview(&shoot, &profile, &objects, MaintenanceSettings::of(&config), input.at)
        .map_err(|error| CommandError::Usage(error.to_string()))?;

    let has_failed = !shown.plan.results.texts().failure_reason.is_empty();
    let out = match format {
        Some(format) => report::whole(&to_json(&shown, &shoot, input.at), format)?,
        None => to_text(&shown, &shoot, input.at),
    };
    let remarks = shown.plan.remarks.iter().filter_map(remark);
    let unseen = shown.unseen.iter().map(|unseen| format!("not seen: {unseen}"));
    let code = if has_failed { DIFFERENT } else { OK };
    Ok(Said { out, remarks: remarks.chain(unseen).collect(), code, ..Said::default() })
}

/// Returns the documents of files, those of lists one by one.
fn read(sources: &[Source]) -> Result<Vec<Value>, CommandError> {
    let mut objects = Vec::new();
    for document in input::documents(sources) {
        let content = document.content;
        let object = content.map_err(|error| CommandError::Usage(format!("{}: {error}", document.location)))?;
        match object["items"].as_array() {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(object),
        }
    }
    Ok(objects)
}

/// Returns the only object of a file. Fails if there is none of these kinds, or several.
fn only(sources: &[Source], kinds: &[&str]) -> Result<Value, CommandError> {
    let mut objects = read(sources)?;
    objects.retain(|object| kinds.iter().any(|kind| object["kind"] == *kind));
    let (kind, name) = (kinds.join(" or "), sources.first().map_or("", |source| &source.name));
    match (objects.pop(), objects.len()) {
        (Some(object), 0) => Ok(object),
        (Some(_), others) => {
            Err(CommandError::Usage(format!("{name} has {} objects of kind {kind} — give one", others + 1)))
        }
        (None, _) => Err(CommandError::Usage(format!("{name} has no {kind}"))),
    }
}

fn configured(sources: &[Source]) -> Result<Config, CommandError> {
    let Some(source) = sources.first() else { return Ok(Config::default()) };
    let loaded = controller_manager::load(&source.bytes, None);
    loaded.map(|loaded| loaded.config).map_err(|error| CommandError::Usage(format!("{}: {error}", source.name)))
}

fn remark(remark: &Remark) -> Option<String> {
    let Remark { level, message, about, detail } = remark;
    let level = match level {
        RemarkLevel::Debug | RemarkLevel::Info => return None,
        RemarkLevel::Warning => "warning",
        RemarkLevel::Error => "error",
    };
    Some(format!("{level}: {message}: {about}: {detail}"))
}

fn to_text(shown: &MaintenancePreview, shoot: &Value, at: Timestamp) -> String {
    let due = if shown.is_due { "yes" } else { "no" };
    let texts = shown.plan.results.texts();
    let is_changed = shown.plan.results.is_changed();
    let mut head = vec![
        ("Shoot:", NamespacedName::of(shoot).to_string()),
        ("Time:", at.to_string()),
        ("Window:", shown.window.to_string()),
        ("Due:", due.to_owned()),
        ("Report:", if is_changed { texts.description } else { "none".to_owned() }),
    ];
    if !texts.failure_reason.is_empty() {
        head.push(("Failure:", texts.failure_reason));
    }
    let head: Vec<Vec<Cell>> = head.into_iter().map(|(label, text)| vec![plain(label), plain(text)]).collect();
    let mut text = lines(&head, "", false);
    for (title, object) in [("Changes of the Shoot", &shown.patch), ("Created before", &shown.created)] {
        if let Some(object) = object {
            text.push_str(&format!("\n# {title}\n{}", yaml::document(object)));
        }
    }
    text
}

fn to_json(shown: &MaintenancePreview, shoot: &Value, at: Timestamp) -> Value {
    let texts = shown.plan.results.texts();
    let events = shown.plan.results.events().into_iter().map(|event| {
        let event_type = if event.event_type == EventType::Normal { "Normal" } else { "Warning" };
        json!({ "type": event_type, "reason": event.reason, "note": event.note })
    });
    let NamespacedName { namespace, name } = NamespacedName::of(shoot);
    json!({
        "namespace": namespace, "name": name, "time": at.to_string(), "window": shown.window.to_string(),
        "isDue": shown.is_due, "isReported": shown.plan.results.is_changed(), "description": texts.description,
        "failureReason": Some(texts.failure_reason).filter(|reason| !reason.is_empty()),
        "events": events.collect::<Vec<_>>(), "patch": shown.patch, "created": shown.created, "notSeen": shown.unseen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOOT: &str = "kind: Shoot\nmetadata: {namespace: garden-p1, name: s1}\nspec:\n  kubernetes: {version: 1.30.1}\n  \
                         cloudProfileName: cp\n";
    const PROFILE: &str = "kind: CloudProfile\nmetadata: {name: cp}\nspec:\n  kubernetes:\n    versions:\n    - version: \
                           1.30.1\n    - version: 1.30.5\n";

    fn source(text: &str) -> Vec<Source> {
        vec![Source { name: "file".into(), bytes: text.as_bytes().to_vec() }]
    }

    fn shown(shoot: &str, profile: &str, format: Option<&ReportFormat>) -> Result<Said, CommandError> {
        let (shoot, profile, at) = (source(shoot), source(profile), Timestamp::UNIX_EPOCH);
        maintenance(&Input { shoot: &shoot, profile: &profile, objects: &[], config: &[], at }, format)
    }

    #[test]
    fn maintenance_is_shown_with_its_reasons() {
        let said = shown(SHOOT, PROFILE, None).unwrap();
        assert_eq!(said.code, OK);
        for line in [
            "garden-p1/s1",
            "00:00:00 – 23:59:59 UTC",
            "Reason: Automatic update of Kubernetes version configured",
            "version: \"1.30.5\"",
        ] {
            assert!(said.out.contains(line), "{line}: {}", said.out);
        }
        assert_eq!(said.remarks, ["not seen: whether the API server accepts the new Shoot"]);

        let said = shown(SHOOT, PROFILE, Some(&ReportFormat::Json)).unwrap();
        let json: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!((&json["patch"]["spec"]["kubernetes"]["version"], &json["isDue"]), (&json!("1.30.5"), &json!(true)));
    }

    #[test]
    fn maintenance_that_fails_has_exit_code_1() {
        let said = shown(SHOOT, &PROFILE.replace("1.30", "1.29"), None).unwrap();
        assert_eq!(said.code, DIFFERENT);
        assert!(said.out.contains("Failure:") && said.out.contains("cannot perform forceful update"), "{}", said.out);
    }

    /// spec 84 C-6
    #[test]
    fn maintenance_needs_the_profile_to_which_the_shoot_refers() {
        let error = shown(&SHOOT.replace("  cloudProfileName: cp\n", ""), PROFILE, None).unwrap_err();
        assert_eq!(error.to_string(), "could not determine cloudprofile from shoot");
        let said = shown(&SHOOT.replace("cloudProfileName: cp", "cloudProfileName: other"), PROFILE, None).unwrap();
        let remark = "not seen: CloudProfile other of the Shoot: CloudProfile cp was given in its place";
        assert!(said.remarks.iter().any(|it| it == remark), "{:?}", said.remarks);
    }

    #[test]
    fn maintenance_needs_one_shoot_and_one_profile() {
        let two = format!("{SHOOT}---\n{SHOOT}");
        for (shoot, profile, error) in [
            (PROFILE, PROFILE, "file has no Shoot"),
            (&*two, PROFILE, "file has 2 objects of kind Shoot — give one"),
            (SHOOT, SHOOT, "file has no CloudProfile or NamespacedCloudProfile"),
        ] {
            assert_eq!(shown(shoot, profile, None).unwrap_err().to_string(), error);
        }
    }
}
