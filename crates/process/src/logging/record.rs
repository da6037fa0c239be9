use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Format, Level};

const MAX_TEXT: usize = 16 * 1024; // longer texts in a field or message are cut: one record must not fill the queue

/// The library of all programs.
const OWN_CRATE: &str = "gardener_resource_manager";
/// Folders that say nothing to who reads the log, from the outside in.
const FOLDERS: [&str; 5] = ["actors::", "programs::", "resource_manager::", "controller_manager::", "shared::"];

const LAYERS: [&str; 4] = ["kit", "cluster", "process", "sim"];

#[derive(Debug)]
pub(super) struct LogRecord<'a> {
    pub(super) level: Level,
    pub(super) at: Timestamp,
    /// The module of the record, with `::`.
    pub(super) target: &'a str,
    pub(super) fields: Fields,
}

/// Names and values in order; a repeated name replaces the value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields {
    entries: Vec<(&'static str, Value)>,
}

impl LogRecord<'_> {
    pub(super) fn line(mut self, format: Format) -> String {
        let message = self.fields.take_text("message").unwrap_or_default();
        let logger = self.fields.take_text("logger").or_else(|| logger_of(self.target));
        let timestamp = format!("{:.3}", self.at);

        let mut line = match format {
            Format::Json => json_line(self.level, &timestamp, logger.as_deref(), &message, &self.fields),
            Format::Text => text_line(self.level, &timestamp, logger.as_deref(), &message, &self.fields),
        };
        line.push('\n');
        line
    }
}

fn json_line(level: Level, timestamp: &str, logger: Option<&str>, message: &str, fields: &Fields) -> String {
    let mut line = format!("{{\"level\":\"{level}\",\"ts\":\"{timestamp}\"");
    if let Some(logger) = logger {
        push_member(&mut line, "logger", &logger.into());
    }
    push_member(&mut line, "msg", &message.into());
    for (name, value) in &fields.entries {
        push_member(&mut line, own_name(name), value);
    }
    line.push('}');
    line
}

fn text_line(level: Level, timestamp: &str, logger: Option<&str>, message: &str, fields: &Fields) -> String {
    let mut line = format!("{timestamp}\t{}", level.to_string().to_uppercase());
    for column in logger.into_iter().chain([message]) {
        line.push('\t');
        line.extend(column.chars().flat_map(escape_control));
    }
    if !fields.entries.is_empty() {
        let mut object = String::new();
        for (name, value) in &fields.entries {
            push_member(&mut object, name, value);
        }
        line.push_str("\t{"); // each member starts with a comma
        line.push_str(&object[1..]);
        line.push('}');
    }
    line
}

fn push_member(line: &mut String, name: &str, value: &Value) {
    line.push(',');
    line.push_str(&Value::from(name).to_string());
    line.push(':');
    line.push_str(&value.to_string());
}

/// Renames a field that would replace a member on which log parsers rely (spec 71 §10).
fn own_name(name: &str) -> &str {
    match name {
        "level" => "level_",
        "ts" => "ts_",
        "msg" => "msg_",
        other => other,
    }
}

/// Keeps a record on its line and in its columns, and control sequences away from terminals.
fn escape_control(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

/// Returns true if a record comes from this program, not from a library.
pub fn is_own_target(target: &str) -> bool {
    let own = target.split("::").next().unwrap_or_default();
    own == OWN_CRATE || LAYERS.contains(&own)
}

/// The logger's name, from the module: without the program's crate and the folder of all actors, words joined by `-`,
/// segments by `.`. Returns `None` for the root of the program.
fn logger_of(target: &str) -> Option<String> {
    let module = if is_own_target(target) {
        let inside = target.strip_prefix(OWN_CRATE).unwrap_or(target).trim_start_matches("::");
        let inside = FOLDERS.iter().fold(inside, |inside, folder| inside.strip_prefix(folder).unwrap_or(inside));
        inside.replace('_', "-")
    } else {
        target.to_owned()
    };
    (!module.is_empty()).then(|| module.replace("::", "."))
}

impl Fields {
    /// Sets a field. The part before the first dot names an object, the rest its member.
    pub(super) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        let name = name.strip_prefix("r#").unwrap_or(name);
        let value = shortened(value.into());
        match name.split_once('.') {
            Some((object, member)) if !object.is_empty() && !member.is_empty() => {
                if let Value::Object(members) = self.entry(object, || Map::new().into()) {
                    members.insert(member.to_owned(), value);
                }
            }
            _ => *self.entry(name, || Value::Null) = value,
        }
    }

    pub(super) fn extend(&mut self, inner: Self) {
        for (name, value) in inner.entries {
            match (self.entry(name, || Value::Null), value) {
                (Value::Object(members), Value::Object(more)) => members.extend(more),
                (entry, value) => *entry = value,
            }
        }
    }

    fn entry(&mut self, name: &'static str, default: impl FnOnce() -> Value) -> &mut Value {
        let index = match self.entries.iter().position(|(known, _)| *known == name) {
            Some(index) => index,
            None => {
                self.entries.push((name, default()));
                self.entries.len() - 1
            }
        };
        &mut self.entries[index].1
    }

    fn take_text(&mut self, name: &str) -> Option<String> {
        let index = self.entries.iter().position(|(known, _)| *known == name)?;
        match self.entries.remove(index).1 {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }
}

fn shortened(value: Value) -> Value {
    match value {
        Value::String(mut text) if text.len() > MAX_TEXT => {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push('…');
            text.into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(target: &str, fields: &[(&'static str, Value)]) -> LogRecord<'static> {
        let mut collected = Fields::default();
        for (name, value) in fields {
            collected.set(name, value.clone());
        }
        let target = target.to_owned().leak();
        LogRecord { level: Level::Info, at: "2024-05-01T10:11:12.3456789Z".parse().unwrap(), target, fields: collected }
    }

    /// spec 70 scenario 33
    #[test]
    fn a_json_record_has_its_keys_in_order_and_milliseconds() {
        let record = record(
            "gardener_resource_manager::actors::resource_manager::managed_resource::apply",
            &[("message", "Applied".into()), ("objects", 3.into()), ("error", "none \"yet\"\n".into())],
        );

        assert_eq!(
            record.line(Format::Json),
            concat!(
                r#"{"level":"info","ts":"2024-05-01T10:11:12.345Z","logger":"managed-resource.apply","msg":"Applied","#,
                r#""objects":3,"error":"none \"yet\"\n"}"#,
                "\n"
            )
        );
    }

    #[test]
    fn a_text_record_has_tabs_between_its_columns() {
        let with_fields = record("health", &[("message", "a\tb\nc".into()), ("n", 1.into()), ("ok", true.into())]);
        let without = record("gardener_resource_manager", &[("message", "Started".into())]);

        let with_fields = with_fields.line(Format::Text);
        let without = without.line(Format::Text);

        assert_eq!(with_fields, "2024-05-01T10:11:12.345Z\tINFO\thealth\ta\\tb\\nc\t{\"n\":1,\"ok\":true}\n");
        assert_eq!(without, "2024-05-01T10:11:12.345Z\tINFO\tStarted\n");
    }

    #[test]
    fn loggers_are_named_by_field_or_module() {
        let table = [
            ("gardener_resource_manager", None),
            ("process::dashboard::server", Some("process.dashboard.server")),
            ("process::http::probes", Some("process.http.probes")),
            ("gardener_resource_manager::webhooks", Some("webhooks")),
            ("gardener_resource_manager::actors::resource_manager::csr_approver", Some("csr-approver")),
            ("cluster::client::token", Some("cluster.client.token")),
            ("cluster_api::some_module", Some("cluster_api.some_module")),
            ("gardener_resource_manager_other::a", Some("gardener_resource_manager_other.a")),
            ("kube_client::client", Some("kube_client.client")),
        ];
        for (target, expected) in table {
            assert_eq!(logger_of(target).as_deref(), expected, "{target}");
        }

        let named = record("a::b", &[("message", "m".into()), ("logger", "token-requestor".into())]);
        assert!(named.line(Format::Json).contains(r#""logger":"token-requestor","msg":"m"}"#));
    }

    /// spec 70 §10: objects are logged with name and namespace
    #[test]
    fn dotted_fields_become_objects() {
        let record = record("a", &[("object.name", "x".into()), ("n", 1.into()), ("object.namespace", "y".into())]);

        let line = record.line(Format::Json);

        assert!(line.contains(r#","object":{"name":"x","namespace":"y"},"n":1}"#), "{line}");
    }

    #[test]
    fn fields_cannot_replace_members_on_which_parsers_rely() {
        let record =
            record("a", &[("message", "m".into()), ("level", "x".into()), ("ts", 1.into()), ("msg", 2.into())]);

        let line = record.line(Format::Json);

        assert!(line.ends_with("\"msg\":\"m\",\"level_\":\"x\",\"ts_\":1,\"msg_\":2}\n"), "{line}");
    }

    #[test]
    fn an_inner_field_replaces_an_outer_one_in_its_place() {
        let mut fields = Fields::default();
        fields.set("a", 1);
        fields.set("b", 2);
        let mut inner = Fields::default();
        inner.set("c", 3);
        inner.set("a", 4);

        fields.extend(inner);

        let names: Vec<_> = fields.entries.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(names, ["a=4", "b=2", "c=3"]);
    }

    #[test]
    fn long_texts_are_cut() {
        let line = record("a", &[("x", "é".repeat(MAX_TEXT).into())]).line(Format::Json);

        assert!(line.len() < MAX_TEXT + 200);
        assert!(line.contains('…'));
    }
}
