use serde_json::Value;

use super::{Comparison, Filter, JsonPathError, Node, Path, Segment};

const LONGEST: usize = 16 << 10;
const DEEPEST: usize = 8; // ranges within ranges
const SHOWN: usize = 20; // characters of a template in an error
const WRONG_ESCAPE: &str = r#"the escapes are \n, \t, \r, \\, \" and \'"#;

type Result<T> = std::result::Result<T, JsonPathError>;

struct Parser<'a> {
    rest: &'a str,
}

/// What stands in one pair of braces.
enum Action {
    Text(String),
    Path(Path),
    Range(Path),
    End,
}

pub(super) fn template(text: &str) -> Result<Vec<Node>> {
    let mut parser = Parser::new(text)?;
    let mut nodes = Vec::new();
    // The nodes before each open range, the path of the range, and where it begins.
    let mut open: Vec<(Vec<Node>, Path, &str)> = Vec::new();
    let mut has_expression = false;
    while !parser.rest.is_empty() {
        let literal = parser.take(parser.rest.find('{').unwrap_or(parser.rest.len()));
        if !literal.is_empty() {
            nodes.push(Node::Text(literal.to_owned()));
        }
        if parser.rest.is_empty() {
            break;
        }
        has_expression = true;
        let begin = parser.rest;
        match parser.action()? {
            Action::Text(text) => nodes.push(Node::Text(text)),
            Action::Path(path) => nodes.push(Node::Path(path)),
            Action::Range(_) if open.len() == DEEPEST => return Err(syntax("ranges are too deep", begin)),
            Action::Range(path) => open.push((std::mem::take(&mut nodes), path, begin)),
            Action::End => {
                let Some((outer, path, _)) = open.pop() else { return Err(syntax("end without range", begin)) };
                let inner = std::mem::replace(&mut nodes, outer);
                nodes.push(Node::Range(path, inner));
            }
        }
    }
    match open.last() {
        Some((_, _, begin)) => Err(syntax("range without {end}", begin)),
        None if !has_expression => {
            Err(syntax("there is no expression in braces — write for example {.metadata.name}", text))
        }
        None => Ok(nodes),
    }
}

pub(super) fn lone_path(text: &str) -> Result<Path> {
    let mut parser = Parser::new(text.trim())?;
    let in_braces = parser.skip("{");
    if !parser.rest.starts_with(['.', '[', '@', '$']) && !parser.rest.is_empty() {
        let mut path = vec![Segment::Field(parser.field()?)];
        path.extend(parser.segments()?);
        return parser.ended(Path(path), in_braces);
    }
    let path = parser.path()?;
    parser.ended(path, in_braces)
}

fn syntax(reason: &'static str, place: &str) -> JsonPathError {
    JsonPathError::Syntax { reason, place: shown(place) }
}

fn unsupported(what: &'static str, place: &str) -> JsonPathError {
    JsonPathError::Unsupported { what, place: shown(place) }
}

fn shown(place: &str) -> String {
    if place.is_empty() { "the end".to_owned() } else { place.chars().take(SHOWN).collect() }
}

/// Whether a character ends the name of a field that is not in quotes.
fn ends_field(character: char) -> bool {
    character.is_whitespace() || ".,[]{}()'\"=!<>?*@$|&".contains(character)
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        if text.len() > LONGEST { Err(JsonPathError::TooLong(LONGEST)) } else { Ok(Self { rest: text }) }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn ended(mut self, path: Path, in_braces: bool) -> Result<Path> {
        self.blanks();
        if in_braces && !self.skip("}") {
            return Err(syntax("expected }", self.rest));
        }
        if self.rest.is_empty() { Ok(path) } else { Err(syntax("expected one path and nothing after it", self.rest)) }
    }

    fn action(&mut self) -> Result<Action> {
        self.skip("{");
        self.blanks();
        let begin = self.rest;
        let is_word = |word: &str| {
            let after = begin.strip_prefix(word);
            after.is_some_and(|after| after.starts_with([' ', '\t', '}']))
        };
        let action = if begin.starts_with(['"', '\'']) {
            Action::Text(self.quoted()?)
        } else if is_word("range") {
            self.skip("range");
            self.blanks();
            Action::Range(self.path()?)
        } else if is_word("end") {
            self.skip("end");
            Action::End
        } else {
            Action::Path(self.path()?)
        };
        self.blanks();
        if self.skip("}") { Ok(action) } else { Err(syntax("expected }", self.rest)) }
    }

    /// Reads a path; the dot, `@` or `$` alone is the current value.
    fn path(&mut self) -> Result<Path> {
        let begin = self.rest;
        let is_current = self.skip("@") || self.skip("$");
        if !is_current && !begin.starts_with(['.', '[']) {
            return Err(syntax("a path begins with a dot, for example {.metadata.name}", begin));
        }
        let is_over = |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '}', ')', '=', '!']);
        if self.rest.strip_prefix('.').is_some_and(is_over) {
            self.skip(".");
            return Ok(Path(Vec::new()));
        }
        self.segments().map(Path)
    }

    fn segments(&mut self) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let begin = self.rest;
            if begin.starts_with("..") {
                return Err(unsupported("recursive descent is", begin));
            }
            if self.skip("[") {
                segments.push(self.bracket()?);
            } else if begin.starts_with(".[") {
                self.skip(".");
            } else if self.skip(".") {
                segments.push(if self.skip("*") { Segment::All } else { Segment::Field(self.field()?) });
            } else {
                return Ok(segments);
            }
        }
    }

    fn field(&mut self) -> Result<String> {
        let begin = self.rest;
        let mut name = String::new();
        while let Some(character) = self.rest.chars().next() {
            if character == '\\' {
                self.take(1);
                let escaped = self.rest.chars().next();
                name.push(escaped.ok_or_else(|| syntax("expected a character after the backslash", begin))?);
            } else if ends_field(character) {
                break;
            } else {
                name.push(character);
            }
            self.take(self.rest.chars().next().map_or(0, char::len_utf8));
        }
        if name.is_empty() { Err(syntax("expected the name of a field", begin)) } else { Ok(name) }
    }

    fn bracket(&mut self) -> Result<Segment> {
        self.blanks();
        let begin = self.rest;
        let segment = if self.skip("*") {
            Segment::All
        } else if begin.starts_with(['"', '\'']) {
            Segment::Field(self.quoted()?)
        } else if self.skip("?(") {
            Segment::Filter(self.filter()?)
        } else {
            let length = begin.find(|character: char| !character.is_ascii_digit() && character != '-');
            let number = self.take(length.unwrap_or(begin.len()));
            if self.rest.starts_with(':') {
                return Err(unsupported("slices are", begin));
            }
            let number = number.parse().map_err(|_| syntax("expected a number, *, a quoted name or ?(…)", begin))?;
            Segment::Item(number)
        };
        self.blanks();
        if self.rest.starts_with(',') {
            return Err(unsupported("unions are", begin));
        }
        if self.skip("]") { Ok(segment) } else { Err(syntax("expected ]", self.rest)) }
    }

    /// Reads a filter after `?(`.
    fn filter(&mut self) -> Result<Filter> {
        self.blanks();
        if !self.rest.starts_with('@') {
            return Err(syntax("a filter begins with @", self.rest));
        }
        let begin = self.rest;
        let path = self.path()?;
        if path.0.iter().any(|segment| matches!(segment, Segment::Filter(_))) {
            return Err(unsupported("filters within filters are", begin));
        }
        self.blanks();
        let operator = self.rest;
        let comparison = if self.skip("==") {
            Some(true)
        } else if self.skip("!=") {
            Some(false)
        } else if self.rest.starts_with(')') {
            None
        } else {
            return Err(unsupported("other comparisons than == and != are", operator));
        };
        let comparison = match comparison {
            Some(equal) => Some(Comparison { equal, with: self.literal()? }),
            None => None,
        };
        self.blanks();
        if self.skip(")") { Ok(Filter { path, comparison }) } else { Err(syntax("expected )", self.rest)) }
    }

    fn literal(&mut self) -> Result<Value> {
        self.blanks();
        let begin = self.rest;
        if begin.starts_with(['"', '\'']) {
            return Ok(Value::String(self.quoted()?));
        }
        let length = begin.find(|character: char| character == ')' || character.is_whitespace());
        let word = self.take(length.unwrap_or(begin.len()));
        match serde_json::from_str(word) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => Ok(value),
            Ok(_) | Err(_) => Err(syntax("expected a text in quotes, a number, true or false", begin)),
        }
    }

    fn quoted(&mut self) -> Result<String> {
        let begin = self.rest;
        let quote = self.take(1);
        let mut text = String::new();
        loop {
            let Some(character) = self.rest.chars().next() else {
                return Err(syntax("expected a quote at the end of the text", begin));
            };
            self.take(character.len_utf8());
            if quote.starts_with(character) {
                return Ok(text);
            }
            if character != '\\' {
                text.push(character);
                continue;
            }
            let escaped = match self.rest.chars().next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(same @ ('\\' | '"' | '\'')) => same,
                Some(_) | None => return Err(syntax(WRONG_ESCAPE, self.rest)),
            };
            self.take(1);
            text.push(escaped);
        }
    }
}
