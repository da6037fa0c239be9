//! The texts of `describe` and `events`.

use std::{collections::BTreeMap, fmt::Write as _};

use anstyle::Style;
use cluster::object::{self, ObjectKey};
use jiff::Timestamp;

use super::{
    description::{Description, class, created},
    documents::{Document, SecretContent},
    event::Event,
    live::ObjectState,
};
use crate::{
    actors::resource_manager::bundle::identity::{Equivalences, OldIndex},
    api::{
        meta::{
            age::age,
            conditions::{Condition, ConditionStatus},
        },
        resources::{condition_names::RESOURCES_PROGRESSING, keys::IGNORE, managed_resource::ResourceRef},
    },
    commands::{
        colours::{BOLD, GREEN, PLAIN, RED, YELLOW, paint},
        columns::{Cell, lines, plain, styled},
        output::one_line,
    },
};

const INDENT: &str = "  ";
const LIST: &str = " errors occurred: [";

/// When something is shown, and whether in colours.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) now: Timestamp,
    pub(super) colours: bool,
}

pub(super) fn description(description: &Description, shown: Shown) -> String {
    let mut text = head(description, shown);
    section(&mut text, "Conditions", shown);
    text.push_str(&conditions(&description.found.mr.status.conditions, shown));
    section(&mut text, "Events", shown);
    match &description.events {
        Ok(events) if events.is_empty() => text.push_str("  none\n"),
        Ok(events) => text.push_str(&self::events(events, false, false, INDENT, shown)),
        Err(error) => push_line(&mut text, &format!("  unknown: {error}")),
    }
    section(&mut text, &format!("Objects ({})", description.objects.len()), shown);
    match &description.contents {
        Some(contents) => text.push_str(&tree(description, contents, shown)),
        None if description.objects.is_empty() => text.push_str("  none\n"),
        None => {
            let rows: Vec<_> =
                description.objects.iter().map(|(object, state)| row(object.to_string(), state)).collect();
            text.push_str(&lines(&rows, INDENT, shown.colours));
        }
    }
    text
}

fn head(description: &Description, shown: Shown) -> String {
    let (mr, raw) = (&description.found.mr, &description.found.raw);
    let since = |text: Option<&str>| age(text.and_then(|text| text.parse().ok()), shown.now);
    let (generation, observed) = (mr.metadata.generation, mr.status.observed_generation);
    let generation =
        if generation == observed { generation.to_string() } else { format!("{generation}, observed is {observed}") };
    let ignored = if mr.is_ignored() { format!("yes, by the annotation {IGNORE}") } else { "no".to_owned() };
    let deleting = object::deletion_timestamp(raw).map(|since_when| format!("yes, for {}", since(Some(since_when))));
    let mut rows = vec![
        ("Name:", mr.metadata.name.clone()),
        ("Namespace:", mr.metadata.namespace.clone()),
        ("Class:", class(mr).to_owned()),
        ("Age:", since(created(raw))),
        ("Generation:", generation),
        ("Ignored:", ignored),
        ("Deleting:", deleting.unwrap_or_else(|| "no".to_owned())),
    ];
    for (index, (name, exists)) in description.secrets.iter().enumerate() {
        let note = match exists {
            Ok(true) => String::new(),
            Ok(false) => " (does not exist)".to_owned(),
            Err(error) => format!(" (unknown: {error})"),
        };
        rows.push((if index == 0 { "Secrets:" } else { "" }, format!("{name}{note}")));
    }
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(|(name, value)| vec![plain(name), plain(value)]).collect();
    lines(&rows, "", shown.colours)
}

/// A table of the conditions, each with the lines of its message below it.
fn conditions(conditions: &[Condition], shown: Shown) -> String {
    if conditions.is_empty() {
        return "  none has been reported yet\n".to_owned();
    }
    let head = ["TYPE", "STATUS", "SINCE", "REASON"].map(plain).to_vec();
    let row = |condition: &Condition| {
        let status = styled(condition.status.to_string(), style_of(condition));
        let since = plain(age(condition.last_transition_time, shown.now));
        vec![plain(&condition.kind), status, since, plain(&condition.reason)]
    };
    let rows: Vec<_> = std::iter::once(head).chain(conditions.iter().map(row)).collect();
    let table = lines(&rows, INDENT, shown.colours);
    let mut rows = table.lines();
    let mut text = String::new();
    text.extend(rows.next().map(|head| format!("{head}\n")));
    for (row, condition) in rows.zip(conditions) {
        writeln!(text, "{row}").ok();
        for line in message_lines(&condition.message) {
            push_line(&mut text, &format!("    {line}"));
        }
    }
    text
}

fn style_of(condition: &Condition) -> Style {
    let is_progress = condition.kind == RESOURCES_PROGRESSING;
    match &condition.status {
        ConditionStatus::True if is_progress => YELLOW,
        ConditionStatus::False if !is_progress => RED,
        ConditionStatus::True | ConditionStatus::False => GREEN,
        ConditionStatus::Unknown | ConditionStatus::Progressing | ConditionStatus::Other(_) => YELLOW,
    }
}

/// Splits a message into its errors (spec 10 §11.2). An error may have commas itself. So a comma ends an error only if the
/// next text begins with the same two words as the first error.
fn message_lines(message: &str) -> Vec<String> {
    let list = message.split_once(LIST).and_then(|(head, list)| Some((head, list.strip_suffix(']')?)));
    let Some((head, list)) = list else { return message.lines().map(str::to_owned).collect() };
    let begin: String = list.split_inclusive(' ').take(2).collect();
    let separator = format!(", {begin}");
    let errors = list.split(separator.as_str()).enumerate();
    let errors = errors.map(|(index, error)| if index == 0 { error.to_owned() } else { format!("{begin}{error}") });
    std::iter::once(format!("{head} errors occurred:")).chain(errors.map(|error| format!("  {error}"))).collect()
}

/// The columns of namespace and name are optional.
pub(super) fn events(events: &[Event], namespaces: bool, names: bool, indent: &str, shown: Shown) -> String {
    let all = ["NAMESPACE", "NAME", "LAST", "TYPE", "REASON", "COUNT", "MESSAGE"].map(plain);
    let row = |event: &Event| {
        let style = if event.kind == "Warning" { YELLOW } else { PLAIN };
        [
            plain(&event.about.namespace),
            plain(&event.about.name),
            plain(age(event.last, shown.now)),
            styled(&event.kind, style),
            plain(&event.reason),
            plain(event.count.to_string()),
            plain(&event.message),
        ]
    };
    let wanted = [namespaces, names, true, true, true, true, true];
    let chosen =
        |cells: [Cell; 7]| cells.into_iter().zip(wanted).filter_map(|(cell, is_wanted)| is_wanted.then_some(cell));
    let rows = std::iter::once(all).chain(events.iter().map(row));
    lines(&rows.map(|cells| chosen(cells).collect()).collect::<Vec<_>>(), indent, shown.colours)
}

fn row(object: String, state: &ObjectState) -> Vec<Cell> {
    vec![plain(object), styled(state.word(), style(state)), plain(state.message())]
}

fn style(state: &ObjectState) -> Style {
    match state {
        ObjectState::Healthy | ObjectState::Present => GREEN,
        ObjectState::Progressing(_) | ObjectState::Deleting(_) | ObjectState::Unknown(_) => YELLOW,
        ObjectState::Unhealthy(_) | ObjectState::Missing(_) => RED,
    }
}

/// ManagedResource → Secret → document → object. Objects that no document has come last. As the controller does it, an
/// object of an equivalent kind is the object of a document, too (spec 10 §10.3).
fn tree(description: &Description, contents: &[SecretContent], shown: Shown) -> String {
    let states: BTreeMap<ObjectKey, &(ResourceRef, ObjectState)> =
        description.objects.iter().map(|object| (object.0.key(), object)).collect();
    let equivalences = Equivalences::with(&description.found.mr.spec.equivalences);
    let mut known = OldIndex::new(description.objects.iter().map(|(reference, _)| (reference.key(), reference)));
    let mut branches: Vec<(String, Vec<Vec<Cell>>)> = Vec::new();
    for content in contents {
        let leaves = match &content.documents {
            Err(error) => vec![vec![styled(error, RED)]],
            Ok(documents) => {
                let object = |key: &ObjectKey| states.get(&known.find(key, &equivalences)?.key()).copied();
                leaves(documents, object)
            }
        };
        branches.push((format!("Secret {}", content.name), leaves));
    }
    let rest = known.not_found();
    if !rest.is_empty() {
        let rest = rest.into_iter().filter_map(|reference| states.get(&reference.key()));
        let leaves = rest.map(|(reference, state)| row(reference.to_string(), state)).collect();
        let all_read = contents.iter().all(SecretContent::is_read);
        let title = if all_read { "in no document" } else { "in no document that can be read" };
        branches.push((title.to_owned(), leaves));
    }
    let mut text = String::new();
    push_line(&mut text, &format!("  ManagedResource {}", description.found.mr.key()));
    let last_branch = branches.len().saturating_sub(1);
    for (index, (title, leaves)) in branches.iter().enumerate() {
        let (fork, trunk) = if index == last_branch { ("└── ", "    ") } else { ("├── ", "│   ") };
        push_line(&mut text, &format!("  {fork}{title}"));
        let last = leaves.len().saturating_sub(1);
        for (index, line) in lines(leaves, "", shown.colours).lines().enumerate() {
            let fork = if index == last { "└── " } else { "├── " };
            writeln!(text, "  {trunk}{fork}{line}").ok();
        }
    }
    text
}

/// Returns a line for each document. `object` returns the object of the status that has its key.
fn leaves<'a>(
    documents: &[Document],
    mut object: impl FnMut(&ObjectKey) -> Option<&'a (ResourceRef, ObjectState)>,
) -> Vec<Vec<Cell>> {
    let leaf = |document: &Document| {
        let place = plain(format!("{} document {}", document.data_key, document.number));
        let mut cells = match &document.object {
            Err(error) => vec![styled(format!("cannot be decoded: {error}"), RED)],
            Ok((key, display)) => match object(key) {
                Some((reference, state)) => row(reference.to_string(), state),
                None => vec![plain(display), styled("not in the status", YELLOW)],
            },
        };
        cells.insert(0, place);
        cells
    };
    documents.iter().map(leaf).collect()
}

fn section(text: &mut String, title: &str, shown: Shown) {
    writeln!(text, "\n{}", paint(&format!("{title}:"), BOLD, shown.colours)).ok();
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(&one_line(line));
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 10 §11.2
    #[test]
    fn message_has_one_line_for_each_error() {
        let several = "Could not apply: 2 errors occurred: [error during a: x, y, error during b: z]";

        assert_eq!(
            message_lines(several),
            ["Could not apply: 2 errors occurred:", "  error during a: x, y", "  error during b: z"]
        );
        assert_eq!(message_lines("one, two\nthree"), ["one, two", "three"]);
        assert!(message_lines("").is_empty());
    }
}
