//! Each fault that the program must survive has a test that cites it: `/// faults row 7`, `/// faults rows 1 and 2`,
//! `/// faults rows 4 to 6`, in the simulation or against a real control plane.

use std::collections::BTreeSet;

use crate::{
    reading::{Reader, Target},
    sources,
};

/// Rows of the table of faults that concern the controller of ManagedResources: what goes wrong with requests, watches and
/// data (1 to 16), between bundles and other controllers (20 to 24), and answers that are none (31).
const ROWS: [(u32, &str); 22] = [
    (1, "crash between any two writes"),
    (2, "crash after a write, before the status"),
    (3, "stale read after a restart"),
    (4, "missed, merged, duplicated, reordered events"),
    (5, "410 Gone, relist"),
    (6, "a watch falls silent"),
    (7, "409 on object and status"),
    (8, "429, 503, time-out with unknown outcome"),
    (9, "401"),
    (10, "403 on one kind"),
    (11, "unknown kind, changing definitions"),
    (12, "a webhook denies or times out"),
    (13, "immutable field"),
    (14, "terminating namespace"),
    (15, "stuck finalizer"),
    (16, "leader lost in the middle of a write, two leaders"),
    (20, "bad data"),
    (21, "missing or replaced Secret"),
    (22, "two bundles claim one object"),
    (23, "object moved between bundles"),
    (24, "another controller owns a field"),
    (31, "an answer that is none"),
];

#[test]
fn every_fault_is_cited_by_a_test() {
    let comments = ["tests/simulation", "tests/e2e"].into_iter().flat_map(sources::comments_of_tests_in);
    let cited: BTreeSet<u32> = comments.flat_map(|(_, comment)| rows_of(&comment)).collect();

    let missing: Vec<_> = ROWS.into_iter().filter(|(row, _)| !cited.contains(row)).collect();

    assert!(missing.is_empty(), "no test cites faults row {missing:?}");
}

#[test]
fn citations_are_understood() {
    let table: [(&str, &[u32]); 6] = [
        ("faults row 7", &[7]),
        ("faults row 15: it is named.", &[15]),
        ("faults rows 1, 2 and 8", &[1, 2, 8]),
        ("faults rows 4 to 6 and 9: a sentence of 3 words", &[4, 5, 6, 9]),
        ("this is not faults row 7", &[]),
        ("a sentence\nfaults row 9", &[9]),
    ];

    for (comment, rows) in table {
        assert_eq!(rows_of(comment), rows, "{comment}");
    }
}

/// The rows that the lines of a comment cite.
fn rows_of(comment: &str) -> Vec<u32> {
    let lines = comment.lines().filter(|line| line.starts_with("faults row"));
    let targets = lines.flat_map(|line| Reader::default().read(line).unwrap_or_else(|word| panic!("{line}: {word:?}")));
    let row = |target| match target {
        Target::Fault(row) => Some(row),
        Target::Section(..) | Target::Scenario(..) | Target::Item(..) | Target::Trap(..) => None,
        Target::Better(..) | Target::Decision(_) => None,
    };
    targets.filter_map(row).collect()
}
