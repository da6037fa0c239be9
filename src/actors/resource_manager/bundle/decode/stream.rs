//! The documents of one data key (spec 10 §9.2).

use std::borrow::Cow;

use serde_json::Value;

use super::{
    compression,
    duplicates::{DuplicateKey, DuplicateKeys},
    json,
    limits::{Limits, Meter},
    yaml,
};
use crate::api::resources::keys::BROTLI_SUFFIX;

const LOOK_AHEAD: usize = 1024; // bytes at the start of a data key in which a brace makes it JSON
const SEPARATOR: &[u8] = b"---";
const TEMPLATE: &str = "{{"; // no manifest begins a map within the key of a map

pub(super) struct DataKey<'a> {
    limits: Limits,
    state: ParserState<'a>,
    index: usize,
    duplicates: DuplicateKeys,
    template_line: Option<usize>,
}

enum ParserState<'a> {
    /// Nothing read yet.
    Raw { value: &'a [u8], compressed: bool },
    /// A JSON stream. `good` counts the values without an error. `line` is the zero-based line number at `offset`, kept
    /// only if duplicate keys are gathered.
    Json { data: Cow<'a, [u8]>, offset: usize, good: usize, line: usize },
    /// A YAML stream. `line` is the zero-based line number at `offset`.
    Yaml { data: Cow<'a, [u8]>, offset: usize, line: usize },
    /// Nothing follows.
    Done,
}

struct Chunk {
    start: usize,
    end: usize,
    first_line: usize,
}

impl<'a> DataKey<'a> {
    /// Gathers at most `most_duplicates` duplicate keys of each document.
    pub(super) fn new(data_key: &str, value: &'a [u8], limits: Limits, most_duplicates: usize) -> Self {
        let state = ParserState::Raw { value, compressed: data_key.ends_with(BROTLI_SUFFIX) };
        let duplicates = DuplicateKeys::new(most_duplicates);
        Self { limits, state, index: 0, duplicates, template_line: None }
    }

    /// Returns the duplicate keys of the last document, and if it is unreadable its first line with `{{`.
    pub(super) fn take_notes(&mut self) -> (Vec<DuplicateKey>, Option<usize>) {
        (self.duplicates.take(), self.template_line.take())
    }

    /// Returns the next object or error with its index. Empty documents are skipped, but count.
    pub(super) fn next(&mut self, meter: &mut Meter) -> Option<(usize, Result<Value, String>)> {
        loop {
            let state = std::mem::replace(&mut self.state, ParserState::Done);
            let read = match state {
                ParserState::Done => return None,
                ParserState::Raw { value, compressed } => match self.open(value, compressed, meter) {
                    Ok(state) => {
                        self.state = state;
                        continue;
                    }
                    Err(text) => Some(Err(text)),
                },
                ParserState::Json { data, offset, good, line } => self.next_json(data, offset, (good, line), meter),
                ParserState::Yaml { data, offset, line } => self.next_yaml(data, offset, line, meter),
            };

            let result = read?;
            let index = self.index;
            self.index += 1;
            if index >= self.limits.documents {
                self.state = ParserState::Done;
                return Some((index, Err(self.limits.documents_text())));
            }
            match result.transpose() {
                None => {}
                Some(result) => return Some((index, result.and_then(object))),
            }
        }
    }

    fn open(&self, value: &'a [u8], compressed: bool, meter: &mut Meter) -> Result<ParserState<'a>, String> {
        let data = if compressed {
            match compression::decompress(value, self.limits.decompressed)? {
                Some(data) => Cow::Owned(data),
                None => return Err(self.limits.decompressed_text()),
            }
        } else {
            Cow::Borrowed(value)
        };
        meter.charge(data.len())?;

        let start = &data[..data.len().min(LOOK_AHEAD)];
        let is_json = start[blanks(start)..].starts_with(b"{");
        if is_json {
            return Ok(ParserState::Json { data, offset: 0, good: 0, line: 0 });
        }
        let (data, offset, line) = as_lines(data, 0);
        Ok(ParserState::Yaml { data, offset, line })
    }

    /// Reads one value of a JSON stream. While at most one value was good, the stream may also be YAML.
    fn next_json(
        &mut self,
        data: Cow<'a, [u8]>,
        offset: usize,
        (good, line): (usize, usize),
        meter: &mut Meter,
    ) -> Option<Result<Option<Value>, String>> {
        let read = json::next(&data[offset..], &self.limits, meter)?;
        let may_be_yaml = good <= 1 && !meter.is_exhausted();
        match read {
            Ok((value, length)) if value.is_object() || value.is_null() => {
                let line = self.gather_of_json(&data[offset..offset + length], line);
                self.state = ParserState::Json { data, offset: offset + length, good: good + 1, line };
                Some(Ok(Some(value).filter(|value| !value.is_null())))
            }
            Ok(_) | Err(_) if may_be_yaml => {
                let offset = offset + blanks_of_line(&data[offset..]);
                let (data, offset, line) = as_lines(data, offset);
                self.next_yaml(data, offset, line, meter).or_else(|| read.err().map(Err))
            }
            Ok((value, length)) => {
                let line = self.gather_of_json(&data[offset..offset + length], line);
                self.state = ParserState::Json { data, offset: offset + length, good, line };
                Some(Ok(Some(value)))
            }
            // In a stream that is certainly JSON, the error would come again and again: the rest is skipped.
            Err(text) => Some(Err(text)),
        }
    }

    /// Gathers duplicate keys of a JSON value, which is YAML too: the JSON reader knows no lines. Returns the line after it.
    fn gather_of_json(&mut self, value: &[u8], line: usize) -> usize {
        if !self.duplicates.is_gathering() {
            return line;
        }
        if let Ok(text) = std::str::from_utf8(value) {
            let meter = &mut Meter::new(self.limits.bundle);
            // The JSON reader has accepted the value. What the YAML reader refuses of it has no lines.
            yaml::document(text, line, &self.limits, meter, &mut self.duplicates).ok();
        }
        line + newlines(value)
    }

    /// Reads one document of a YAML stream; an inner `None` is an empty document.
    fn next_yaml(
        &mut self,
        data: Cow<'a, [u8]>,
        offset: usize,
        line: usize,
        meter: &mut Meter,
    ) -> Option<Result<Option<Value>, String>> {
        let (chunk, offset, line) = next_chunk(&data, offset, line)?;
        let read = match chunk {
            Ok(Chunk { start, end, first_line }) => match std::str::from_utf8(&data[start..end]) {
                Ok(text) => {
                    let read = yaml::document(text, first_line, &self.limits, meter, &mut self.duplicates);
                    if read.is_err() {
                        let at = text.find(TEMPLATE);
                        self.template_line = at.map(|at| first_line + newlines(&text.as_bytes()[..at]) + 1);
                    }
                    read
                }
                Err(error) => {
                    let line = first_line + newlines(&data[start..start + error.valid_up_to()]) + 1;
                    Err(format!("yaml: line {line}: not UTF-8"))
                }
            },
            Err(text) => Err(text),
        };
        self.state = ParserState::Yaml { data, offset, line };
        Some(read)
    }
}

/// Only a map is an object.
fn object(value: Value) -> Result<Value, String> {
    let kind = match value {
        Value::Object(_) => return Ok(value),
        Value::Array(_) => "a list",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
    };
    Err(format!("the document is {kind} and no map"))
}

/// Returns the data from an offset on, as lines that all end with `\n`, including the last; its new offset, and the
/// number of its first line.
fn as_lines(data: Cow<'_, [u8]>, offset: usize) -> (Cow<'_, [u8]>, usize, usize) {
    let line = newlines(&data[..offset]);
    let rest = &data[offset..];
    if rest.is_empty() || (rest.ends_with(b"\n") && !rest.contains(&b'\r')) {
        return (data, offset, line);
    }

    let mut lines = Vec::with_capacity(rest.len() + 1);
    for line in rest.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
        lines.extend_from_slice(line);
        lines.push(b'\n');
    }
    (Cow::Owned(lines), 0, line)
}

/// Returns the next piece, and offset and line after it. A separator ends the piece before it; without such a piece it
/// belongs to the piece after it. A separator with text behind it is an error, which also drops the piece before it.
fn next_chunk(data: &[u8], offset: usize, line: usize) -> Option<(Result<Chunk, String>, usize, usize)> {
    let (mut position, mut number) = (offset, line);
    while position < data.len() {
        let end = data[position..].iter().position(|&byte| byte == b'\n').map_or(data.len(), |at| position + at + 1);
        let text = &data[position..end];
        number += 1;
        if let Some(rest) = text.strip_prefix(SEPARATOR) {
            let rest = &rest[blanks(rest)..];
            if !rest.is_empty() && !rest.starts_with(b"#") {
                let text = format!("invalid Yaml document separator: line {number} goes on after it");
                return Some((Err(text), end, number));
            }
            if position > offset {
                return Some((Ok(Chunk { start: offset, end: position, first_line: line }), end, number));
            }
        }
        position = end;
    }
    let chunk = Chunk { start: offset, end: data.len(), first_line: line };
    (offset < data.len()).then_some((Ok(chunk), data.len(), number))
}

fn newlines(data: &[u8]) -> usize {
    data.iter().filter(|&&byte| byte == b'\n').count()
}

/// Length in bytes of the white space at the start of `data`, as Unicode defines it.
fn blanks(data: &[u8]) -> usize {
    characters(data).find(|(_, character)| !character.is_whitespace()).map_or_else(|| valid(data), |(at, _)| at)
}

/// Length in bytes of the white space at the start of `data`, up to and including the first line break.
fn blanks_of_line(data: &[u8]) -> usize {
    for (at, character) in characters(data) {
        if character == '\n' {
            return at + 1;
        }
        if !character.is_whitespace() {
            return at;
        }
    }
    valid(data)
}

fn characters(data: &[u8]) -> impl Iterator<Item = (usize, char)> {
    // Chunks of valid UTF-8. Only the first matters; it exists unless `data` is empty.
    data.utf8_chunks().next().map(|chunk| chunk.valid().char_indices()).into_iter().flatten()
}

fn valid(data: &[u8]) -> usize {
    data.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len())
}
