//! A record and its fields as text.

use std::fmt::{self, Write as _};

use jiff::Timestamp;

use super::{Format, Level};

const MAX_TEXT: usize = 16 * 1024; // longer texts in a field or message are cut: one record must not fill the queue

/// The library of all programs.
const OWN_CRATE: &str = "gardener_resource_manager";
/// Folders that say nothing to who reads the log, from the outside in.
const FOLDERS: [&str; 5] = ["actors::", "programs::", "resource_manager::", "controller_manager::", "shared::"];

const LAYERS: [&str; 4] = ["kit", "cluster", "process", "sim"];

/// Bytes that the texts of a span or record take as a rule.
const ROOM: usize = 128;

/// The fields of the head of a record. They are kept as they are, the others as JSON.
const MESSAGE: &str = "message";
const LOGGER: &str = "logger";

#[derive(Debug)]
pub(super) struct LogRecord<'a> {
    pub(super) level: Level,
    pub(super) at: Timestamp,
    /// The module of the record, with `::`.
    pub(super) target: &'a str,
    pub(super) fields: &'a Fields,
}

/// Names and values in order. A repeated name replaces the value in its place. A plain field and an object of its name
/// replace each other.
#[derive(Debug, Default)]
pub(super) struct Fields {
    entries: Vec<FieldEntry>,
    /// The texts of all values, and of those that were replaced.
    texts: String,
}

#[derive(Debug, Clone, Copy)]
struct FieldEntry {
    name: &'static str,
    begin: usize,
    end: usize,
}

impl LogRecord<'_> {
    /// Returns the record as one line with its end.
    pub(super) fn line(&self, format: Format) -> String {
        let module;
        let logger = match self.fields.get(LOGGER) {
            Some(logger) => Some(logger),
            None => {
                module = logger_of(self.target);
                module.as_deref()
            }
        };
        let message = self.fields.get(MESSAGE).unwrap_or_default();

        let mut line = String::with_capacity(self.fields.texts.len() + 256);
        match format {
            Format::Json => self.write_json(&mut line, logger, message),
            Format::Text => self.write_text(&mut line, logger, message),
        }
        line.push('\n');
        line
    }

    fn write_json(&self, line: &mut String, logger: Option<&str>, message: &str) {
        append(line, format_args!("{{\"level\":\"{}\",\"ts\":\"{:.3}\"", self.level, self.at));
        if let Some(logger) = logger {
            line.push_str(",\"logger\":");
            push_json(line, logger);
        }
        line.push_str(",\"msg\":");
        push_json(line, message);
        self.fields.write_members(line, own_name);
        line.push('}');
    }

    fn write_text(&self, line: &mut String, logger: Option<&str>, message: &str) {
        append(line, format_args!("{:.3}\t{}", self.at, self.level.to_string().to_uppercase()));
        for column in logger.into_iter().chain([message]) {
            line.push('\t');
            line.extend(column.chars().flat_map(escape_control));
        }
        let object = line.len();
        self.fields.write_members(line, |name| name);
        if line.len() > object {
            line.replace_range(object..=object, "\t{"); // each member starts with a comma
            line.push('}');
        }
    }
}

fn append(line: &mut String, text: fmt::Arguments<'_>) {
    line.write_fmt(text).ok(); // a string accepts everything; what a value's own formatter refuses is left out
}

/// Appends a text as a JSON string.
fn push_json(line: &mut String, text: &str) {
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\') {
        line.push('"');
        line.push_str(text);
        line.push('"');
    } else {
        line.push_str(&serde_json::Value::from(text).to_string());
    }
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
    /// Sets a field to a text.
    pub(super) fn set_text(&mut self, name: &'static str, text: &str) {
        if text.len() > MAX_TEXT {
            let cut = text.floor_char_boundary(MAX_TEXT - '…'.len_utf8());
            return self.set_text(name, &format!("{}…", &text[..cut]));
        }
        self.set(name, |texts| if is_head(name) { texts.push_str(text) } else { push_json(texts, text) });
    }

    /// Sets a field to a number or a truth value, whose text is JSON.
    pub(super) fn set_plain(&mut self, name: &'static str, value: impl fmt::Display) {
        self.set(name, |texts| append(texts, format_args!("{value}")));
    }

    /// The part of `name` before the first dot names an object, the rest its member.
    fn set(&mut self, name: &'static str, write: impl FnOnce(&mut String)) {
        let begin = self.texts.len();
        if begin == 0 {
            self.texts.reserve(ROOM);
        }
        write(&mut self.texts);
        let name = name.strip_prefix("r#").unwrap_or(name);
        self.put(FieldEntry { name, begin, end: self.texts.len() });
    }

    fn put(&mut self, entry: FieldEntry) {
        if let Some(known) = self.entries.iter_mut().find(|known| known.name == entry.name) {
            *known = entry;
            return;
        }
        self.entries.retain(|known| !(is_member(known.name, entry.name) || is_member(entry.name, known.name)));
        self.entries.push(entry);
    }

    /// Adds the fields of an inner span or of the event.
    pub(super) fn extend(&mut self, inner: &Self) {
        let offset = self.texts.len();
        self.texts.push_str(&inner.texts);
        for FieldEntry { name, begin, end } in &inner.entries {
            self.put(FieldEntry { name, begin: begin + offset, end: end + offset });
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| self.text(entry))
    }

    fn text(&self, entry: &FieldEntry) -> &str {
        &self.texts[entry.begin..entry.end]
    }

    /// Appends all fields except those of the head, each with a comma before it. Members of an object stand together.
    fn write_members(&self, line: &mut String, rename: impl Fn(&str) -> &str) {
        for (index, entry) in self.entries.iter().enumerate() {
            let Some((object, member)) = object_member(entry.name) else {
                if !is_head(entry.name) {
                    line.push(',');
                    self.write_member(line, rename(entry.name), entry);
                }
                continue;
            };
            let same_object = |other: &FieldEntry| object_member(other.name).is_some_and(|(name, _)| name == object);
            if self.entries[..index].iter().any(same_object) {
                continue;
            }
            line.push(',');
            push_json(line, rename(object));
            line.push_str(":{");
            self.write_member(line, member, entry);
            for other in self.entries[index + 1..].iter().filter(|other| same_object(other)) {
                line.push(',');
                self.write_member(line, &other.name[object.len() + 1..], other);
            }
            line.push('}');
        }
    }

    fn write_member(&self, line: &mut String, name: &str, entry: &FieldEntry) {
        push_json(line, name);
        line.push(':');
        line.push_str(self.text(entry));
    }
}

fn is_head(name: &str) -> bool {
    name == MESSAGE || name == LOGGER
}

/// Returns true if `name` is a member of the object. The fields of the head are no objects.
fn is_member(name: &str, object: &str) -> bool {
    !is_head(object) && name.strip_prefix(object).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
}

/// Splits `object.member`.
fn object_member(name: &'static str) -> Option<(&'static str, &'static str)> {
    name.split_once('.').filter(|(object, member)| !object.is_empty() && !member.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn fields(values: &[(&'static str, Value)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in values {
            match value {
                Value::String(text) => fields.set_text(name, text),
                other => fields.set_plain(name, other),
            }
        }
        fields
    }

    fn record(target: &str, values: &[(&'static str, Value)]) -> LogRecord<'static> {
        let at = "2024-05-01T10:11:12.3456789Z".parse().unwrap();
        let fields = Box::leak(Box::new(fields(values)));
        LogRecord { level: Level::Info, at, target: target.to_owned().leak(), fields }
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
        let mut outer = fields(&[("a", 1.into()), ("b", 2.into()), ("message", "outer".into())]);

        outer.extend(&fields(&[("message", "inner".into()), ("c", 3.into()), ("a", "4".into())]));

        let mut members = String::new();
        outer.write_members(&mut members, |name| name);
        assert_eq!(members, r#","a":"4","b":2,"c":3"#);
        assert_eq!(outer.get("message"), Some("inner"));
    }

    #[test]
    fn log_field_and_object_of_its_name_replace_each_other() {
        for (order, expected) in [
            (["o.x", "o.y", "o"], r#","o":"o""#),
            (["o", "o.x", "o.y"], r#","o":{"x":"o.x","y":"o.y"}"#),
            (["o.x", "o", "o.y"], r#","o":{"y":"o.y"}"#),
        ] {
            let mut members = String::new();
            fields(&order.map(|name| (name, name.into()))).write_members(&mut members, |name| name);

            assert_eq!(members, expected);
        }
    }

    #[test]
    fn log_texts_are_escaped_as_json() {
        let texts = ["plain", "\"quoted\"", "back\\slash", "line\nend", "\u{1b}[0m", "é", "\u{7f}", ""];

        for text in texts {
            let mut written = String::new();
            push_json(&mut written, text);
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        let line = record("a", &[("x", "é".repeat(MAX_TEXT).into())]).line(Format::Json);

        assert!(line.len() < MAX_TEXT + 200);
        assert!(line.contains('…'));
    }
}
