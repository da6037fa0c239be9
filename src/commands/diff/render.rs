use anstyle::Style;
use cluster::object::NamespacedName;
use similar::TextDiff;

use super::{Action, Change, Report};
use crate::{
    commands::{
        colours::{BOLD, CYAN, GREEN, PLAIN, RED, paint},
        output::one_line,
    },
    producer::yaml,
};

const CONTEXT: usize = 3;
const SUMMARY: [Action; 5] = [Action::Created, Action::Changed, Action::Deleted, Action::Released, Action::Unchanged];

/// How many objects have which fate.
#[derive(Debug, Default)]
pub(super) struct Totals([usize; SUMMARY.len() + 1]);

impl Totals {
    pub(super) fn add(&mut self, changes: &[Change]) {
        for (count, action) in self.0.iter_mut().zip(SUMMARY.into_iter().chain([Action::Kept])) {
            *count += changes.iter().filter(|change| change.action == action).count();
        }
    }

    /// Returns one line.
    pub(super) fn line(&self) -> String {
        let [others @ .., kept] = &self.0;
        let counts: Vec<String> =
            others.iter().zip(SUMMARY).map(|(count, action)| format!("{count} {}", action.as_str())).collect();
        let kept = if *kept > 0 { format!(", {kept} kept") } else { String::new() };
        format!("{}{kept}\n", counts.join(", "))
    }
}

impl Report {
    /// A diff for each created or changed object, and a line for each deleted, released or kept one.
    pub fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for change in self.changes.iter().filter(|change| change.action != Action::Unchanged) {
            headline(&mut text, change, colours);
            if change.before != change.after {
                body(&mut text, change, colours);
            }
        }
        text
    }
}

/// Returns the line above the changes of one of several bundles.
pub(super) fn title(bundle: &NamespacedName, colours: bool) -> String {
    let mut text = String::new();
    push_line(&mut text, &one_line(&format!("ManagedResource {bundle}:")), BOLD, colours);
    text
}

fn headline(text: &mut String, change: &Change, colours: bool) {
    let note = if change.note.is_empty() { String::new() } else { format!(" ({})", change.note) };
    let line = format!("{} {}{note}", change.action.as_str(), change.object);
    push_line(text, &line, BOLD, colours);
}

fn body(text: &mut String, change: &Change, colours: bool) {
    let [before, after] = [&change.before, &change.after].map(|object| object.as_ref().map(yaml::document));
    let name = |side: &str, yaml: &Option<String>| match yaml {
        None => "/dev/null".to_owned(),
        Some(_) => format!("{side}/{}", change.object),
    };
    let names = (name("live", &before), name("bundle", &after));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let diff = TextDiff::from_lines(before.as_str(), after.as_str());
    let unified = diff.unified_diff().context_radius(CONTEXT).header(&names.0, &names.1).to_string();
    for line in unified.lines() {
        let colour = match line.as_bytes().first() {
            Some(b'-') => RED,
            Some(b'+') => GREEN,
            Some(b'@') => CYAN,
            Some(_) | None => PLAIN,
        };
        push_line(text, line, colour, colours);
    }
    text.push('\n');
}

/// The line has no control characters that could steer the terminal: the YAML writer escapes all but tabs.
fn push_line(text: &mut String, line: &str, style: Style, colours: bool) {
    text.push_str(&paint(line, style, colours));
    text.push('\n');
}
