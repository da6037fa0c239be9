//! Bounded lists of texts in messages.

use std::collections::BTreeSet;

use kit::quote::cut;

const REPORTED: usize = 10;

/// Bytes of an Event's note that API servers accept.
const LONGEST_NOTE: usize = 1024;

/// Joins the first ten texts, each no longer than a message needs, and says how many more there are.
pub(in crate::actors) fn together(texts: &[String], between: &str) -> String {
    let reported: Vec<_> = texts.iter().take(REPORTED).map(|text| cut(text)).collect();
    let reported = reported.join(between);
    match texts.len().saturating_sub(REPORTED) {
        0 => reported,
        more => format!("{reported}{between}and {more} more"),
    }
}

/// Returns `[a b c]` (spec 80 S-12).
pub(in crate::actors) fn bracketed(entries: &BTreeSet<String>) -> String {
    bracketed_within(usize::MAX, entries)
}

/// Returns the texts, each followed by its list, as a note of at most 1,024 bytes. Lists that do not fit end in
/// ` … and <n> more]` (spec 80 S-12). Short lists leave their room to longer ones.
pub(in crate::actors) fn note(parts: &[(&str, &BTreeSet<String>)]) -> String {
    let texts: usize = parts.iter().map(|(text, _)| text.len()).sum();
    let mut room = LONGEST_NOTE.saturating_sub(texts);
    let mut shortest_first: Vec<(usize, &BTreeSet<String>)> =
        parts.iter().map(|(_, entries)| *entries).enumerate().collect();
    shortest_first.sort_by_key(|(_, entries)| bracketed_length(entries));
    let mut lists = vec![String::new(); parts.len()];
    for (left, (position, entries)) in (1..=parts.len()).rev().zip(shortest_first) {
        let list = bracketed_within(room / left, entries);
        room = room.saturating_sub(list.len());
        if let Some(place) = lists.get_mut(position) {
            *place = list;
        }
    }
    parts.iter().zip(lists).map(|((text, _), list)| format!("{text}{list}")).collect()
}

fn bracketed_length(entries: &BTreeSet<String>) -> usize {
    let between = entries.len().saturating_sub(1);
    "[]".len() + between + entries.iter().map(String::len).sum::<usize>()
}

/// Returns the list with as many entries as fit into `room` bytes. Without any entry it may be longer than `room`.
fn bracketed_within(room: usize, entries: &BTreeSet<String>) -> String {
    if bracketed_length(entries) <= room {
        return format!("[{}]", entries.iter().map(String::as_str).collect::<Vec<_>>().join(" "));
    }
    let mut list = String::from("[");
    for (left, entry) in (1..=entries.len()).rev().zip(entries) {
        if list.len() + entry.len() + " ".len() + and_more(left - 1).len() > room {
            list.push_str(&and_more(left));
            break;
        }
        list.push_str(entry);
        list.push(' ');
    }
    list
}

fn and_more(count: usize) -> String {
    format!("… and {count} more]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(entries: impl IntoIterator<Item = impl Into<String>>) -> BTreeSet<String> {
        entries.into_iter().map(Into::into).collect()
    }

    fn shoots(count: usize) -> BTreeSet<String> {
        entries((0..count).map(|number| format!("garden-project/shoot-{number:04}")))
    }

    #[test]
    fn error_list_shows_up_to_ten_errors() {
        let texts: Vec<String> = (0..5_000).map(|number| format!("{number}{}", "x".repeat(10_000))).collect();
        let together = together(&texts, "; ");
        assert!(together.ends_with("; and 4990 more") && together.len() < 10_000, "{}", together.len());
        assert_eq!(super::together(&texts[..0], "; "), "");
    }

    /// spec 80 S-12
    #[test]
    fn bracketed_list_is_sorted_bytewise_and_whole() {
        assert_eq!(bracketed(&entries(["b/a", "a/é", "a/z", "a-b/c", "a/B"])), "[a-b/c a/B a/z a/é b/a]");
        assert_eq!(bracketed(&BTreeSet::new()), "[]");
        assert_eq!(bracketed(&shoots(500)).len(), 500 * 26 + 1);
    }

    /// spec 80 S-12
    #[test]
    fn note_says_how_many_entries_did_not_fit() {
        let text = "Cannot delete Quota, because of: ";

        let fitting = note(&[(text, &shoots(38))]);
        let long = note(&[(text, &shoots(1_000))]);

        assert_eq!(fitting, format!("{text}{}", bracketed(&shoots(38))));
        assert_eq!(long.len(), 1_013, "{long}");
        assert!(long.ends_with("garden-project/shoot-0036 … and 963 more]"), "{long}");
    }

    /// spec 80 S-12
    #[test]
    fn note_with_a_last_entry_that_does_not_fit_names_one_more() {
        let text = "x".repeat(LONGEST_NOTE - bracketed(&shoots(3)).len());

        assert_eq!(note(&[(&text, &shoots(3))]), format!("{text}{}", bracketed(&shoots(3))));
        let text = format!("{text}x");
        assert!(
            note(&[(&text, &shoots(3))])
                .ends_with("[garden-project/shoot-0000 garden-project/shoot-0001 … and 1 more]")
        );
    }

    /// spec 80 S-12
    #[test]
    fn note_without_room_for_any_entry_counts_all() {
        let text = "x".repeat(LONGEST_NOTE - 20);

        assert_eq!(note(&[(&text, &shoots(3))]), format!("{text}[… and 3 more]"));
    }

    /// spec 81 §3.1
    #[test]
    fn note_of_two_lists_leaves_the_room_of_a_short_list_to_the_long_one() {
        let (few, many) = (entries(["a/b"]), shoots(1_000));

        let first_is_long = note(&[("Secrets - ", &many), (", Credentials - ", &few)]);
        let both_are_long = note(&[("Secrets - ", &many), (", Credentials - ", &many)]);

        assert!(first_is_long.ends_with(" more], Credentials - [a/b]") && first_is_long.len() > 950, "{first_is_long}");
        let is_fair = both_are_long.matches("shoot-0017").count() == 2;
        assert!(is_fair && both_are_long.len() <= LONGEST_NOTE, "{both_are_long}");
    }

    /// spec 80 S-12
    #[test]
    fn note_never_exceeds_its_limit() {
        for length in 900..LONGEST_NOTE - 20 {
            for count in [1, 9, 10, 11, 1_000] {
                let text = "x".repeat(length);
                let note = note(&[(&text, &shoots(count))]);
                assert!(note.len() <= LONGEST_NOTE, "{}: {note}", note.len());
            }
        }
    }
}
