use jiff::Timestamp;
use serde_json::Value;

use super::{super::hibernation::hibernation, *};
use crate::commands::{DIFFERENT, OK};

fn shoot(schedules: &str) -> String {
    format!(
        "apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {{name: web, namespace: garden-dev}}\n\
         spec: {{hibernation: {{schedules: {schedules}}}}}\n"
    )
}

fn said_of(text: &str, format: Option<&str>) -> Result<Said, String> {
    let from: Timestamp = "2026-03-28T12:00:00Z".parse().unwrap();
    let format = format.map(|format| format.parse().unwrap());
    hibernation(&[source("shoot.yaml", text)], from, format.as_ref(), false).map_err(|error| error.to_string())
}

fn said(text: &str) -> Said {
    said_of(text, None).unwrap()
}

/// spec 84 §B.2.3: the 29th of March has no 02:30 in Berlin.
#[test]
fn hibernation_shows_the_next_times_in_their_location_and_in_utc() {
    let said = said(&shoot(r#"[{start: "30 2 * * *", location: Europe/Berlin}, {end: "0 6 * * 1-5"}]"#));

    assert_eq!((said.code, &said.remarks), (OK, &vec![]));
    let rows: Vec<String> =
        said.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "DOES UTC LOCAL LOCATION FIELD",
        "hibernate 2026-03-30T00:30:00Z Mon 2026-03-30 02:30:00 Europe/Berlin spec.hibernation.schedules[0].start",
        "wake up 2026-03-30T06:00:00Z Mon 2026-03-30 06:00:00 UTC spec.hibernation.schedules[1].end",
        "hibernate 2026-03-31T00:30:00Z Tue 2026-03-31 02:30:00 Europe/Berlin spec.hibernation.schedules[0].start",
    ];
    assert_eq!((rows.len(), &rows[..4]), (11, &expected.map(str::to_owned)[..]));
}

#[test]
fn hibernation_as_json_has_the_same_times() {
    let text = shoot(r#"[{start: "0 20 * * *", location: Europe/Berlin}]"#);

    let json: Value = serde_json::from_str(&said_of(&text, Some("json")).unwrap().out).unwrap();

    assert_eq!(json["shoot"], serde_json::json!({ "namespace": "garden-dev", "name": "web" }));
    assert_eq!(
        (json["from"].as_str(), json["times"].as_array().map(Vec::len)),
        (Some("2026-03-28T12:00:00Z"), Some(10))
    );
    let expected = serde_json::json!({
        "time": "2026-03-29T18:00:00Z", "local": "2026-03-29T20:00:00+02:00", "location": "Europe/Berlin",
        "operation": "hibernate", "field": "spec.hibernation.schedules[0].start",
    });
    assert_eq!(json["times"][1], expected);
}

/// spec 84 B-8, B-12: each execution is the start of the next interval.
#[test]
fn hibernation_counts_every_from_what_the_controller_counts_from() {
    let schedules = r#"[{start: "@every 36h"}, {end: "0 6 29 3 *"}]"#;
    let status = "status: {lastHibernationTriggerTime: \"2026-03-27T08:00:00Z\"}\n";
    let times = |text: &str| -> Vec<String> {
        let rows = said(text).out;
        rows.lines()
            .skip(1)
            .take(3)
            .filter_map(|row| row.split_whitespace().find(|it| it.ends_with('Z')))
            .map(str::to_owned)
            .collect()
    };

    let expected = ["2026-03-28T20:00:00Z", "2026-03-29T06:00:00Z", "2026-03-30T18:00:00Z"];
    assert_eq!(times(&(shoot(schedules) + status)), expected);
    assert_eq!(times(&shoot(schedules))[0], "2026-03-29T06:00:00Z", "it is no Shoot of a cluster yet");
}

/// spec 84 §B.3 step 3
#[test]
fn hibernation_names_field_and_remedy_of_a_mistake() {
    let said = said(&shoot(r#"[{start: "0 8 * * 1"}, {end: "0 8 * * 7"}]"#));

    let expected = "error: spec.hibernation.schedules[1].end: \"0 8 * * 7\": day of week: \"7\": it is out of range — write 0 to 6; \
        Sunday is 0; until then all schedules of Shoot garden-dev/web are ignored";
    assert_eq!((said.code, &*said.out, said.remarks), (DIFFERENT, "", vec![expected.to_owned()]));
}

#[test]
fn hibernation_remarks_what_has_no_effect() {
    let dead = said(&shoot(r#"[{start: "0 0 31 2 *", end: "@daily"}]"#));
    let failed = said(&(shoot("[{end: \"@daily\"}]") + "status: {lastOperation: {state: Failed}}\n"));

    let warning =
        "warning: spec.hibernation.schedules[0].start has no time within five years — correct its day or month";
    assert_eq!((dead.code, dead.out.lines().count(), dead.remarks), (OK, 11, vec![warning.to_owned()]));
    assert!(failed.remarks[0].contains("Shoot garden-dev/web is failed"), "{failed:?}");
    let none = said(&shoot("[]"));
    assert_eq!((&*none.out, none.remarks), ("", vec!["Shoot garden-dev/web has no hibernation schedules".to_owned()]));
}

#[test]
fn hibernation_needs_one_shoot() {
    let one = shoot("[]");
    let table = [
        (
            config_map("c"),
            "there is no Shoot — give its manifest, with apiVersion core.gardener.cloud/v1beta1 and kind Shoot",
        ),
        (format!("{one}---\n{one}"), "there are 2 Shoots — give one"),
        ("a: [".to_owned(), "correct the document"),
    ];

    for (text, expected) in table {
        let error = said_of(&text, None).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(said_of(&format!("{}---\n{one}", config_map("c")), None).is_ok());
}
