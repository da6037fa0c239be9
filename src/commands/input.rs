use std::{
    collections::BTreeMap,
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use kit::credentials::without_credentials;
use serde_json::Value;

use super::decoding::Decoding;
use crate::{
    api::meta::field::formats::dns_subdomain,
    producer::decode::{DecodeError, DuplicateKey, LabelWarning, Limits, SecretData},
};

const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
pub(super) const STDIN: &str = "-";
/// Remedy for a template.
pub(super) const RENDER: &str = "render the template first, e.g. with helm template";
/// How many duplicate keys of a document are reported.
pub(super) const MOST_DUPLICATES: usize = 20;

pub(super) struct Source {
    pub(super) name: Arc<str>,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error("cannot read {}: {error}", without_credentials(path))]
    Read { path: String, error: io::Error },
    #[error(
        "{} is not a regular file, and reading it may never end — give the content on standard input, with -",
        without_credentials(path)
    )]
    NoFile { path: String },
    #[error("{} is larger than {limit} bytes — give smaller files", without_credentials(path))]
    TooLarge { path: String, limit: usize },
    #[error(
        "the folder {} has no *.yaml, *.yml or *.json — name a folder or file with manifests",
        without_credentials(path)
    )]
    Empty { path: String },
    #[error("the standard input is named twice — name - once")]
    StdinTwice,
}

/// Where a document is: `file`, or `file:document` if the file has several. Documents count from 0, as in the conditions
/// of ManagedResources.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InputLocation {
    pub(super) file: Arc<str>,
    pub(super) document: Option<usize>, // counted from 0; `None` if the file has one document
}

pub(super) struct InputDocument {
    pub(super) location: InputLocation,
    pub(super) content: Result<Value, Unreadable>,
    pub(super) warnings: Vec<LabelWarning>,
    pub(super) duplicate_keys: Vec<DuplicateKey>,
}

/// Why a document cannot be read. The text holds positions, never content.
pub(super) struct Unreadable {
    text: String,
    template_line: Option<usize>,
}

/// Reads files, and folders recursively in sorted order.
pub(super) fn read(paths: &[String], stdin: &mut dyn Read) -> Result<Vec<Source>, InputError> {
    refuse_stdin_twice(paths)?;
    let mut sources = Vec::new();
    for path in paths {
        if path == STDIN {
            push(Source { name: STDIN.into(), bytes: bounded(STDIN, stdin)? }, &mut sources)?;
            continue;
        }
        let before = sources.len();
        let at = Path::new(path);
        if at.is_dir() {
            read_folder(at, &mut sources)?;
            if sources.len() == before {
                return Err(InputError::Empty { path: path.clone() });
            }
        } else {
            read_file(at, &mut sources)?;
        }
    }
    Ok(sources)
}

/// Standard input can be read once only. Paths that are read in several calls are checked together.
pub(super) fn refuse_stdin_twice<'a>(paths: impl IntoIterator<Item = &'a String>) -> Result<(), InputError> {
    if paths.into_iter().filter(|path| *path == STDIN).count() > 1 { Err(InputError::StdinTwice) } else { Ok(()) }
}

/// Skips links to folders, because they may form a cycle.
fn read_folder(folder: &Path, sources: &mut Vec<Source>) -> Result<(), InputError> {
    let failed = |error| InputError::Read { path: folder.display().to_string(), error };
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.is_symlink() {
                read_folder(&path, sources)?;
            }
        } else if is_read_from_folders(&path) {
            read_file(&path, sources)?;
        }
    }
    Ok(())
}

pub(super) fn is_read_from_folders(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}

/// Reads regular files and the shell's pipes (`<(…)` is `/dev/fd/63`). Reading any other pipe may block forever.
fn read_file(path: &Path, sources: &mut Vec<Source>) -> Result<(), InputError> {
    let name = path.display().to_string();
    let failed = |error| InputError::Read { path: name.clone(), error };
    let is_of_process = ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder));
    if !is_of_process && !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(InputError::NoFile { path: name });
    }
    let bytes = bounded(&name, &mut File::open(path).map_err(failed)?)?;
    push(Source { name: name.into(), bytes }, sources)
}

/// Bounds the size of all files together like that of a bundle.
fn push(source: Source, sources: &mut Vec<Source>) -> Result<(), InputError> {
    let limit = Limits::default().bundle;
    sources.push(source);
    let size: usize = sources.iter().map(|source| source.bytes.len()).sum();
    if size > limit { Err(InputError::TooLarge { path: "the whole input".to_owned(), limit }) } else { Ok(()) }
}

fn bounded(name: &str, reader: &mut dyn Read) -> Result<Vec<u8>, InputError> {
    let limit = Limits::default().decompressed;
    let mut bytes = Vec::new();
    let at_most = u64::try_from(limit).unwrap_or(u64::MAX - 1) + 1;
    let read = reader.take(at_most).read_to_end(&mut bytes);
    read.map_err(|error| InputError::Read { path: name.to_owned(), error })?;
    if bytes.len() > limit { Err(InputError::TooLarge { path: name.to_owned(), limit }) } else { Ok(bytes) }
}

/// Returns the documents of all sources, which share the bounds of one bundle.
pub(super) fn documents(sources: &[Source]) -> impl Iterator<Item = InputDocument> {
    let mut decoding = Decoding::with_duplicate_keys(MOST_DUPLICATES);
    sources.iter().flat_map(move |source| source.documents(&mut decoding))
}

impl Source {
    fn documents(&self, decoding: &mut Decoding) -> Vec<InputDocument> {
        let data = BTreeMap::from([("file".to_owned(), self.bytes.clone())]);
        let secret = SecretData { namespace: "", name: &self.name, data: &data };
        let at = |index| InputLocation { file: self.name.clone(), document: Some(index) };
        let mut documents = Vec::new();
        decoding.decode(secret, |read| {
            documents.push(match read {
                Ok(document) => InputDocument {
                    location: at(document.index),
                    content: Ok(document.manifest),
                    warnings: document.warnings,
                    duplicate_keys: document.duplicate_keys,
                },
                Err(error) => InputDocument {
                    location: at(error.index),
                    content: Err(Unreadable::from(error)),
                    warnings: Vec::new(),
                    duplicate_keys: Vec::new(),
                },
            });
        });
        if let [one] = documents.as_mut_slice()
            && one.location.document == Some(0)
        {
            one.location.document = None;
        }
        documents
    }
}

impl Unreadable {
    /// What to do about it.
    pub(super) fn remedy(&self) -> &'static str {
        match self.template_line {
            Some(_) => RENDER,
            None => "correct the document",
        }
    }
}

impl From<DecodeError> for Unreadable {
    fn from(error: DecodeError) -> Self {
        Self { text: error.text, template_line: error.template_line }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match self.template_line {
            Some(line) => write!(f, "; line {line} has {{{{ … }}}}: it is a template, such as those of Helm"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for InputLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.document.map_or(Ok(()), |document| write!(f, ":{document}"))
    }
}

pub(super) fn is_dns_subdomain(text: &str) -> bool {
    dns_subdomain(text).is_empty()
}
