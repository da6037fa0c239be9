//! From bytes to one JSON document of the right kind, with former spellings of keys moved to today's keys.

use std::str::Utf8Error;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{
    ConfigError, DecodeError, Warning, WarningKind,
    decode::{UnknownKey, decode, join},
    lines,
};

/// What the file of a program looks like, besides its struct. Paths are those of keys, as in messages.
#[derive(Debug)]
pub struct ConfigSchema {
    /// Group and version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Former spellings.
    pub aliases: &'static [Alias],
    /// Keys of earlier releases without a successor.
    pub without_effect: &'static [&'static str],
    /// Types that select something. An unknown key in them is an error, because to ignore it would select more.
    pub selecting: &'static [&'static str],
}

/// Another accepted spelling of a key or block.
#[derive(Debug)]
pub struct Alias {
    /// Path of the other spelling. Only its last key differs from `official`.
    pub accepted: &'static str,
    /// Path of today's spelling.
    pub official: &'static str,
    /// What happens if the file has both.
    pub both: BothSpellings,
    /// Whether its use gives a warning.
    pub is_deprecated: bool,
}

/// What happens if a file has both spellings of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BothSpellings {
    /// Fields that only the other spelling has are taken from it.
    MergeFields,
    /// Today's spelling wins as a whole.
    OfficialWins,
}

/// A decoded file.
#[derive(Debug)]
pub struct Decoded<T> {
    /// Its content.
    pub config: T,
    /// What its author should know.
    pub warnings: Vec<Warning>,
    moved: Vec<Moved>,
}

/// A key that stood under another spelling.
#[derive(Debug)]
struct Moved {
    official: String,
    accepted: String,
}

impl ConfigSchema {
    /// Decodes a JSON document or the first YAML document. Fails if it is none, has another kind, or has a value that its
    /// field does not accept; paths in errors and warnings are those of the file.
    pub fn decode<T: DeserializeOwned + Serialize>(&self, bytes: &[u8]) -> Result<Decoded<T>, DecodeError> {
        let mut value = parse(bytes)?;
        let (mut warnings, mut moved) = (Vec::new(), Vec::new());
        if let Value::Object(fields) = &mut value {
            self.check_kind(fields)?;
            self.aliases.iter().for_each(|alias| alias.adopt(fields, &mut warnings, &mut moved));
            let without_effect = self.without_effect.iter().filter(|path| take(fields, path).is_some());
            warnings.extend(without_effect.map(|path| Warning::new(*path, WarningKind::NoEffect)));
        }
        let (config, unknown) = decode(value, self.selecting).map_err(|error| match error {
            DecodeError::Value { path, cause } => DecodeError::Value { path: as_written(&moved, &path), cause },
            DecodeError::Syntax(_) | DecodeError::Kind { .. } => error,
        })?;
        let unknown = unknown.into_iter();
        warnings.extend(unknown.map(|UnknownKey { path, nearest }| {
            Warning::new(as_written(&moved, &path), WarningKind::UnknownKey { nearest })
        }));
        Ok(Decoded { config, warnings, moved })
    }

    /// Adds to each warning the line of its key in the file.
    pub fn locate(&self, warnings: &mut [Warning], bytes: &[u8]) {
        let paths: Vec<&str> = warnings.iter().map(|warning| warning.path.as_str()).collect();
        let lines = self.lines(&paths, bytes);
        warnings.iter_mut().zip(lines).for_each(|(warning, line)| warning.line = line);
    }

    /// Returns where a file is wrong: its name, and the line of each key that the error is about. The innermost block
    /// around an absent key stands for it.
    pub fn place(&self, error: &ConfigError, file: &str, bytes: &[u8]) -> String {
        let paths = error.paths();
        let lines = self.lines(&paths.iter().map(String::as_str).collect::<Vec<_>>(), bytes);
        match (paths.as_slice(), lines.as_slice()) {
            ([_], [Some(line)]) => format!("{file}, line {line}"),
            ([] | [_], _) => file.to_owned(),
            (paths, lines) => {
                let known = paths.iter().zip(lines).filter_map(|(path, line)| Some((path, (*line)?)));
                known.fold(file.to_owned(), |place, (path, line)| format!("{place}, line {line}: {path}"))
            }
        }
    }

    fn lines(&self, paths: &[&str], bytes: &[u8]) -> Vec<Option<usize>> {
        let Ok(text) = text_of(bytes) else { return vec![None; paths.len()] };
        let mut moved = Vec::new();
        if let Ok(Value::Object(mut fields)) = parse(bytes) {
            self.aliases.iter().for_each(|alias| alias.adopt(&mut fields, &mut Vec::new(), &mut moved));
        }
        let of_alias = |path: &&str| self.aliases.iter().find(|alias| alias.accepted == *path);
        let written: Vec<String> = paths.iter().map(|path| self.written(path, &moved)).collect();
        // What is said about another spelling as such is about its own key, if the file has it.
        let others = paths.iter().map(|path| of_alias(path).map_or("", |alias| alias.accepted));
        let all: Vec<&str> = others.zip(&written).flat_map(|(other, written)| [other, written.as_str()]).collect();
        let found = lines::find(text, &all);
        let best = found.chunks(2).map(|pair| pair.iter().flatten().min_by_key(|found| found.rest));
        best.map(|found| Some(found?.line)).collect()
    }

    /// Returns the path of the value that counts: a message may have another spelling than the file, and the file both.
    fn written(&self, path: &str, moved: &[Moved]) -> String {
        let official = |alias: &Alias| Some(format!("{}{}", alias.official, below(path, alias.accepted)?));
        let official = self.aliases.iter().find_map(official);
        as_written(moved, official.as_deref().unwrap_or(path))
    }

    /// Accepts missing parts of the identity; any other identity is an error (spec 70 §2 rule 1).
    fn check_kind(&self, fields: &Map<String, Value>) -> Result<(), DecodeError> {
        let text = |key, default| match fields.get(key) {
            None | Some(Value::Null) => Some(default),
            Some(value) => value.as_str().map(|text| if text.is_empty() { default } else { text }),
        };
        let (api_version, kind) = (text("apiVersion", self.api_version), text("kind", self.kind));
        // A value that is no string is accepted here: the decoder reports it together with all other wrong types.
        let (Some(api_version), Some(kind)) = (api_version, kind) else { return Ok(()) };
        if api_version == self.api_version && kind == self.kind {
            return Ok(());
        }
        Err(DecodeError::Kind { kind: kind.to_owned(), api_version: api_version.to_owned() })
    }
}

impl<T> Decoded<T> {
    /// Returns true if the block at this official path was written under another key.
    pub fn was_moved(&self, official: &str) -> bool {
        self.moved.iter().any(|moved| moved.official == official)
    }
}

impl Alias {
    fn adopt(&self, fields: &mut Map<String, Value>, warnings: &mut Vec<Warning>, moved: &mut Vec<Moved>) {
        let Some(block) = take(fields, self.accepted) else { return };
        let Some((section, key)) = section(fields, self.official) else { return };
        let warning = |kind: fn(String) -> WarningKind| Warning::new(self.accepted, kind(self.official.to_owned()));

        let existing = section.entry(key).or_insert(Value::Null);
        // An empty text is an unset one.
        if existing.is_null() || *existing == "" {
            *existing = block;
            if self.is_deprecated {
                warnings.push(warning(|official| WarningKind::Deprecated { official }));
            }
            moved.push(Moved { official: self.official.to_owned(), accepted: self.accepted.to_owned() });
            return;
        }

        warnings.push(warning(|official| WarningKind::BothSpellings { official }));
        match (self.both, existing, block) {
            (BothSpellings::MergeFields, Value::Object(existing), Value::Object(block)) => {
                for (key, value) in block {
                    let slot = existing.entry(key.clone()).or_insert(Value::Null);
                    if slot.is_null() {
                        *slot = value;
                        let (official, accepted) = (join(self.official, &key), join(self.accepted, &key));
                        moved.push(Moved { official, accepted });
                    }
                }
            }
            (BothSpellings::MergeFields | BothSpellings::OfficialWins, _, _) => {}
        }
    }
}

fn as_written(moved: &[Moved], path: &str) -> String {
    let written = |Moved { official, accepted }: &Moved| Some(format!("{accepted}{}", below(path, official)?));
    moved.iter().find_map(written).unwrap_or_else(|| path.to_owned())
}

/// Returns the rest of a path that is that of a block or leads into it.
fn below<'p>(path: &'p str, block: &str) -> Option<&'p str> {
    path.strip_prefix(block).filter(|rest| matches!(rest.chars().next(), None | Some('.' | '[')))
}

/// Removes the value at a path, unless it is absent or `null`.
fn take(fields: &mut Map<String, Value>, path: &str) -> Option<Value> {
    let (section, key) = section(fields, path)?;
    section.remove(key).filter(|value| !value.is_null())
}

/// Returns the object that has the last key of a path, and that key.
fn section<'a, 'p>(fields: &'a mut Map<String, Value>, path: &'p str) -> Option<(&'a mut Map<String, Value>, &'p str)> {
    match path.split_once('.') {
        Some((first, rest)) => section(fields.get_mut(first)?.as_object_mut()?, rest),
        None => Some((fields, path)),
    }
}

/// Parses JSON, or the first YAML document with the rules of YAML 1.1 that Kubernetes keeps (octal numbers, the last of
/// two equal keys wins). Ignores later documents.
fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    let text = text_of(bytes).map_err(|error| DecodeError::Syntax(format!("not UTF-8: {error}")))?;
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }

    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    let mut reader = text.as_bytes();
    let mut documents = serde_saphyr::read_with_options::<_, Value>(&mut reader, options);
    documents.next().unwrap_or(Ok(Value::Null)).map_err(|error| DecodeError::Syntax(error.to_string()))
}

fn text_of(bytes: &[u8]) -> Result<&str, Utf8Error> {
    let text = std::str::from_utf8(bytes)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
