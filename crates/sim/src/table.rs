//! Objects as table rows. The real server has columns for each kind; the simulator shows name and age.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::encode;

pub(super) fn row(out: &mut Vec<u8>, object: &Value, now: Timestamp) {
    let metadata = &object["metadata"];
    let created = metadata["creationTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let age = created.map_or_else(|| "<unknown>".to_owned(), |created| age(now.as_second() - created.as_second()));
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    out.extend(encode::to_vec(&json!({"cells": [metadata["name"], age], "object": partial})));
}

pub(super) fn table(metadata: &Value, rows: &[u8]) -> Vec<u8> {
    let columns = json!([
        {"name": "Name", "type": "string", "format": "name", "description": "Name of the object.", "priority": 0},
        {"name": "Age", "type": "string", "format": "", "description": "Time since its creation.", "priority": 0},
    ]);
    let mut body = b"{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":".to_vec();
    body.extend(encode::to_vec(metadata));
    body.extend_from_slice(b",\"columnDefinitions\":");
    body.extend(encode::to_vec(&columns));
    body.extend_from_slice(b",\"rows\":[");
    body.extend_from_slice(rows);
    body.extend_from_slice(b"]}\n");
    body
}

fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..0 => "<invalid>".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 != 0 => format!("{minutes}m{}s", seconds % 60),
        120..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes % 60 != 0 => format!("{hours}h{}m", minutes % 60),
        10_800..172_800 => format!("{hours}h"),
        172_800..691_200 if hours % 24 != 0 => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_get_coarser_with_time() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600 + 120, "3h2m"),
            (26 * 3600, "26h"),
            (50 * 3600, "2d2h"),
            (9 * 86_400, "9d"),
        ];
        for (seconds, text) in table {
            assert_eq!(age(seconds), text);
        }
    }
}
