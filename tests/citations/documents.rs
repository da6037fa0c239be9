//! What can be cited: sections, scenarios and numbered entries of the documents.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::reading::{Document, Target};

/// All documents that are cited by section or number.
#[derive(Debug)]
pub(crate) struct Library {
    chapters: BTreeMap<u32, Contents>,
    facts: Contents,
    faults: Contents,
    architecture: Contents,
}

/// One document.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By number (`5.2`, `A.3`, `C1`), or by title where there is none: what is numbered or labelled in it.
    sections: BTreeMap<String, BTreeSet<String>>,
    /// What the section of traps has.
    traps: BTreeSet<String>,
}

const SCENARIOS: &str = "Scenarios";
const BETTER: &str = "Better than upstream";
const DECISIONS: &str = "Decisions";
const FAULTS: &str = "Faults this program must survive";

impl Library {
    pub(crate) fn read() -> Self {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let entries = fs::read_dir(docs.join("spec")).expect("docs/spec is there");
        let files: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
        let chapter = |path: &PathBuf| path.file_name()?.to_str()?.split('-').next()?.parse().ok();
        let contents = |path: &Path| Contents::of(&fs::read_to_string(path).expect("a document is text"));
        Self {
            chapters: files.iter().filter_map(|path| Some((chapter(path)?, contents(path)))).collect(),
            facts: contents(&docs.join("facts.md")),
            faults: contents(&docs.join("faults.md")),
            architecture: contents(&docs.join("architecture.md")),
        }
    }

    pub(crate) fn has(&self, target: &Target) -> bool {
        let chapter = |number: &u32| self.chapters.get(number);
        let numbered = |contents: Option<&Contents>, section: &str, number: &u32| {
            contents.is_some_and(|contents| contents.has_item(section, &number.to_string()))
        };
        match target {
            Target::Section(Document::Spec(number), section) => {
                chapter(number).is_some_and(|contents| contents.has_section(section))
            }
            Target::Section(Document::Facts, section) => self.facts.has_section(section),
            Target::Section(Document::Architecture, section) => self.architecture.has_section(section),
            Target::Section(Document::Foreign | Document::Unknown, _) => false,
            Target::Scenario(number, scenario) => numbered(chapter(number), SCENARIOS, scenario),
            Target::Better(number, entry) => numbered(chapter(number), BETTER, entry),
            Target::Decision(row) => numbered(self.chapters.get(&0), DECISIONS, row),
            Target::Fault(row) => numbered(Some(&self.faults), FAULTS, row),
            Target::Trap(number, trap) => chapter(number).is_some_and(|contents| contents.traps.contains(trap)),
            Target::Item(number, section, item) => {
                chapter(number).is_some_and(|contents| contents.has_cited_item(section.as_deref(), item))
            }
        }
    }

    /// The scenarios of a chapter. What was put between two of them (`25a`) is cited as a part of the one before it.
    pub(crate) fn scenarios(&self, chapter: u32) -> BTreeSet<u32> {
        let scenarios = self.chapters.get(&chapter).and_then(|contents| contents.sections.get(SCENARIOS));
        scenarios.into_iter().flatten().filter_map(|scenario| scenario.parse().ok()).collect()
    }
}

impl Contents {
    pub(crate) fn of(text: &str) -> Self {
        let mut contents = Self::default();
        let (mut section, mut number) = (String::new(), String::new());
        let (mut is_code, mut is_of_traps) = (false, false);
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if let Some(heading) = heading(line).filter(|_| !is_code) {
                section = heading;
                is_of_traps = line.to_lowercase().contains("traps");
                contents.sections.entry(section.clone()).or_default();
            } else if !is_code {
                let mut items = Vec::from_iter(item(line).map(str::to_owned));
                if let Some(item) = items.first() {
                    number.clone_from(item);
                } else {
                    // `a. …; b. …` below 3 are 3a and 3b.
                    items.extend(letters(line).map(|letter| format!("{number}{letter}")));
                }
                if is_of_traps {
                    contents.traps.extend(items.iter().cloned());
                }
                contents.sections.entry(section.clone()).or_default().extend(items);
            }
        }
        contents
    }

    /// `11.3.4` is a section, or entry 4 of section 11.3.
    fn has_section(&self, section: &str) -> bool {
        self.sections.contains_key(section)
            || section.rsplit_once('.').is_some_and(|(above, item)| self.has_item(above, item))
    }

    fn has_item(&self, section: &str, item: &str) -> bool {
        self.sections.get(section).is_some_and(|items| items.contains(item))
    }

    /// Labels are unique in their chapter; numbers are those of the section that is named, or of one in it.
    fn has_cited_item(&self, section: Option<&str>, item: &str) -> bool {
        let is_label = item.starts_with(|first: char| first.is_ascii_uppercase());
        let is_below = |number: &str| match section.filter(|_| !is_label) {
            Some(section) => number.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
            None => is_label || ![SCENARIOS, BETTER].contains(&number),
        };
        self.sections
            .iter()
            .any(|(number, items)| is_below(number) && (items.contains(item) || (is_label && number == item)))
    }
}

/// The number of a heading's section, or its title if it has none.
fn heading(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?.trim();
    let word = title.strip_prefix("Part ").unwrap_or(title).split_whitespace().next().unwrap_or_default();
    let number = word.trim_end_matches('.');
    // `12.8a` was put between two sections.
    let digits = number.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(number);
    let is_number = digits.chars().all(|next| next.is_ascii_digit() || next.is_ascii_uppercase() || next == '.')
        && (number.contains(|next: char| next.is_ascii_digit()) || title.starts_with("Part "));
    Some(if is_number { number.to_owned() } else { title.to_owned() })
}

/// The letters in `a. one; b. two`, if a line begins with one.
fn letters(line: &str) -> impl Iterator<Item = char> {
    let letter = |word: &str| match word.as_bytes() {
        [letter @ b'a'..=b'z', b'.'] => Some(char::from(*letter)),
        _ => None,
    };
    let begins = line.split_whitespace().next().and_then(letter).is_some();
    line.split_whitespace().filter_map(letter).filter(move |_| begins)
}

/// What a line is called by: `4` in `4. Text`, `Step 4 – text` and `| 4 | Text |`, `T10` in `| T10 |`, `- K5: text` and `**U3b**`.
fn item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let marked = ["| ", "- ", "Step "].into_iter().find_map(|mark| line.strip_prefix(mark));
    let (text, is_marked) = match marked {
        Some(text) => (text, true),
        None => (line.strip_prefix("* ").unwrap_or(line), false),
    };
    let word = text.split_whitespace().next()?;
    let name = word.trim_matches(['*', '`', '.', ':', '(', ')', ',']);
    let is_marked = is_marked || word.len() > name.len();
    let has_digit = name.contains(|next: char| next.is_ascii_digit());
    (is_marked && has_digit && name.len() <= 5 && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '-'))
        .then_some(name)
}

#[test]
fn sections_and_what_is_numbered_in_them_are_found() {
    let text = "# 30 – Title\n\n## 5. Rules\n4. x\n   a. y; b. z\n### 5.2 Order (R)\n\n1. first\n   2. second\n```\n9. code\n```\n### 5.2a More\n# Part A — a\n\
                ## A.1 Purpose\n### C1 — check\n| T10 | trap |\n| **U3b** | x |\n- K5: text\n## Scenarios\n1. *One*\n";
    let contents = Contents::of(text);

    for section in ["5", "5.2", "5.2.2", "5.2a", "A", "A.1", "C1"] {
        assert!(contents.has_section(section), "{section}: {contents:?}");
    }
    for section in ["5.1", "5.2.9", "B", "6", "5.2.4"] {
        assert!(!contents.has_section(section), "{section}");
    }
    for item in ["T10", "U3b", "K5", "C1"] {
        assert!(contents.has_cited_item(None, item), "{item}: {contents:?}");
    }
    for (section, item) in [("5", "4b"), ("5", "1"), ("5.2", "2")] {
        assert!(contents.has_cited_item(Some(section), item), "{section} {item}: {contents:?}");
    }
    assert!(!contents.has_cited_item(Some("5.2"), "4"), "{contents:?}");
    assert!(!contents.has_item("5", "1") && contents.has_item("Scenarios", "1"), "{contents:?}");
}
