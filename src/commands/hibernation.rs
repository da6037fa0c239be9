//! `hibernation` of gardener-controller-manager: when the schedules of a Shoot hibernate it and wake it up, by the rules of
//! the controller. Reads a file, not a cluster.

use cluster::object::{GroupVersionKind, NamespacedName};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use super::{
    CommandError, DIFFERENT, OK, Said,
    colours::{GREEN, YELLOW},
    columns::{Cell, lines, plain, styled},
    input::{self, InputDocument, Source},
    report,
    screen::Content,
};
use crate::{
    actors::controller_manager::shoot_hibernation::{
        decision::{Shoot, Verdict},
        schedules::{Entry, Operation, Schedules, upcoming},
    },
    api::kinds,
    cli::ReportFormat,
};

/// So many times are shown.
const SHOWN: usize = 10;

/// Shows the next times of the only Shoot of a file. The exit code is 1 if its schedules are invalid.
pub(super) fn hibernation(
    sources: &[Source],
    from: Timestamp,
    format: Option<&ReportFormat>,
    colours: bool,
) -> Result<Said, CommandError> {
    let shoot = the_shoot(sources)?;
    let name = NamespacedName::of(&shoot);
    let Some(schedules) = Schedules::of(&shoot) else {
        let remark = format!("Shoot {name} has no hibernation schedules");
        return said(&name, from, &[], vec![remark], format, colours);
    };
    let entries = match schedules.entries {
        Ok(entries) => entries,
        Err(error) => {
            let ignored = format!("error: {error}; until then all schedules of Shoot {name} are ignored");
            return Ok(Said { remarks: vec![ignored], code: DIFFERENT, ..Said::default() });
        }
    };
    let mut remarks = Vec::new();
    for dead in entries.iter().filter(|entry| entry.next(from).is_none()).take(SHOWN) {
        remarks.push(format!("warning: {dead} has no time within five years — correct its day or month"));
    }
    let state = Shoot::of(&shoot, "");
    match state.judge(SignedDuration::ZERO, from) {
        Verdict::Deleting => remarks.push(format!("warning: Shoot {name} is being deleted: its schedules are ignored")),
        Verdict::Plan(plan) if plan.is_failed => {
            remarks.push(format!("warning: Shoot {name} is failed: its schedules are ignored until its failure ends"));
        }
        Verdict::Plan(_) | Verdict::NoSchedules | Verdict::Invalid(..) => {}
    }
    let times: Vec<_> = upcoming(&entries, state.start().unwrap_or(from), from).take(SHOWN).collect();
    said(&name, from, &times, remarks, format, colours)
}

fn said(
    name: &NamespacedName,
    from: Timestamp,
    times: &[(Timestamp, &Entry)],
    remarks: Vec<String>,
    format: Option<&ReportFormat>,
    colours: bool,
) -> Result<Said, CommandError> {
    let (out, content) = match format {
        Some(format) => (report::whole(&as_json(name, from, times), format)?, Content::Data),
        None => (as_text(times, colours), Content::Painted),
    };
    Ok(Said { out, content, remarks, code: OK })
}

/// Returns the only Shoot of the files.
fn the_shoot(sources: &[Source]) -> Result<Value, CommandError> {
    let mut shoots = Vec::new();
    for InputDocument { location, content, .. } in input::documents(sources) {
        match content {
            Ok(object) if is_shoot(&object) => shoots.push(object),
            Ok(_) => {}
            Err(error) => {
                return Err(CommandError::Usage(format!("{location}: {error} — {}", error.remedy())));
            }
        }
    }
    match (shoots.pop(), shoots.len()) {
        (Some(shoot), 0) => Ok(shoot),
        (Some(_), more) => Err(CommandError::Usage(format!("there are {} Shoots — give one", more + 1))),
        (None, _) => Err(CommandError::Usage(format!(
            "there is no Shoot — give its manifest, with apiVersion {} and kind {}",
            kinds::SHOOT.api_version(),
            kinds::SHOOT.kind
        ))),
    }
}

/// Returns true for a Shoot of any version.
fn is_shoot(object: &Value) -> bool {
    GroupVersionKind::of(object).is_some_and(|gvk| gvk.group == *kinds::SHOOT.group && gvk.kind == *kinds::SHOOT.kind)
}

fn as_text(times: &[(Timestamp, &Entry)], colours: bool) -> String {
    if times.is_empty() {
        return String::new();
    }
    let titles = ["DOES", "UTC", "LOCAL", "LOCATION", "FIELD"].map(plain).to_vec();
    let rows: Vec<Vec<Cell>> = std::iter::once(titles).chain(times.iter().map(row)).collect();
    lines(&rows, "", colours)
}

fn row((time, entry): &(Timestamp, &Entry)) -> Vec<Cell> {
    let does = match entry.operation {
        Operation::Hibernate => styled("hibernate", YELLOW),
        Operation::WakeUp => styled("wake up", GREEN),
    };
    let local = time.to_zoned(entry.zone().clone());
    let local = local.strftime("%a %Y-%m-%d %H:%M:%S").to_string();
    vec![does, plain(time.to_string()), plain(local), plain(location(entry.zone())), plain(entry.to_string())]
}

fn as_json(name: &NamespacedName, from: Timestamp, times: &[(Timestamp, &Entry)]) -> Value {
    let times = times.iter().map(|(time, entry)| {
        let operation = match entry.operation {
            Operation::Hibernate => "hibernate",
            Operation::WakeUp => "wakeUp",
        };
        let local = time.display_with_offset(entry.zone().to_offset(*time)).to_string();
        json!({
            "time": time.to_string(), "local": local, "location": location(entry.zone()), "operation": operation,
            "field": entry.to_string(),
        })
    });
    let NamespacedName { namespace, name } = name;
    json!({
        "shoot": { "namespace": namespace, "name": name }, "from": from.to_string(), "times": times.collect::<Vec<_>>(),
    })
}

fn location(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("UTC")
}
