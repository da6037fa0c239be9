//! The first PEM block of a text, found exactly as Go's `encoding/pem` finds it: with another block than the one that the
//! API server and the signer take, a request would say one thing to them and another to us.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

/// Padding is demanded, and bits behind the last octet are not looked at.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// What stands between `BEGIN` and `END`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'a> {
    pub(super) label: &'a [u8],
    pub(super) content: Vec<u8>,
}

/// The first block. Text around it, headers in it and whatever follows are passed over; so are blocks that Go passes
/// over, such as those whose `END` has another label.
pub(super) fn first_block(text: &[u8]) -> Option<Block<'_>> {
    let mut rest = text;
    loop {
        // The first END line, and the last BEGIN in front of it.
        let end = find(rest, END)?;
        let behind = &rest[end + END.len()..];
        let begin = rest[..end].windows(BEGIN.len()).rposition(|window| window == BEGIN);
        let Some(begin) = begin.filter(|&begin| begin == 0 || rest[begin - 1] == b'\n') else {
            rest = behind;
            continue;
        };
        match block(&rest[begin + BEGIN.len()..], end + END.len() - begin - BEGIN.len()) {
            Found::Block(block) => return Some(block),
            Found::Next => rest = behind,
            Found::Nothing => return None,
        }
    }
}

/// What an attempt at one block came to.
enum Found<'a> {
    Block(Block<'a>),
    /// The search goes on behind its END.
    Next,
    /// Its headers have no end.
    Nothing,
}

/// Reads a block from behind its `BEGIN `; `label_at` is where the label of its END line stands.
fn block(text: &[u8], label_at: usize) -> Found<'_> {
    let (line, mut rest) = first_line(text);
    let Some(label) = line.strip_suffix(DASHES) else { return Found::Next };

    let mut has_headers = false;
    loop {
        if rest.is_empty() {
            return Found::Nothing;
        }
        let (line, next) = first_line(rest);
        if !line.contains(&b':') {
            break;
        }
        has_headers = true;
        rest = next;
    }
    // The headers may have run over the END line; without headers the line break before END may be that of BEGIN.
    let content_at = text.len() - rest.len();
    let content_end = label_at - END.len();
    if content_end < content_at && has_headers {
        return if label_at < content_at { Found::Nothing } else { Found::Next };
    }

    let closing = text[label_at..].strip_prefix(label).and_then(|closing| closing.strip_prefix(DASHES));
    if !closing.is_some_and(|closing| first_line(closing).0.is_empty()) {
        return Found::Next;
    }
    let encoded = text.get(content_at..content_end).unwrap_or_default();
    let encoded: Vec<u8> = encoded.iter().copied().filter(|octet| !b" \t\r\n".contains(octet)).collect();
    match BASE64.decode(encoded) {
        Ok(content) => Found::Block(Block { label, content }),
        Err(_) => Found::Next,
    }
}

/// The first line, without blanks at its end, and what follows it.
fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|&octet| octet == b'\n') {
        Some(end) => (text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]), &text[end + 1..]),
        None => (text, &[][..]),
    };
    let blanks = line.iter().rev().take_while(|octet| b" \t".contains(octet)).count();
    (&line[..line.len() - blanks], rest)
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}
