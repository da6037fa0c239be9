//! From bytes to one JSON document of the right kind, with other spellings of keys moved to the official keys.

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{DecodeError, Warning, WarningKind, decode::join};

/// Group and version of the component configuration.
pub const API_VERSION: &str = "resourcemanager.config.gardener.cloud/v1alpha1";
/// Kind of the component configuration.
pub const KIND: &str = "ResourceManagerConfiguration";

pub(super) struct ConfigDocument {
    pub(super) value: Value,
    pub(super) warnings: Vec<Warning>,
    pub(super) moved: Moved,
}

/// Moved paths: the official path, and the path in the file.
#[derive(Default)]
pub(super) struct Moved(Vec<(String, String)>);

/// Another accepted spelling of a block (spec 70 §2.2).
struct Alias {
    section: &'static str,
    accepted: &'static str,
    official: &'static str,
    both: Both,
    /// Whether its use gives a warning. The user documentation has `managedResources`, so that gives none.
    deprecated: bool,
}

/// What happens when both spellings exist.
enum Both {
    /// Fields that only the accepted spelling has are taken from it (spec 10 §3.1).
    MergeFields,
    /// The official block wins as a whole (spec 41, configuration alias).
    OfficialBlock,
}

const ALIASES: [Alias; 5] = [
    Alias {
        section: "controllers",
        accepted: "managedResources",
        official: "managedResource",
        both: Both::MergeFields,
        deprecated: false,
    },
    Alias {
        section: "controllers",
        accepted: "node",
        official: "nodeCriticalComponents",
        both: Both::OfficialBlock,
        deprecated: true,
    },
    Alias {
        section: "controllers",
        accepted: "kubeletCSRApprover",
        official: "csrApprover",
        both: Both::OfficialBlock,
        deprecated: true,
    },
    Alias {
        section: "controllers",
        accepted: "tokenValidator",
        official: "tokenInvalidator",
        both: Both::OfficialBlock,
        deprecated: true,
    },
    Alias {
        section: "webhooks",
        accepted: "tokenValidator",
        official: "tokenInvalidator",
        both: Both::OfficialBlock,
        deprecated: true,
    },
];

/// Blocks of earlier releases without a successor.
const WITHOUT_EFFECT: [(&str, &str); 3] =
    [("controllers", "rootCAPublisher"), ("controllers", "secret"), ("webhooks", "podZoneAffinity")];

impl ConfigDocument {
    /// Reads the JSON document or the first YAML document, checks its kind and moves aliases.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut document = Self { value: parse(bytes)?, warnings: Vec::new(), moved: Moved::default() };
        if let Value::Object(fields) = &mut document.value {
            check_kind(fields)?;
            for alias in &ALIASES {
                alias.adopt(fields, &mut document.warnings, &mut document.moved.0);
            }
            for (section, key) in WITHOUT_EFFECT {
                if take_block(fields, section, key).is_some() {
                    document.warnings.push(Warning::new(join(section, key), WarningKind::NoEffect));
                }
            }
        }
        Ok(document)
    }
}

impl Moved {
    /// Returns true if the block at this official path was written under another key.
    pub(super) fn has(&self, official: &str) -> bool {
        self.0.iter().any(|(now, _)| now == official)
    }

    pub(super) fn as_written(&self, path: &str) -> String {
        let written = |(now, before): &(String, String)| {
            let rest = path.strip_prefix(now.as_str())?;
            matches!(rest.chars().next(), None | Some('.' | '[')).then(|| format!("{before}{rest}"))
        };
        self.0.iter().find_map(written).unwrap_or_else(|| path.to_owned())
    }
}

impl Alias {
    fn adopt(&self, fields: &mut Map<String, Value>, warnings: &mut Vec<Warning>, moved: &mut Vec<(String, String)>) {
        let Some(block) = take_block(fields, self.section, self.accepted) else { return };
        let (official, accepted) = (join(self.section, self.official), join(self.section, self.accepted));
        let Some(section) = fields.get_mut(self.section).and_then(Value::as_object_mut) else { return };

        let existing = section.entry(self.official).or_insert(Value::Null);
        if existing.is_null() {
            *existing = block;
            if self.deprecated {
                warnings.push(Warning::new(accepted.clone(), WarningKind::Deprecated { official: official.clone() }));
            }
            moved.push((official, accepted));
            return;
        }

        warnings.push(Warning::new(accepted.clone(), WarningKind::BothSpellings { official: official.clone() }));
        match (&self.both, existing, block) {
            (Both::MergeFields, Value::Object(existing), Value::Object(block)) => {
                for (key, value) in block {
                    let slot = existing.entry(key.clone()).or_insert(Value::Null);
                    if slot.is_null() {
                        *slot = value;
                        moved.push((join(&official, &key), join(&accepted, &key)));
                    }
                }
            }
            (Both::MergeFields | Both::OfficialBlock, _, _) => {}
        }
    }
}

fn take_block(fields: &mut Map<String, Value>, section: &str, key: &str) -> Option<Value> {
    fields.get_mut(section)?.as_object_mut()?.remove(key).filter(|block| !block.is_null())
}

/// Parses JSON, or the first YAML document with the rules of YAML 1.1 that Kubernetes keeps (octal numbers, the last of
/// two equal keys wins). Ignores later documents.
fn parse(bytes: &[u8]) -> Result<Value, DecodeError> {
    let text = std::str::from_utf8(bytes).map_err(|error| DecodeError::Syntax(format!("not UTF-8: {error}")))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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

/// Fills in missing parts of the identity; any other identity is an error (spec 70 §2 rule 1).
fn check_kind(fields: &Map<String, Value>) -> Result<(), DecodeError> {
    let text = |key, default| match fields.get(key) {
        None | Some(Value::Null) => Some(default),
        Some(value) => value.as_str().map(|text| if text.is_empty() { default } else { text }),
    };
    // A value that is no string is accepted here: the decoder reports it together with all other wrong types.
    let (Some(api_version), Some(kind)) = (text("apiVersion", API_VERSION), text("kind", KIND)) else { return Ok(()) };
    if api_version == API_VERSION && kind == KIND {
        return Ok(());
    }
    Err(DecodeError::Kind { kind: kind.to_owned(), api_version: api_version.to_owned() })
}
