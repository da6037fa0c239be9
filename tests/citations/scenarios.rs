//! Every scenario of the behaviour specification is played by a test, which cites it: `/// spec 10 scenario 8`.
//!
//! A citation is a doc comment of a test that names the chapter and then `scenario` with a number, or `scenarios` with a
//! list: `spec 10 §13.2, scenarios 24 and 25`.

use std::collections::BTreeSet;

use crate::{
    documents::Library,
    reading::{Reader, Target},
    sources,
};

/// The chapters that are implemented, and where each of their scenarios must be cited.
const CHAPTERS: [(u32, &str); 15] = [
    (10, "tests/simulation"),
    (20, ""),
    (30, ""),
    (31, ""),
    (32, ""),
    (33, ""),
    (40, ""),
    (41, ""),
    (42, ""),
    (50, ""),
    (51, ""),
    (60, ""),
    (61, ""),
    (62, ""),
    (70, ""),
];

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
    let (library, citations) = (Library::read(), citations());

    for (chapter, folder) in CHAPTERS {
        let of_chapter = citations.iter().filter(|citation| citation.chapter == chapter);
        let cited: BTreeSet<u32> =
            of_chapter.filter(|citation| citation.file.starts_with(folder)).map(|citation| citation.scenario).collect();
        let scenarios = library.scenarios(chapter);
        let missing: Vec<&u32> = scenarios.difference(&cited).collect();

        assert!(scenarios.len() >= 25, "scenarios of spec {chapter}: {scenarios:?}");
        assert!(missing.is_empty(), "no test in {folder} cites these scenarios of spec {chapter}: {missing:?}");
    }
}

#[test]
fn no_test_cites_a_scenario_that_does_not_exist() {
    let library = Library::read();

    let exists = |citation: &Citation| library.has(&Target::Scenario(citation.chapter, citation.scenario));
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
    let scenario = |target| match target {
        Target::Scenario(chapter, scenario) => Some((chapter, scenario)),
        Target::Section(..) | Target::Item(..) | Target::Trap(..) => None,
        Target::Better(..) | Target::Decision(_) | Target::Fault(_) => None,
    };
    let targets = Reader::default().read(comment)?;
    Ok(targets.into_iter().filter_map(scenario).collect())
}
