//! Corrects what Go's YAML parser accepts and ours refuses, before a second reading:
//! * lines of a quoted scalar that are not indented. Blanks there have no meaning, so they are added;
//! * a byte order mark before the content, or at the start of a line with only a comment. It is removed.
//!
//! One scan of the text finds all of them, so a document is read at most twice. The scan knows of YAML only where
//! scalars and comments begin and end. Therefore [`Edits`] are compared with the scalars that the parser finds in the
//! repaired text; on a mismatch the document stays refused.

use serde_saphyr::granit_parser::{ScalarStyle, Span};

const MARK: &[u8] = "\u{feff}".as_bytes();

/// Largest growth of a text. Lines get as many blanks as there are before their key, so only very short lines at keys
/// far to the right come near.
const MOST_GROWTH: usize = 64;

pub(super) struct Repaired {
    pub(super) text: String,
    pub(super) edits: Edits,
}

/// Edits of a text's lines, in order, and how many of them are confirmed.
#[derive(Default)]
pub(super) struct Edits {
    list: Vec<Edit>,
    confirmed: usize,
}

struct Edit {
    /// From 1, as the parser counts.
    line: u32,
    /// Added blanks; 0 means that a byte order mark was removed.
    added: u32,
}

struct TooLarge;

/// Repairs a document. Returns `None` if it needs no such repair, or if text and edits would exceed `limit` bytes
/// together.
pub(super) fn repair(text: &str, limit: usize) -> Option<Repaired> {
    let limit = limit.min(text.len().saturating_mul(MOST_GROWTH));
    let mut reader = Reader {
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
        line_start: 0,
        parent: -1,
        flow: 0,
        plain_goes_on: false,
        has_content: false,
        out: Vec::new(),
        written: 0,
        edits: Vec::new(),
        limit,
    };
    reader.run().ok()?;
    let Reader { mut out, written, edits, bytes, .. } = reader;
    out.extend_from_slice(&bytes[written..]);
    // Only blanks were added and only whole characters removed, so it is still UTF-8.
    let text = String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    (!edits.is_empty()).then_some(Repaired { text, edits: Edits { list: edits, confirmed: 0 } })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    /// Column of the innermost `-`, `?` or key in block style; its content is further right.
    parent: isize,
    /// Open brackets and braces.
    flow: usize,
    /// A plain scalar reached the end of the last line.
    plain_goes_on: bool,
    /// There was more than comments and separators.
    has_content: bool,
    /// The repaired text up to `written`, an offset in the original.
    out: Vec<u8>,
    written: usize,
    edits: Vec<Edit>,
    limit: usize,
}

impl Edits {
    pub(super) fn size(&self) -> usize {
        self.list.len() * size_of::<Edit>()
    }

    /// Compares with the next scalar of the repaired text. Returns true if the edits up to it are right: added blanks
    /// lie in quoted scalars, and byte order marks lay in none.
    pub(super) fn agree(&mut self, style: ScalarStyle, span: &Span) -> bool {
        let is_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
        let (start, end) = (span.start.line(), span.end.line());
        while let Some(edit) = self.list.get(self.confirmed) {
            let line = edit.line as usize;
            // The end of a block scalar is the start of the next line.
            if line > end || line == end && span.end.col() == 0 {
                break;
            }
            let is_within = line > start;
            if is_within != (edit.added > 0) || is_within && !is_quoted {
                return false;
            }
            self.confirmed += 1;
        }
        true
    }

    /// Returns true if no blanks were added after the last scalar.
    pub(super) fn agree_at_end(&self) -> bool {
        self.list[self.confirmed..].iter().all(|edit| edit.added == 0)
    }

    pub(super) fn original_column(&self, line: usize, column: usize) -> usize {
        let found = self.list.binary_search_by_key(&line, |edit| edit.line as usize);
        let added = found.map_or(0, |index| self.list[index].added as usize);
        column.saturating_sub(added).max(1)
    }
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), TooLarge> {
        while self.at < self.bytes.len() {
            self.skip_mark()?;
            let rest = &self.bytes[self.at..];
            let marker = if self.at == self.line_start { rest.get(..3) } else { None };
            let is_marker = rest.get(3).is_none_or(|&byte| is_blank(byte) || is_break(byte));
            match marker {
                // Everything after it is ignored.
                Some(b"...") if is_marker => return Ok(()),
                Some(b"---") if is_marker => {
                    (self.parent, self.flow, self.plain_goes_on) = (-1, 0, false);
                    self.at += 3;
                }
                _ if rest.starts_with(b"%") && !self.has_content => self.skip_line(),
                _ => {}
            }
            self.line_of_tokens()?;
        }
        Ok(())
    }

    /// Removes a byte order mark at the start of a line, unless content follows that is not the first.
    fn skip_mark(&mut self) -> Result<(), TooLarge> {
        let rest = &self.bytes[self.at..];
        if self.flow > 0 || !rest.starts_with(MARK) {
            return Ok(());
        }
        let next = rest[MARK.len()..].iter().copied().find(|&byte| !is_blank(byte));
        if next.is_none_or(|byte| byte == b'#' || is_break(byte)) || !self.has_content {
            self.write(self.at, 0)?;
            self.at += MARK.len();
            (self.written, self.line_start) = (self.at, self.at);
        }
        Ok(())
    }

    fn line_of_tokens(&mut self) -> Result<(), TooLarge> {
        let goes_on = std::mem::take(&mut self.plain_goes_on);
        self.skip_blanks();
        match self.peek().filter(|&byte| !is_break(byte)) {
            None => self.plain_goes_on = goes_on,
            Some(byte) if goes_on => {
                let continues = if self.flow > 0 { !is_flow_indicator(byte) } else { self.column() > self.parent };
                if continues && byte != b'#' {
                    self.plain(None);
                    self.skip_blanks();
                }
            }
            Some(_) => {}
        }
        let mut node = None; // the first property or node since the last indicator: the column of a key
        while !self.is_at_end_of_line() {
            let (byte, column) = (self.bytes[self.at], self.column());
            let ends_here = self.bytes.get(self.at + 1).is_none_or(|&next| is_blank(next) || is_break(next));
            if byte == b'#' && self.is_after_blank() {
                self.skip_line();
                break;
            }
            self.has_content = true;
            match byte {
                b'-' | b'?' if ends_here && self.flow == 0 => {
                    (self.parent, node) = (column, None);
                    self.at += 1;
                }
                b':' if self.flow > 0 || ends_here => {
                    if self.flow == 0 {
                        self.parent = node.take().unwrap_or(column);
                    }
                    self.at += 1;
                }
                b'[' | b'{' => {
                    node = node.or(Some(column).filter(|_| self.flow == 0));
                    self.flow += 1;
                    self.at += 1;
                }
                b']' | b'}' => {
                    self.flow = self.flow.saturating_sub(1);
                    self.at += 1;
                }
                b',' if self.flow > 0 => self.at += 1,
                b'&' | b'*' | b'!' => {
                    node = node.or(Some(column));
                    self.word();
                }
                b'|' | b'>' if self.flow == 0 => self.block_scalar(),
                b'"' | b'\'' => {
                    node = node.or(Some(column));
                    self.quoted(byte)?;
                }
                _ => self.plain(Some(node.take().unwrap_or(column))),
            }
            self.skip_blanks();
        }
        self.next_line();
        Ok(())
    }

    /// A property or an alias.
    fn word(&mut self) {
        while let Some(byte) = self.peek() {
            let ends = is_blank(byte) || is_break(byte) || self.flow > 0 && is_flow_indicator(byte);
            if ends {
                break;
            }
            self.at += 1;
        }
    }

    /// Reads a plain scalar to the end of this line, and the `:` after it if it is a key. `column` is where a key
    /// begins, or `None` if it began on another line.
    fn plain(&mut self, column: Option<isize>) {
        while let Some(byte) = self.peek().filter(|&byte| !is_break(byte)) {
            let next = self.bytes.get(self.at + 1).copied();
            let is_value = byte == b':'
                && next.is_none_or(|next| is_blank(next) || is_break(next) || self.flow > 0 && is_flow_indicator(next));
            if is_value {
                if let Some(column) = column.filter(|_| self.flow == 0) {
                    self.parent = column;
                }
                self.at += 1;
                return;
            }
            if byte == b'#' && self.is_after_blank() || self.flow > 0 && is_flow_indicator(byte) {
                return;
            }
            self.at += 1;
        }
        self.plain_goes_on = true;
    }

    /// Reads a literal or folded scalar: its header, and the lines with the indentation of the first.
    fn block_scalar(&mut self) {
        let header = self.at + 1;
        self.skip_line();
        let header = &self.bytes[header..self.at];
        let given = header.iter().take_while(|byte| !is_blank(**byte)).find(|byte| byte.is_ascii_digit());
        let mut indent = given.map(|digit| self.parent.max(0) + isize::from(digit - b'0'));
        loop {
            let (at, line, line_start) = (self.at, self.line, self.line_start);
            self.next_line();
            self.skip_spaces();
            if self.at >= self.bytes.len() {
                return;
            }
            if !self.is_at_end_of_line() {
                let least = *indent.get_or_insert(self.column().max(self.parent + 1));
                if self.column() < least {
                    // The last line break belongs to the line before.
                    (self.at, self.line, self.line_start) = (at, line, line_start);
                    return;
                }
            }
            self.skip_line();
        }
    }

    /// Reads a quoted scalar. Its further lines get the blanks that they lack.
    fn quoted(&mut self, quote: u8) -> Result<(), TooLarge> {
        self.at += 1;
        while let Some(byte) = self.peek() {
            if byte == quote {
                self.at += 1;
                if quote == b'"' || self.peek() != Some(quote) {
                    return Ok(());
                }
                self.at += 1;
            } else if is_break(byte) {
                self.next_line();
                self.indent()?;
            } else if byte == b'\\' && quote == b'"' {
                self.at += 1;
                // An escaped line break is still a line break.
                self.at += usize::from(self.peek().is_some_and(|next| !is_break(next)));
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    fn indent(&mut self) -> Result<(), TooLarge> {
        let start = self.at;
        self.skip_spaces();
        let (indent, byte) = (self.column(), self.peek());
        let wanted = match byte {
            // A tab must be further right than content.
            Some(b'\t') => self.parent + 2,
            Some(byte) if self.flow == 0 && !is_break(byte) => self.parent + 1,
            _ => 0,
        };
        let rest = &self.bytes[self.at..];
        let is_marker = indent == 0 && (rest.starts_with(b"---") || rest.starts_with(b"..."));
        match u32::try_from(wanted - indent) {
            Ok(missing @ 1..) if !is_marker => self.write(start, missing),
            _ => Ok(()),
        }
    }

    /// Copies the text up to an offset, then adds blanks to the line that begins there.
    fn write(&mut self, until: usize, added: u32) -> Result<(), TooLarge> {
        let blanks = usize::try_from(added).unwrap_or(usize::MAX);
        let edits = (self.edits.len() + 1).saturating_mul(size_of::<Edit>());
        let size = self.out.len().saturating_add(self.bytes.len() - self.written).saturating_add(edits);
        if size.saturating_add(blanks) > self.limit {
            return Err(TooLarge);
        }
        self.out.extend_from_slice(&self.bytes[self.written..until]);
        self.out.resize(self.out.len() + blanks, b' ');
        self.written = until;
        self.edits.push(Edit { line: self.line, added });
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn column(&self) -> isize {
        isize::try_from(self.at - self.line_start).unwrap_or(isize::MAX)
    }

    fn is_at_end_of_line(&self) -> bool {
        self.peek().is_none_or(is_break)
    }

    fn is_after_blank(&self) -> bool {
        self.at == self.line_start || self.bytes.get(self.at - 1).is_some_and(|&byte| is_blank(byte))
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        while !self.is_at_end_of_line() {
            self.at += 1;
        }
    }

    fn next_line(&mut self) {
        let Some(byte) = self.peek() else { return };
        self.at += 1;
        if byte == b'\r' && self.peek() == Some(b'\n') {
            self.at += 1;
        }
        self.line = self.line.saturating_add(1);
        self.line_start = self.at;
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_flow_indicator(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}
