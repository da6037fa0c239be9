//! Every scenario of the behaviour specification is played by a test, which cites it: `/// spec 10 scenario 8`.
//!
//! A citation is a doc comment of a test that names the chapter and then `scenario` with a number, or `scenarios` with a
//! list: `spec 10 §13.2, scenarios 24 and 25`.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

/// The chapters that are implemented: number, how many scenarios they have, and where each of them must be cited.
const CHAPTERS: [(u32, u32, &str); 6] =
    [(10, 40, "tests/simulation"), (20, 40, ""), (32, 31, ""), (50, 43, ""), (51, 39, ""), (61, 32, "")];

/// One scenario that the doc comment of a test names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Citation {
    chapter: u32,
    scenario: u32,
    /// File, from the root of the repository.
    file: String,
}

#[test]
fn every_scenario_is_played_by_a_test() {
    let citations = citations();

    for (chapter, count, folder) in CHAPTERS {
        let of_chapter = citations.iter().filter(|citation| citation.chapter == chapter);
        let cited: BTreeSet<u32> =
            of_chapter.filter(|citation| citation.file.starts_with(folder)).map(|citation| citation.scenario).collect();
        let missing: Vec<u32> = (1..=count).filter(|scenario| !cited.contains(scenario)).collect();

        assert!(missing.is_empty(), "no test in {folder} cites these scenarios of spec {chapter}: {missing:?}");
    }
}

#[test]
fn no_test_cites_a_scenario_that_does_not_exist() {
    let counts: BTreeMap<u32, u32> = CHAPTERS.into_iter().map(|(chapter, count, _)| (chapter, count)).collect();
    let exists = |citation: &Citation| match counts.get(&citation.chapter) {
        Some(count) => (1..=*count).contains(&citation.scenario),
        // Cited ahead of its chapter's line in the table.
        None => citation.scenario > 0,
    };

    let invented: Vec<Citation> = citations().into_iter().filter(|citation| !exists(citation)).collect();

    assert_eq!(invented, []);
}

#[test]
fn citations_are_read_as_they_are_written() {
    let table: [(&str, &[(u32, u32)]); 9] = [
        ("spec 10 scenario 8", &[(10, 8)]),
        ("spec 10 scenario 8. And 9 more.", &[(10, 8)]),
        ("spec 10 scenarios 3, 4", &[(10, 3), (10, 4)]),
        ("spec 10 §13.2, scenarios 24 and 25", &[(10, 24), (10, 25)]),
        ("spec 70 §4 rules 4-6, scenarios 5, 6 and 7", &[(70, 5), (70, 6), (70, 7)]),
        ("spec 10 §5.3; scenario 3 and \"Better than upstream\" 6", &[(10, 3)]),
        ("spec 70 scenario 1; spec 10 scenario 2", &[(70, 1), (10, 2)]),
        ("spec 10 §13.6", &[]),
        ("the scenario of a chapter", &[]),
    ];

    for (text, expected) in table {
        assert_eq!(read_citations(text), Ok(expected.to_vec()), "{text}");
    }
    for text in ["spec 10 scenario eight", "spec 10 scenarios 3-5", "spec 10 scenario 3, 4", "spec 10 scenarios 1, b"] {
        assert!(read_citations(text).is_err(), "{text}: nobody can tell what is meant");
    }
}

// === reading ===

/// All citations in `src/`, `crates/` and `tests/`.
fn citations() -> Vec<Citation> {
    let mut citations = Vec::new();
    for (file, comment) in ["src", "crates", "tests"].into_iter().flat_map(sources::comments_of_tests_in) {
        let cited = read_citations(&comment).unwrap_or_else(|word| panic!("{file}: unclear at {word:?}: {comment}"));
        citations.extend(cited.into_iter().map(|(chapter, scenario)| Citation {
            chapter,
            scenario,
            file: file.clone(),
        }));
    }
    citations
}

/// Chapters and scenarios that a comment names; the word at which it cannot be told.
fn read_citations(comment: &str) -> Result<Vec<(u32, u32)>, String> {
    let mut found = Vec::new();
    let mut chapter = None;
    let mut words = comment.split_whitespace().peekable();
    while let Some(word) = words.next() {
        match (word, chapter) {
            ("spec", _) => chapter = words.peek().and_then(|next| number(next)).map(|(chapter, _)| chapter).or(chapter),
            ("scenario", Some(chapter)) => {
                let next = words.next().unwrap_or_default();
                // A comma and a number would be a list, which says "scenarios".
                let is_list = next.ends_with(',') && words.peek().is_some_and(|word| number(word).is_some());
                let (scenario, _) = number(next).filter(|_| !is_list).ok_or(next)?;
                found.push((chapter, scenario));
            }
            ("scenarios", Some(chapter)) => loop {
                let next = words.next().unwrap_or_default();
                let (scenario, end) = number(next).ok_or(next)?;
                found.push((chapter, scenario));
                let goes_on = end == "," || (end.is_empty() && words.next_if_eq(&"and").is_some());
                if !goes_on {
                    break;
                }
            },
            _ => {}
        }
    }
    Ok(found)
}

/// A number and the punctuation behind it; nothing else may be in the word.
fn number(word: &str) -> Option<(u32, &str)> {
    let digits = word.trim_end_matches([',', '.', ':', ';', ')']);
    digits.parse().ok().map(|number| (number, &word[digits.len()..]))
}
