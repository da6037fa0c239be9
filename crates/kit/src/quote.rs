//! Text in double quotes, as in condition messages (spec 20 §10.2).

use std::{borrow::Cow, fmt::Write};

/// Most characters of a foreign text that are shown. Names of Kubernetes are shorter.
const SHOWN_CHARACTERS: usize = 512;

/// A foreign text, cut by [`cut`], in quotes.
pub fn shown(text: &str) -> String {
    quoted(&cut(text))
}

/// The text, or the beginning of a very long one, for messages, log records and whatever must stay small.
pub fn cut(text: &str) -> Cow<'_, str> {
    cut_after(SHOWN_CHARACTERS, text)
}

/// The text, or its first `characters` characters.
pub fn cut_after(characters: usize, text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(characters) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text, or the beginning of a longer one. The result has at most `bytes` bytes, with the mark that it was cut.
pub fn cut_within(bytes: usize, text: &str) -> Cow<'_, str> {
    const MARK: &str = "…";

    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    Cow::Owned(format!("{}{MARK}", &text[..end]))
}

/// The text in quotes. Escapes `"`, `\`, control characters and other invisible characters.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match short_escape(character) {
            Some(escape) => quoted.extend(['\\', escape]),
            None if is_printable(character) => quoted.push(character),
            None => {
                let code = u32::from(character);
                // Writing to a String cannot fail.
                let _ = match code {
                    0..0x20 | 0x7F => write!(quoted, "\\x{code:02x}"),
                    0x1_0000.. => write!(quoted, "\\U{code:08x}"),
                    _ => write!(quoted, "\\u{code:04x}"),
                };
            }
        }
    }
    quoted.push('"');
    quoted
}

fn short_escape(character: char) -> Option<char> {
    Some(match character {
        '"' | '\\' => character,
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        _ => return None,
    })
}

/// Returns true for a visible character: no control or format character, no space except U+0020, no private use.
/// Unassigned code points count as visible, because their set changes with each edition of Unicode.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return (' '..='~').contains(&character);
    }
    let hidden = matches!(u32::from(character),
        0xAD | 0x0600..=0x0605 | 0x061C | 0x06DD | 0x070F | 0x0890 | 0x0891 | 0x08E2 | 0x180E
        | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0xE000..=0xF8FF | 0xFEFF | 0xFFF9..=0xFFFB
        | 0xFFFE | 0xFFFF | 0x1_10BD | 0x1_10CD | 0x1_3430..=0x1_343F | 0x1_BCA0..=0x1_BCA3
        | 0x1_D173..=0x1_D17A | 0xE_0000..=0xE_0FFF | 0xF_0000..=0x10_FFFF);
    !(character.is_control() || character.is_whitespace() || hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_text_keeps_its_beginning() {
        assert_eq!((&*cut_after(2, "äöü"), &*cut_after(3, "äöü"), &*cut("")), ("äö…", "äöü", ""));
        assert_eq!(shown(&"\n".repeat(600)), format!("\"{}…\"", "\\n".repeat(512)));
        assert_eq!((&*cut_within(6, "äöü"), &*cut_within(5, "äöü"), &*cut_within(0, "")), ("äöü", "ä…", ""));
    }

    #[test]
    fn quoted_text_escapes_invisible_characters() {
        for (text, expected) in [
            ("", r#""""#),
            ("web-1", r#""web-1""#),
            ("it's", r#""it's""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("\u{80}\u{a0}\u{ad}\u{200b}\u{2028}\u{3000}\u{feff}", r#""\u0080\u00a0\u00ad\u200b\u2028\u3000\ufeff""#),
            ("\u{e000}\u{e0001}\u{10ffff}", r#""\ue000\U000e0001\U0010ffff""#),
            ("ä€😀", "\"ä€😀\""),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
