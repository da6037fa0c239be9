//! On which line of a file a key stands.

use serde_saphyr::granit_parser::{Event, Parser};

/// Most paths that are looked for in one file: each key is compared with each of them. Further ones have no line.
const MOST: usize = 100;

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundKey {
    /// The line of the key, counted from 1.
    pub(super) line: usize,
    /// Bytes of the path that lead no further: 0 if the key itself was found, and not only a block around it.
    pub(super) rest: usize,
}

/// A path of the caller, by its position, and the part of it that is still to be found.
type Wanted<'p> = (usize, &'p str);

/// A mapping or list whose end has not come.
enum Open<'p> {
    Mapping {
        wanted: Vec<Wanted<'p>>,
        /// What is wanted below the key whose value comes next; `None`: a key comes next.
        key: Option<Vec<Wanted<'p>>>,
    },
    List {
        wanted: Vec<Wanted<'p>>,
        index: usize,
    },
}

struct Search<'p> {
    open: Vec<Open<'p>>,
    found: Vec<Option<FoundKey>>,
}

/// Finds the keys of these paths in the first document of a file, in the order of the paths. Where a key is absent, the
/// innermost block around it counts; `None`: that is absent, too. If a key stands twice, the last one counts, as in the
/// decoder. Behind a mistake in the syntax nothing is found.
pub(super) fn find(text: &str, paths: &[&str]) -> Vec<Option<FoundKey>> {
    let wanted = paths.iter().copied().enumerate().take(MOST).collect();
    // The document is the value of a key that has no name.
    let root = Open::Mapping { wanted: Vec::new(), key: Some(wanted) };
    let mut search = Search { open: vec![root], found: vec![None; paths.len()] };
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let line = span.start.line();
        match event {
            Event::Scalar(text, ..) => search.scalar(&text, line),
            Event::MappingStart(..) => {
                let wanted = search.below(line);
                search.open.push(Open::Mapping { wanted, key: None });
            }
            Event::SequenceStart(..) => {
                let wanted = search.below(line);
                search.open.push(Open::List { wanted, index: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                search.open.pop();
                search.ended(Vec::new());
            }
            Event::Alias(_) => search.ended(Vec::new()),
            Event::DocumentEnd | Event::StreamEnd => break,
            _ => {}
        }
    }
    search.found
}

impl<'p> Search<'p> {
    fn scalar(&mut self, text: &str, line: usize) {
        let below = match self.open.last() {
            Some(Open::Mapping { wanted, key: None }) => followed(wanted, text),
            Some(Open::List { wanted, index }) => followed(wanted, &format!("[{index}]")),
            Some(Open::Mapping { key: Some(_), .. }) | None => Vec::new(),
        };
        self.note(&below, line);
        self.ended(below);
    }

    /// Returns what is wanted inside of the mapping or list that begins.
    fn below(&mut self, line: usize) -> Vec<Wanted<'p>> {
        let below = match self.open.last_mut() {
            Some(Open::Mapping { key: Some(wanted), .. }) => return std::mem::take(wanted),
            Some(Open::List { wanted, index }) => followed(wanted, &format!("[{index}]")),
            Some(Open::Mapping { key: None, .. }) | None => Vec::new(),
        };
        self.note(&below, line);
        below
    }

    fn note(&mut self, wanted: &[Wanted<'p>], line: usize) {
        for (path, rest) in wanted {
            if let Some(found) = self.found.get_mut(*path) {
                *found = Some(FoundKey { line, rest: rest.len() });
            }
        }
    }

    /// A key, a value or an entry has ended. `below`: what is wanted below it if it is a key.
    fn ended(&mut self, below: Vec<Wanted<'p>>) {
        match self.open.last_mut() {
            Some(Open::Mapping { key, .. }) => *key = if key.is_some() { None } else { Some(below) },
            Some(Open::List { index, .. }) => *index += 1,
            None => {}
        }
    }
}

/// The paths that go on with this step, without it.
fn followed<'p>(wanted: &[Wanted<'p>], step: &str) -> Vec<Wanted<'p>> {
    let follow = |(path, rest): &Wanted<'p>| {
        let rest = rest.strip_prefix(step).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))?;
        Some((*path, rest.strip_prefix('.').unwrap_or(rest)))
    };
    wanted.iter().filter_map(follow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment
a:
  b: 1
  list:
  - name: x
    other: y
  - {name: z,
     more: [1,
            2]}
a.b/c: {d: 1}
";

    fn lines(text: &str, paths: &[&str]) -> Vec<Option<usize>> {
        find(text, paths).into_iter().map(|found| found.map(|found| found.line)).collect()
    }

    #[test]
    fn line_of_a_key_is_found_by_its_path() {
        let paths =
            ["a", "a.b", "a.list", "a.list[0].other", "a.list[1]", "a.list[1].more", "a.list[1].more[1]", "a.b/c.d"];
        assert_eq!(lines(FILE, &paths), [2, 3, 4, 6, 7, 8, 9, 10].map(Some));
    }

    #[test]
    fn line_of_an_absent_key_is_that_of_the_block_around_it() {
        assert_eq!(find(FILE, &["a.absent.key"]), [Some(FoundKey { line: 2, rest: "absent.key".len() })]);
        assert_eq!(find(FILE, &["absent", ""]), [None, None]);
    }

    #[test]
    fn line_of_a_key_that_stands_twice_is_the_last_one() {
        assert_eq!(lines("a: {b: 1}\na:\n  b: 2\n", &["a.b"]), [Some(3)]);
        assert_eq!(lines("a: {b: 1}\na: {}\n", &["a.b"]), [Some(2)]);
    }

    #[test]
    fn line_is_found_in_json_and_in_odd_documents() {
        assert_eq!(lines("{\n\"a\": {\n\"b\": 1}}", &["a.b"]), [Some(3)]);
        assert_eq!(lines("---\na: 1\n---\nb: 2\n", &["a", "b"]), [Some(2), None]);
        assert_eq!(lines("x: &x {b: 1}\n? [k]\n: v\na: *x\n", &["a.b"]), [Some(4)]);
        assert_eq!(lines("a: 1\nb: [\n", &["a"]), [Some(1)]);
        assert_eq!(lines("", &["a"]), [None]);
    }

    #[test]
    fn line_is_looked_for_in_a_bounded_number_of_paths() {
        let paths = vec!["a"; MOST + 1];
        let found = lines("a: 1", &paths);
        assert_eq!((found[MOST - 1], found[MOST]), (Some(1), None));
    }
}
