//! Which characters of a text a terminal gets. Texts come from tenants, servers and command lines: they may steer the
//! terminal, hide something, or repeat a token.

use std::{borrow::Cow, fmt};

use kit::{credentials::LEFT_OUT, quote::is_printable};
use process::command_line::UsageError;

/// Characters of a very long remark that are kept at its beginning and at its end.
const LONGEST_PART: usize = 1024;

/// Replaces characters that steer a terminal or reorder text by blanks: names and messages come from outside.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() || is_layout(character) { ' ' } else { character }).collect()
}

/// Escapes what is not printable as JSON and YAML do (`\u001b`), except line feeds, tabs, and with `colours` colour
/// sequences.
pub(crate) fn escaped(text: &str, colours: bool) -> Cow<'_, str> {
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

/// Returns a text for standard error: as [`foreign`], on one line, and with what is not printable as in [`escaped`].
pub(crate) fn remark(text: &str) -> String {
    escaped(&one_line(&foreign(text)), false).into_owned()
}

/// Returns the text of an error that may hold names or an answer from outside: without tokens and without the middle of a
/// very long one.
pub(crate) fn foreign(text: &str) -> String {
    without_middle(&without_tokens(text), LONGEST_PART).into_owned()
}

/// Returns the text of an error as a terminal gets it: without tokens, and with what is not printable escaped as in JSON.
/// Line feeds and tabs stay.
pub fn printable(error: &dyn fmt::Display) -> String {
    escaped(&without_tokens(&error.to_string()), false).into_owned()
}

/// Returns wrong usage as a terminal gets it: words of the command line come from anywhere.
pub(super) fn usage(error: UsageError) -> UsageError {
    let shown = |text: String| printable(&text);
    let quoted = |text: String| without_tokens(&text).into_owned(); // quotes escape what is not printable
    match error {
        UsageError::UnknownCommand { word, program } => UsageError::UnknownCommand { word: quoted(word), program },
        UsageError::LateCommand { word, program } => UsageError::LateCommand { word: shown(word), program },
        UsageError::Tool(text) => UsageError::Tool(shown(text)),
        UsageError::UnknownFlag(flag) => UsageError::UnknownFlag(shown(flag)),
        UsageError::EarlyFlag { flag, command, program } => {
            UsageError::EarlyFlag { flag: shown(flag), command: shown(command), program }
        }
        UsageError::MissingValue(flag) => UsageError::MissingValue(shown(flag)),
        UsageError::InvalidValue { flag, value, cause } => {
            UsageError::InvalidValue { flag: shown(flag), value: quoted(value), cause: shown(cause) }
        }
    }
}

/// Returns the text, or the first and last `part` characters of a very long one: a path is at the beginning, and what is
/// wrong or to be done at the end.
pub(crate) fn without_middle(text: &str, part: usize) -> Cow<'_, str> {
    let end = text.char_indices().rev().nth(part.saturating_sub(1)).map(|(end, _)| end);
    let begin = text.char_indices().nth(part).map(|(begin, _)| begin);
    match (begin, end) {
        (Some(begin), Some(end)) if begin < end => Cow::Owned(format!("{}…{}", &text[..begin], &text[end..])),
        _ => Cow::Borrowed(text),
    }
}

/// Leaves JSON Web Tokens out of a text: an API server may repeat that of a request, or a user gives one in the place of a
/// path.
fn without_tokens(text: &str) -> Cow<'_, str> {
    const BEGINNING: &str = "eyJ";

    let is_of_token = |character: char| character.is_ascii_alphanumeric() || "-_.=".contains(character);
    let mut kept = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find(BEGINNING) {
        let (before, token) = rest.split_at(begin);
        let length = token.find(|character| !is_of_token(character)).unwrap_or(token.len());
        // The end of another word may look like the beginning of a token, but not like a whole one.
        let is_of_word = before.ends_with(|last: char| last.is_ascii_alphanumeric());
        let is_token = token[..length].matches('.').count() >= if is_of_word { 2 } else { 1 };
        kept.push_str(before);
        kept.push_str(if is_token { LEFT_OUT } else { &token[..length] });
        rest = &token[length..];
    }
    if rest.len() == text.len() { text.into() } else { (kept + rest).into() }
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

#[cfg(test)]
mod tests {
    use std::io;

    use process::command_line::LoadError;

    use super::*;

    const TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln-_";

    fn usage_errors(word: &str) -> [UsageError; 7] {
        let (word, program) = (|| word.to_owned(), "x");
        [
            UsageError::UnknownCommand { word: word(), program },
            UsageError::LateCommand { word: word(), program },
            UsageError::Tool(word()),
            UsageError::UnknownFlag(word()),
            UsageError::EarlyFlag { flag: word(), command: word(), program },
            UsageError::MissingValue(word()),
            UsageError::InvalidValue { flag: word(), value: word(), cause: word() },
        ]
    }

    #[test]
    fn usage_error_has_no_control_characters_and_no_tokens() {
        for error in usage_errors(&format!("a\x1b[2J\u{202e}b%3D{TOKEN}")) {
            let text = usage(error).to_string();

            assert!(!text.contains(['\x1b', '\u{202e}']) && !text.contains("c2ln"), "{text:?}");
            assert!(text.contains("[2J") && text.contains(LEFT_OUT), "{text:?}");
        }
    }

    /// spec 70 §1.1
    #[test]
    fn usage_error_about_usual_words_is_as_it_was() {
        for error in usage_errors("--config=/a b/c.yaml \"ä\"") {
            assert_eq!(usage(error.clone()), error);
        }
    }

    #[test]
    fn start_error_has_no_control_characters_and_no_tokens() {
        let error = |path: &str| LoadError::Read(io::Error::other(format!("open {path}: no such file")));
        let read = |path| printable(&error(path));

        assert_eq!(read("a\x1b[2J"), "error reading config file: open a\\u001b[2J: no such file");
        assert_eq!(read(TOKEN), format!("error reading config file: open {LEFT_OUT}: no such file"));
        assert_eq!(read("/a/config.yaml"), error("/a/config.yaml").to_string());
    }

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

    #[test]
    fn remark_is_one_line_of_visible_characters() {
        let table = [
            ("a\nb\tc\x1b[2J\u{202e}d", "a b c [2J d"),
            ("a\u{200b}b\u{feff}\u{e0041}", "a\\u200bb\\ufeff\\udb40\\udc41"),
            ("é — 日本 👩\u{200d}🔧", "é — 日本 👩\u{200d}🔧"),
        ];

        for (text, expected) in table {
            assert_eq!(remark(text), expected);
        }
    }

    #[test]
    fn remark_leaves_tokens_out() {
        let token = TOKEN;
        let table = [
            (format!("cannot read {token}: no such file"), format!("cannot read {LEFT_OUT}: no such file")),
            (format!("Bearer \"{token}\" or ./{token}"), format!("Bearer \"{LEFT_OUT}\" or ./{LEFT_OUT}")),
            (format!("a%3D{token}&b x{token}"), format!("a%3D{LEFT_OUT}&b x{LEFT_OUT}")),
            ("eyJ keyJ.a eyJabc".to_owned(), "eyJ keyJ.a eyJabc".to_owned()),
        ];

        for (text, expected) in table {
            assert_eq!(remark(&text), expected);
        }
    }

    #[test]
    fn remark_leaves_out_a_token_that_is_longer_than_it() {
        let token = format!("a eyJ{0}.{0}.{0} b", "x".repeat(5_000));

        assert_eq!(remark(&token), format!("a {LEFT_OUT} b"));
    }

    #[test]
    fn remark_that_is_very_long_keeps_its_beginning_and_its_end() {
        let text = format!("a{}b", "ä".repeat(5_000));

        let part = "ä".repeat(LONGEST_PART - 1);
        assert_eq!(remark(&text), format!("a{part}…{part}b"));
        assert_eq!(without_middle(&"ä".repeat(6), 3), "ä".repeat(6));
        assert_eq!(without_middle(&"ä".repeat(7), 3), format!("{0}…{0}", "ä".repeat(3)));
    }

    #[test]
    fn control_and_layout_characters_become_spaces() {
        let table = [
            ("äöü — שלום 日本 👩\u{200d}🔧", "äöü — שלום 日本 👩\u{200d}🔧"),
            ("a\r\n\t\u{1b}[2J\u{7f}\u{9b}1m", "a    [2J  1m"),
            ("\u{61c}\u{200e}\u{200f}|\u{2028}\u{2029}|", "   |  |"),
            ("\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}|\u{2066}\u{2067}\u{2068}\u{2069}|", "     |    |"),
        ];

        for (text, expected) in table {
            assert_eq!(one_line(text), expected);
        }
    }
}
