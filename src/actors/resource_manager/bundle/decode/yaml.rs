//! One YAML document (spec 10 §9.2, table "YAML dialect"). The parser's events become a JSON value without recursion.
//! Scalars are resolved here, from their text and style: a deserializer behind `serde` no longer knows that `on` was
//! not quoted.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{self, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::{
    duplicates::{DuplicateKeys, Step},
    limits::{FIELDS_COST, Limits, Meter, NODE_COST},
    repair::{self, Edits, Repaired},
    scalar::{self, Scalar},
};

const TAG_PREFIX: &str = "tag:yaml.org,2002:";
const MERGE_KEY: &str = "<<";
const NULL_KEY: &str = "a map key must not be null";
const NO_KEY: &str = "a list or map cannot be a map key";

/// Reads the first document of `text`; returns `None` if it is empty or null. Lines in errors count from the start of
/// the data key, which has `lines_before` lines before the text.
pub(super) fn document(
    text: &str,
    lines_before: usize,
    limits: &Limits,
    meter: &mut Meter,
    duplicates: &mut DuplicateKeys,
) -> Result<Option<Value>, String> {
    let refused = |defect: Defect| {
        let Defect { line, column, text, .. } = defect;
        format!("yaml: line {} column {column}: {text}", lines_before + line)
    };
    let spent_before = meter.spent();
    let mut notes = Notes { lines_before, duplicates };
    let defect = match parse(text, Edits::default(), limits, meter, &mut notes) {
        Ok(value) => return Ok(value),
        Err(defect) => defect,
    };
    if !defect.repairable {
        return Err(refused(defect));
    }
    meter.give_back(spent_before);
    notes.duplicates.clear();
    let Some(Repaired { text, edits }) = repair::repair(text, meter.left()) else { return Err(refused(defect)) };
    meter.charge(text.len() + edits.size())?;
    // One repair is enough: further errors remain, and each repair costs another read of the whole text.
    parse(&text, edits, limits, meter, &mut notes).map_err(|second| refused(second.unless_misread(defect)))
}

/// What is gathered beside the value.
struct Notes<'a> {
    lines_before: usize,
    duplicates: &'a mut DuplicateKeys,
}

fn parse(
    text: &str,
    edits: Edits,
    limits: &Limits,
    meter: &mut Meter,
    notes: &mut Notes<'_>,
) -> Result<Option<Value>, Defect> {
    #[cfg(test)]
    meter.count_reading();
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    options.flow_nesting_limit = limits.depth.saturating_add(1);
    options.block_nesting_limit = limits.depth.saturating_add(1);
    let (stack, anchors) = (Vec::new(), HashMap::new());
    let builder = Builder { limits, meter, edits, notes, line: 0, stack, anchors, copied: 0, root: None };
    builder.run(Parser::new_from_str_with_options(text, options))
}

struct Defect {
    line: usize,
    column: usize,
    text: Cow<'static, str>,
    /// Go's parser accepts this.
    repairable: bool,
    /// The text was repaired where nothing was broken.
    misread: bool,
}

struct Builder<'a, 'n> {
    limits: &'a Limits,
    meter: &'a mut Meter,
    edits: Edits,
    notes: &'a mut Notes<'n>,
    /// Line of the event.
    line: usize,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchored>,
    /// Cost of the copies for aliases so far.
    copied: usize,
    root: Option<Value>,
}

struct Frame {
    content: Content,
    /// Zero without an anchor.
    anchor: usize,
    spent_before: usize,
    height: usize,
}

enum Content {
    List(Vec<Value>),
    /// `merged`: the fields that a merge key has brought, while duplicate keys are gathered.
    Map {
        fields: Map<String, Value>,
        key: Option<Key>,
        merged: BTreeSet<String>,
    },
}

enum Key {
    Text(String),
    Merge,
}

struct Anchored {
    value: Value,
    cost: usize,
    height: usize,
}

struct YamlNode {
    value: Value,
    height: usize,
}

impl Builder<'_, '_> {
    fn run<'i>(mut self, mut parser: Parser<'i, StrInput<'i>>) -> Result<Option<Value>, Defect> {
        while let Some(event) = parser.next_event() {
            let (event, span) = event.map_err(|error| Defect::of_parser(&error, &self.edits, self.limits))?;
            let is_end = matches!(event, Event::DocumentEnd | Event::StreamEnd);
            let is_repaired_well = match &event {
                Event::Scalar(_, style, ..) => self.edits.agree(*style, &span),
                _ if is_end => self.edits.agree_at_end(),
                _ => true,
            };
            if !is_repaired_well {
                return Err(Defect { misread: true, ..Defect::at(&span, &self.edits, "misread".into()) });
            }
            self.line = span.start.line();
            self.handle(event).map_err(|text| Defect::at(&span, &self.edits, text))?;
            // Everything after `...` is ignored, even if it is broken.
            if is_end {
                break;
            }
        }
        Ok(self.root.filter(|root| !root.is_null()))
    }

    fn handle(&mut self, event: Event<'_>) -> Result<(), Cow<'static, str>> {
        match event {
            Event::Scalar(text, style, anchor, tag) => self.scalar(text, style, anchor, tag.as_deref()),
            Event::SequenceStart(_, anchor, _) => self.open(Content::List(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => {
                self.open(Content::Map { fields: Map::new(), key: None, merged: BTreeSet::new() }, anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.alias(anchor),
            Event::UnresolvedAlias(_) => Err("unknown anchor".into()),
            // The other events have no content: start and end of stream and document. Comments are switched off.
            _ => Ok(()),
        }
    }

    fn is_key_next(&self) -> bool {
        matches!(self.stack.last(), Some(Frame { content: Content::Map { key: None, .. }, .. }))
    }

    fn set_key(&mut self, new: Key) {
        if let Key::Text(key) = &new {
            self.note_duplicate(key);
        }
        if let Some(Frame { content: Content::Map { key, .. }, .. }) = self.stack.last_mut() {
            *key = Some(new);
        }
    }

    /// Notes a key that its map has already, other than by a merge key.
    fn note_duplicate(&mut self, new: &str) {
        if !self.notes.duplicates.is_gathering() {
            return;
        }
        let Some((Frame { content: Content::Map { fields, merged, .. }, .. }, outer)) = self.stack.split_last_mut()
        else {
            return;
        };
        if !fields.contains_key(new) || merged.remove(new) {
            return;
        }
        let outer = outer.iter().rev().map(|frame| match &frame.content {
            Content::List(items) => Step::Position(items.len()),
            Content::Map { key: Some(Key::Text(key)), .. } => Step::Field(key),
            Content::Map { .. } => Step::Field(MERGE_KEY),
        });
        let steps = std::iter::once(Step::Field(new)).chain(outer);
        self.notes.duplicates.add(steps, self.notes.lines_before + self.line);
    }

    fn scalar(
        &mut self,
        mut text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), Cow<'static, str>> {
        let spent_before = self.meter.spent();
        self.meter.charge(NODE_COST + text.len())?;

        let is_plain = style == ScalarStyle::Plain;
        let tag = tag.map(|tag| tag.suffix_in_namespace(TAG_PREFIX).unwrap_or(Cow::Borrowed("!")));
        let resolved = match tag.as_deref() {
            None if is_plain => scalar::resolve(&text),
            None => Scalar::Text,
            Some("binary") => {
                text = Cow::Owned(decode_binary(&text)?);
                Scalar::Text
            }
            Some(tag) => resolve_tagged(tag, &text)?,
        };

        if !self.is_key_next() {
            let node = YamlNode { value: value(resolved, text)?, height: 0 };
            return self.finish(node, anchor, spent_before);
        }
        if text == MERGE_KEY && (tag.is_none() && is_plain || tag.as_deref() == Some("merge")) {
            self.set_key(Key::Merge);
            return Ok(());
        }
        if anchor != 0 {
            let node = YamlNode { value: value(resolved.clone(), text.clone())?, height: 0 };
            self.remember(anchor, &node, spent_before)?;
        }
        self.set_key(Key::Text(key_text(resolved, text)?));
        Ok(())
    }

    fn open(&mut self, content: Content, anchor: usize) -> Result<(), Cow<'static, str>> {
        if self.is_key_next() {
            return Err(NO_KEY.into());
        }
        if self.stack.len() >= self.limits.depth {
            return Err(self.limits.depth_text().into());
        }

        let spent_before = self.meter.spent();
        self.meter.charge(NODE_COST)?;
        self.stack.push(Frame { content, anchor, spent_before, height: 0 });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Cow<'static, str>> {
        let Some(Frame { content, anchor, spent_before, height }) = self.stack.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Map { fields, .. } => {
                if !fields.is_empty() {
                    self.meter.charge(FIELDS_COST)?;
                }
                Value::Object(fields)
            }
        };
        self.finish(YamlNode { value, height: height + 1 }, anchor, spent_before)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), Cow<'static, str>> {
        let spent_before = self.meter.spent();
        let Some(Anchored { value, cost, height }) = self.anchors.get(&anchor) else {
            return Err("an anchor's value contains itself".into());
        };
        let (cost, height) = (*cost, *height);
        self.copied = self.copied.saturating_add(cost);
        if self.copied > self.limits.aliases {
            return Err(self.limits.aliases_text().into());
        }
        if self.stack.len() + height > self.limits.depth {
            return Err(self.limits.depth_text().into());
        }
        self.meter.charge(cost)?;

        let value = value.clone();
        if !self.is_key_next() {
            return self.finish(YamlNode { value, height }, 0, spent_before);
        }
        self.set_key(Key::Text(match value {
            Value::String(text) => text,
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            Value::Null => return Err(NULL_KEY.into()),
            Value::Array(_) | Value::Object(_) => return Err(NO_KEY.into()),
        }));
        Ok(())
    }

    /// Keeps a copy of a node for its aliases and charges its cost: anchors within anchors copy the same again.
    fn remember(&mut self, anchor: usize, node: &YamlNode, spent_before: usize) -> Result<(), Cow<'static, str>> {
        let cost = self.meter.spent() - spent_before;
        self.copied = self.copied.saturating_add(cost);
        if self.copied > self.limits.aliases {
            return Err(self.limits.aliases_text().into());
        }
        self.meter.charge(cost)?;
        self.anchors.insert(anchor, Anchored { value: node.value.clone(), cost, height: node.height });
        Ok(())
    }

    fn finish(&mut self, node: YamlNode, anchor: usize, spent_before: usize) -> Result<(), Cow<'static, str>> {
        if anchor != 0 {
            self.remember(anchor, &node, spent_before)?;
        }
        let Some(parent) = self.stack.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };

        parent.height = parent.height.max(node.height);
        match &mut parent.content {
            Content::List(items) => items.push(node.value),
            Content::Map { fields, key, merged } => match key.take() {
                // The last of two equal keys wins.
                Some(Key::Text(key)) => drop(fields.insert(key, node.value)),
                Some(Key::Merge) => {
                    if self.notes.duplicates.is_gathering() {
                        merged.extend(keys(&node.value));
                    }
                    merge(fields, node.value)?;
                }
                None => {}
            },
        }
        Ok(())
    }
}

/// The value of a scalar with a tag of YAML. Other tags leave the text as it is.
fn resolve_tagged(tag: &str, text: &str) -> Result<Scalar, Cow<'static, str>> {
    let resolved = scalar::resolve(text);
    match (tag, resolved) {
        ("null", resolved @ Scalar::Null)
        | ("bool", resolved @ Scalar::Bool(_))
        | ("int" | "float", resolved @ Scalar::Integer(_))
        | ("float", resolved @ Scalar::Float(_)) => Ok(resolved),
        ("null" | "bool" | "int" | "float", _) => Err("a value does not fit its tag".into()),
        _ => Ok(Scalar::Text),
    }
}

fn decode_binary(text: &str) -> Result<String, Cow<'static, str>> {
    let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    let bytes = STANDARD.decode(text).map_err(|_| "a value tagged as binary is no Base64")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn value(scalar: Scalar, text: Cow<'_, str>) -> Result<Value, Cow<'static, str>> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) => Value::Bool(value),
        Scalar::Integer(value) => Value::Number(value),
        Scalar::Float(value) => scalar::float(value).ok_or("a number has no JSON form")?,
        Scalar::Text => Value::String(text.into_owned()),
    })
}

/// JSON has only strings as keys.
fn key_text(scalar: Scalar, text: Cow<'_, str>) -> Result<String, Cow<'static, str>> {
    Ok(match scalar {
        Scalar::Null => return Err(NULL_KEY.into()),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Integer(value) => value.to_string(),
        Scalar::Float(value) => scalar::float_key(value),
        Scalar::Text => text.into_owned(),
    })
}

/// The keys of a map, or of a list of maps.
fn keys(value: &Value) -> impl Iterator<Item = String> {
    let maps = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    maps.iter().filter_map(Value::as_object).flat_map(Map::keys).cloned()
}

/// A merge key takes effect at its position: earlier keys are overwritten, later keys win. In a list of maps the
/// earlier map wins.
fn merge(fields: &mut Map<String, Value>, value: Value) -> Result<(), Cow<'static, str>> {
    const WANTED: &str = "a merge key needs a map or a list of maps";

    match value {
        Value::Object(map) => fields.extend(map),
        Value::Array(maps) => {
            for map in maps.into_iter().rev() {
                let Value::Object(map) = map else { return Err(WANTED.into()) };
                fields.extend(map);
            }
        }
        _ => return Err(WANTED.into()),
    }
    Ok(())
}

impl Defect {
    fn at(span: &Span, edits: &Edits, text: Cow<'static, str>) -> Self {
        let line = span.start.line();
        let column = edits.original_column(line, span.start.col() + 1);
        Self { line, column, text, repairable: false, misread: false }
    }

    /// The parser's texts are constant, except for some that quote their input.
    fn of_parser(error: &ScanError, edits: &Edits, limits: &Limits) -> Self {
        let text = match error.kind() {
            // The parser's own limit is slightly above ours, but it reads ahead of its output.
            ErrorKind::RecursionLimitExceeded => limits.depth_text().into(),
            ErrorKind::UnexpectedCharacter { .. } => "unexpected character".into(),
            ErrorKind::MismatchedFlowCollectionEnd { .. } => "a bracket is closed by another one".into(),
            ErrorKind::Custom(_) | ErrorKind::InputIo { .. } | ErrorKind::InputDecoding { .. } => "unreadable".into(),
            kind => kind.to_string().into(),
        };
        let repairable = matches!(
            error.kind(),
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation | ErrorKind::BomInsideDocument
        );
        let marker = error.marker();
        let column = edits.original_column(marker.line(), marker.col() + 1);
        Self { line: marker.line(), column, text, repairable, misread: false }
    }

    /// Returns this error, or `first` if this error only says that the repair was wrong.
    fn unless_misread(self, first: Self) -> Self {
        if self.misread { first } else { self }
    }
}
