//! `garbage`: shows what the garbage collector would delete now. Writes nothing.

use cluster::{Cluster, Context};
use jiff::Timestamp;
use kit::{Deadline, Priority};
use serde_json::{Value, json};

use super::{CommandError, Said, report};
use crate::{
    actors::resource_manager::garbage_collector::{candidates::Candidates, survey::Survey},
    api::meta::age,
    cli::ReportFormat,
};

const TIME: std::time::Duration = std::time::Duration::from_secs(600);

pub(super) async fn garbage(
    cluster: &Cluster,
    now: Timestamp,
    format: Option<&ReportFormat>,
) -> Result<Said, CommandError> {
    let context = Context::new(Priority::High, Deadline::after(TIME), "garbage");
    let survey = Survey::new(cluster, &context);
    let mut candidates = survey.candidates(now).await?;
    let all = candidates.known.len();
    survey.take_out_referenced(&mut candidates, None).await?;
    let out = match format {
        None => table(&candidates, now),
        Some(format) => report::whole(&json(&candidates, all), format)?,
    };
    Ok(Said { out, remarks: vec![summary(&candidates, all)], ..Said::default() })
}

fn json(garbage: &Candidates, all: usize) -> Value {
    let Candidates { known, young, terminating } = garbage;
    let objects = known.iter().map(|(found, seen)| {
        json!({
            "namespace": found.namespace, "kind": found.kind.name(), "name": found.name,
            "created": seen.created.to_string(),
        })
    });
    json!({
        "objects": objects.collect::<Vec<_>>(), "referredTo": all - known.len(), "young": young,
        "terminating": terminating,
    })
}

fn table(garbage: &Candidates, now: Timestamp) -> String {
    if garbage.known.is_empty() {
        return String::new();
    }
    let row = |[namespace, kind, age, name]: [&str; 4]| format!("{namespace:<32}  {kind:<9}  {age:<6}  {name}\n");
    let rows = garbage.known.iter().map(|(found, seen)| {
        let age = age::age(Some(seen.created), now);
        row([&found.namespace, found.kind.name(), &age, &found.name])
    });
    std::iter::once(row(["NAMESPACE", "KIND", "AGE", "NAME"])).chain(rows).collect()
}

fn summary(garbage: &Candidates, all: usize) -> String {
    let Candidates { known, young, terminating } = garbage;
    format!(
        "would be deleted: {}, referred to: {}, less than 10 minutes old: {young}, being deleted already: {terminating}",
        known.len(),
        all - known.len()
    )
}
