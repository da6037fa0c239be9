//! How comments cite: `spec 30 §5.2`, `spec 51 §9 R3`, `spec 10 §13.2, scenarios 24 and 25`, `spec 32 "Better than
//! upstream" 4` (or `"better" 4`), `decision 14`, `fault 7`, `facts §4`, `architecture §8`.
//!
//! A chapter holds until another document is named, for sections to the end of the file: `(§12.3)` is one of the chapter
//! that was named last. What else is named by a number (a row, a rule, a trap, a label) belongs to the sentence of its
//! chapter or section: behind it, the same words are prose.

/// What is cited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Section(Document, String),
    Scenario(u32, u32),
    /// A row, rule, step or label like `T10` of a chapter, in the section named before it, if there is one.
    Item(u32, Option<String>, String),
    /// An entry of the chapter's list of traps.
    Trap(u32, String),
    /// An entry of the chapter's list "Better than upstream".
    Better(u32, u32),
    /// A row of the table of decisions in the specification's index.
    Decision(u32),
    /// A row of the table of faults.
    Fault(u32),
}

/// What has sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    /// A chapter of the specification.
    Spec(u32),
    Facts,
    Architecture,
    /// Not ours: an RFC.
    Foreign,
    /// The file has named none so far.
    Unknown,
}

/// Reads the comments of one file, one after another.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// What the file cited last.
    last: Option<Document>,
}

impl Reader {
    /// For a text whose citations without a chapter mean this one.
    pub(crate) fn of_chapter(chapter: u32) -> Self {
        Self { last: Some(Document::Spec(chapter)) }
    }

    /// All that a comment cites; the word at which it cannot be told.
    pub(crate) fn read(&mut self, comment: &str) -> Result<Vec<Target>, String> {
        let words: Vec<&str> = comment.split_whitespace().collect();
        let mut comment = Comment { words: &words, at: 0, document: None, sentence: None, found: Vec::new() };
        while let Some(word) = comment.next() {
            comment.word(word, &mut self.last)?;
            if word.ends_with(['.', '!', '?']) {
                comment.sentence = None;
            }
        }
        Ok(comment.found)
    }
}

#[derive(Debug)]
struct Comment<'a> {
    words: &'a [&'a str],
    at: usize,
    /// What this comment cited last.
    document: Option<Document>,
    /// Chapter and section of this sentence.
    sentence: Option<(u32, Option<String>)>,
    found: Vec<Target>,
}

impl<'a> Comment<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.at += 1;
        self.words.get(self.at - 1).copied()
    }

    fn peek(&self) -> &'a str {
        self.words.get(self.at).copied().unwrap_or_default()
    }

    fn word(&mut self, word: &'a str, last: &mut Option<Document>) -> Result<(), String> {
        let chapter = match self.document {
            Some(Document::Spec(chapter)) => Some(chapter),
            Some(Document::Facts | Document::Architecture | Document::Foreign | Document::Unknown) | None => None,
        };
        match (core(word), chapter) {
            ("spec" | "Spec", _) => {
                if let Some((chapter, _)) = number(self.peek()) {
                    self.document = Some(Document::Spec(chapter));
                    *last = self.document;
                    self.sentence = Some((chapter, None));
                }
            }
            ("facts" | "Facts" | "api-facts", _) if self.peek().starts_with('§') => {
                self.document = Some(Document::Facts);
            }
            ("architecture", _) if self.peek().starts_with('§') => self.document = Some(Document::Architecture),
            ("RFC", _) => self.document = Some(Document::Foreign),
            ("fault" | "faults", _) => {
                self.at += usize::from(["row", "rows"].contains(&self.peek()));
                self.numbers(|_, row| row.parse().ok().map(Target::Fault));
            }
            ("decision" | "decisions", _) => {
                // Four digits are a record of ours, which is named by its file.
                self.numbers(|_, row| row.parse().ok().filter(|_| row.len() < 4).map(Target::Decision));
            }
            ("better" | "upstream", _) => {
                let chapter = chapter.or(match *last {
                    Some(Document::Spec(chapter)) => Some(chapter),
                    Some(Document::Facts | Document::Architecture | Document::Foreign | Document::Unknown) | None => {
                        None
                    }
                });
                self.numbers(|_, entry| Some(Target::Better(chapter?, entry.parse().ok()?)));
            }
            ("trap" | "traps", _) => {
                self.numbers(|sentence, trap| sentence.map(|(chapter, _)| Target::Trap(*chapter, trap.to_owned())));
            }
            ("row" | "rows" | "rule" | "rules" | "step" | "steps", _) => {
                self.numbers(|sentence, item| {
                    let (chapter, section) = sentence?;
                    Some(Target::Item(*chapter, section.clone(), item.to_owned()))
                });
            }
            ("scenario", Some(chapter)) => {
                let next = self.next().unwrap_or_default();
                // A comma and a number would be a list, which says "scenarios".
                let is_list = next.ends_with(',') && number(self.peek()).is_some();
                let (scenario, _) = number(next).filter(|_| !is_list).ok_or(next)?;
                self.found.push(Target::Scenario(chapter, scenario));
            }
            ("scenarios", Some(chapter)) => loop {
                let next = self.next().unwrap_or_default();
                let (scenario, end) = number(next).ok_or(next)?;
                self.found.push(Target::Scenario(chapter, scenario));
                let is_last = end.is_empty() && self.peek() == "and";
                self.at += usize::from(is_last);
                if end != "," && !is_last {
                    break;
                }
            },
            _ if word.contains('§') => self.sections(word, last),
            (core, _) => {
                if let Some((chapter, section)) = self.sentence.as_ref().filter(|_| is_label(core)) {
                    self.found.push(Target::Item(*chapter, section.clone(), core.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn sections(&mut self, word: &str, last: &Option<Document>) {
        let document = self.document.or(*last).unwrap_or(Document::Unknown);
        for piece in word.split('§').skip(1) {
            let end = piece.find(|next: char| !next.is_ascii_alphanumeric() && next != '.').unwrap_or(piece.len());
            let section = piece[..end].trim_end_matches('.').to_owned();
            // `§n` explains the form.
            if !section.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_uppercase()) {
                continue;
            }
            match document {
                Document::Foreign => {}
                Document::Spec(chapter) => {
                    self.sentence = Some((chapter, Some(section.clone())));
                    self.found.push(Target::Section(document, section));
                }
                Document::Facts | Document::Architecture | Document::Unknown => {
                    self.found.push(Target::Section(document, section))
                }
            }
        }
    }

    /// The numbers that follow: `7`, `3a`, `1, 2 and 8`, `4 to 6`, `4-6`.
    fn numbers(&mut self, target: impl Fn(Option<&(u32, Option<String>)>, &str) -> Option<Target>) {
        let mut is_range = false;
        let mut previous = 0;
        while is_item(core(self.peek())) {
            let Some(word) = self.next() else { break };
            let (first, last) = core(word).split_once(['-', '–']).unwrap_or((core(word), ""));
            let between = first.parse().ok().filter(|_| is_range).map_or(0..0, |end: u32| previous + 1..end);
            let to_last =
                first.parse().ok().zip(last.parse().ok()).map_or(0..0, |(begin, end): (u32, u32)| begin + 1..end + 1);
            let all = between.map(|item| item.to_string()).chain([first.to_owned()]);
            let found = all.chain(to_last.map(|item| item.to_string()));
            self.found.extend(found.filter_map(|item| target(self.sentence.as_ref(), &item)));

            previous = first.parse().unwrap_or(previous);
            let goes_on = ["and", "or", "to"].contains(&self.peek()) && word == core(word);
            is_range = goes_on && self.peek() == "to";
            let behind = self.words.get(self.at + 1).copied().unwrap_or_default();
            if goes_on && is_item(core(behind)) {
                self.at += 1;
            } else if !word.ends_with(',') {
                break;
            }
        }
    }
}

/// A number and the punctuation behind it; nothing else may be in the word.
fn number(word: &str) -> Option<(u32, &str)> {
    let digits = word.trim_end_matches([',', '.', ':', ';', ')']);
    digits.parse().ok().map(|number| (number, &word[digits.len()..]))
}

/// A word without quotes, brackets and punctuation around it.
fn core(word: &str) -> &str {
    word.trim_matches(['"', '`', '(', ')', '[', ']', ',', '.', ':', ';', '*'])
}

/// `7`, `3a`, `4-6`.
fn is_item(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
        && word.len() <= 5
        && word.chars().all(|next| next.is_ascii_digit() || next.is_ascii_lowercase() || ['-', '–'].contains(&next))
}

/// `T10`, `U3b`, `D-1`.
fn is_label(word: &str) -> bool {
    let digits = word.trim_start_matches(|first: char| first.is_ascii_uppercase()).trim_start_matches('-');
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && digits.len() <= 3
        && is_item(digits)
        && !digits.contains('-')
}

#[test]
fn what_is_cited_is_read_as_it_is_written() {
    use Document::{Architecture, Facts, Spec};
    use Target::{Better, Decision, Fault, Item, Scenario, Section};
    let section = |document, section: &str| Section(document, section.to_owned());
    let item = |chapter, section: Option<&str>, item: &str| Item(chapter, section.map(str::to_owned), item.to_owned());

    let table: [(&str, &[Target]); 16] = [
        ("(spec 30 §5.2).", &[section(Spec(30), "5.2")]),
        ("spec 10 §9.1-§9.4, §11", &[section(Spec(10), "9.1"), section(Spec(10), "9.4"), section(Spec(10), "11")]),
        ("Spec 70 §11. Later §12.", &[section(Spec(70), "11"), section(Spec(70), "12")]),
        ("spec 51 §9 R3", &[section(Spec(51), "9"), item(51, Some("9"), "R3")]),
        ("spec 30 T10", &[item(30, None, "T10")]),
        ("spec 10 §18, trap 15", &[section(Spec(10), "18"), Target::Trap(10, "15".to_owned())]),
        ("spec 50 §2 rows 3 and 5a", &[section(Spec(50), "2"), item(50, Some("2"), "3"), item(50, Some("2"), "5a")]),
        ("spec 70 §4 rules 4-5", &[section(Spec(70), "4"), item(70, Some("4"), "4"), item(70, Some("4"), "5")]),
        ("spec 10. The rule 7 of another, and R5", &[]),
        ("spec 30 \"Better than upstream\" 3 and 4", &[Better(30, 3), Better(30, 4)]),
        ("spec 51 \"better\" 5: prose", &[Better(51, 5)]),
        ("(decision 14), decisions 9 and 10", &[Decision(14), Decision(9), Decision(10)]),
        ("docs/decisions, decision 0007", &[]),
        ("faults 4 to 6, 8; fault 9", &[Fault(4), Fault(5), Fault(6), Fault(8), Fault(9)]),
        (
            "facts §2, §7; architecture §8; RFC 9113 §4.1",
            &[section(Facts, "2"), section(Facts, "7"), section(Architecture, "8")],
        ),
        ("spec 10 §13.2, scenarios 24 and 25", &[section(Spec(10), "13.2"), Scenario(10, 24), Scenario(10, 25)]),
    ];

    for (text, expected) in table {
        assert_eq!(Reader::default().read(text), Ok(expected.to_vec()), "{text}");
    }
}

#[test]
fn a_section_without_a_chapter_is_one_of_the_chapter_that_the_file_named_last() {
    let mut reader = Reader::default();

    reader.read("spec 20 §4").expect("is clear");

    let expected = Target::Section(Document::Spec(20), "12.3".to_owned());
    assert_eq!(reader.read("=== templates (§12.3) ==="), Ok(vec![expected]));
}
