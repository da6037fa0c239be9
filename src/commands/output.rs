//! Writes files (all or nothing), and keeps texts from steering the terminal.

use std::{
    borrow::Cow,
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use kit::quote::is_printable;

use super::input::{STDIN, is_read_from_folders};

#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error("cannot write {path}: {error}")]
    Write { path: String, error: io::Error },
    #[error("{path} is a file — name a directory")]
    NoFolder { path: String },
    #[error("{path} is read as input and would be overwritten — name another file for the output")]
    Input { path: String },
    #[error(
        "{path} is in the folder {folder}, which is read as input: the next run would read what this one wrote — name a file \
         outside of it"
    )]
    InFolder { path: String, folder: String },
}

/// Replaces characters that steer a terminal or reorder text by blanks: names and messages come from outside.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() || is_layout(character) { ' ' } else { character }).collect()
}

/// Escapes what is not printable as JSON and YAML do (`\u001b`), except line feeds, tabs, and with `colours` colour
/// sequences.
pub(super) fn escaped(text: &str, colours: bool) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = if colours { colour_length(rest) } else { 0 };
        let length = colour.max(character.len_utf8());
        if colour > 0 || is_shown(character) {
            safe.push_str(&rest[..length]);
        } else {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        }
        rest = &rest[length..];
    }
    safe.into()
}

/// Whether a terminal may get it. Spaces and the joiners of scripts and emoji have a width, or none, but steer nothing.
fn is_shown(character: char) -> bool {
    let is_blank = character.is_whitespace() && !character.is_control() && !is_layout(character);
    is_printable(character) || is_blank || matches!(character, '\n' | '\t' | '\u{200c}' | '\u{200d}')
}

fn colour_length(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let length = parameters.find(|character: char| !character.is_ascii_digit() && character != ';');
    length.filter(|length| parameters[*length..].starts_with('m')).map_or(0, |length| length + 3)
}

/// Whether a character breaks lines or sets text direction (Unicode UAX #9) without being a control character.
fn is_layout(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Refuses an output file that is among the inputs, or that the next run would read as input. Call it before reading.
pub(super) fn check(path: &str, inputs: &[String]) -> Result<(), OutputError> {
    let location = location(Path::new(path));
    for input in inputs.iter().filter(|input| *input != STDIN) {
        let Ok(input_location) = std::fs::canonicalize(input) else { continue };
        if input_location == location {
            return Err(OutputError::Input { path: path.to_owned() });
        }
        if input_location.is_dir() && location.starts_with(&input_location) && is_read_from_folders(&location) {
            return Err(OutputError::InFolder { path: path.to_owned(), folder: input.clone() });
        }
    }
    Ok(())
}

/// Writes a file that only its owner may read, all or nothing. Pipes and devices are written to directly.
pub(super) fn write(path: &str, text: &str) -> Result<(), OutputError> {
    let failed = |error| OutputError::Write { path: path.to_owned(), error };
    let location = location(Path::new(path));
    if std::fs::metadata(&location).is_ok_and(|metadata| !metadata.is_file()) {
        let mut stream = OpenOptions::new().write(true).open(&location).map_err(failed)?;
        return stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).map_err(failed);
    }
    whole(&location, text).map_err(failed)
}

fn whole(location: &Path, text: &str) -> io::Result<()> {
    let folder = location.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(location).map_err(|error| error.error)?;
    // Syncing the folder makes the name durable; not all file systems support it.
    File::open(folder).and_then(|folder| folder.sync_all()).ok();
    Ok(())
}

/// Resolves links. The file itself need not exist yet.
fn location(path: &Path) -> PathBuf {
    if let Ok(location) = std::fs::canonicalize(path) {
        return location;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (std::fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_output_has_no_control_sequences() {
        let table = [
            ("a\tb\nc é\u{a0}👩\u{200d}🔧", false, "a\tb\nc é\u{a0}👩\u{200d}🔧"),
            ("a\x1b[2Jb\rc\u{9b}d\u{7f}", false, "a\\u001b[2Jb\\u000dc\\u009bd\\u007f"),
            ("\u{202e}a\u{2028}\u{e0041}", false, "\\u202ea\\u2028\\udb40\\udc41"),
            ("\x1b[31ma\x1b[0m", false, "\\u001b[31ma\\u001b[0m"),
            ("\x1b[31ma\x1b[0m\x1b[1;32m", true, "\x1b[31ma\x1b[0m\x1b[1;32m"),
            ("\x1b[31ma\x1b[2J\x1b]0;b\x07\x1b[", true, "\x1b[31ma\\u001b[2J\\u001b]0;b\\u0007\\u001b["),
        ];

        for (text, colours, expected) in table {
            assert_eq!(escaped(text, colours), expected, "{text:?}");
        }
    }
}
