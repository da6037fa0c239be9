//! Finds parts of templates that were not rendered. Helm's are told from others by the names that only they have: rules
//! of Prometheus, for example, have templates of their own.

use serde_json::Value;

use super::{Issue, Issues};
use crate::commands::input::RENDER;

const DEPTH: usize = 100;
/// What stands in templates of Helm only. A field of another object, such as `.Labels.Values`, is not meant.
const OBJECTS: [&str; 6] = [".Values.", ".Release.", ".Chart.", ".Capabilities.", ".Template.", ".Files."];
const FUNCTIONS: [&str; 3] = ["include \"", "template \"", "tpl "];

/// Whether a text contains an action of a template.
pub(super) fn has_braces(text: &str) -> bool {
    text.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"))
}

pub(super) fn check(manifest: &Value, issues: &mut Issues) {
    let before = issues.count();
    for field in ["apiVersion", "kind", "metadata.name", "metadata.namespace"] {
        let pointer = format!("/{}", field.replace('.', "/"));
        if manifest.pointer(&pointer).and_then(Value::as_str).is_some_and(has_braces) {
            issues.push(Issue::error(format!("{field} has {{{{ … }}}}: it is a template"), RENDER));
        }
    }
    if issues.count() > before {
        return; // the rest of the manifest is a template, too
    }
    let (mut first, mut count) = (None, 0);
    walk(manifest, &mut String::new(), DEPTH, &mut |path| {
        first.get_or_insert_with(|| path.to_owned());
        count += 1;
    });
    if let Some(path) = first {
        let others = if count > 1 { format!(", and {} other values", count - 1) } else { String::new() };
        let what = format!("{path} has {{{{ … }}}} of a template of Helm{others}");
        issues.push(Issue::warning(what, RENDER));
    }
}

/// Calls `found` with the path of each string, or key of a map, that has an action of Helm.
fn walk(value: &Value, path: &mut String, depth: usize, found: &mut dyn FnMut(&str)) {
    if depth == 0 {
        return;
    }
    let length = path.len();
    match value {
        Value::String(text) if is_of_helm(text) => found(path),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, path, depth - 1, found);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                if is_of_helm(field) {
                    found(if path.is_empty() { "a key" } else { path.as_str() });
                    continue;
                }
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(field);
                walk(value, path, depth - 1, found);
                path.truncate(length);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_of_helm(text: &str) -> bool {
    let actions = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(action, _)| action);
    actions.into_iter().any(|action| {
        OBJECTS.iter().chain(&FUNCTIONS).any(|name| {
            action.match_indices(name).any(|(at, _)| {
                let before = action[..at].chars().next_back();
                before.is_none_or(|before| !before.is_alphanumeric() && !matches!(before, '_' | ')' | '.'))
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_actions_of_helm_are_told_from_others() {
        for text in [
            "{{ .Values.image }}",
            "a-{{- $.Release.Name -}}",
            "{{ if (.Capabilities.APIVersions.Has \"a\") }}",
            "{{ include \"a.b\" . }}",
            "{{tpl .a .}}",
        ] {
            assert!(is_of_helm(text), "{text}");
        }
        for text in [
            "{{ $labels.pod }}",
            "{{ .CommonLabels.Values.x }}",
            "{{ .Labels }} .Values.a",
            "{{ template_ }}",
            "{{ .Values.a",
            "${{ env.A }}",
        ] {
            assert!(!is_of_helm(text), "{text}");
        }
    }
}
