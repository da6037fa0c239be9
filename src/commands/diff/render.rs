use std::fmt::Write as _;

use anstyle::Style;
use similar::TextDiff;

use super::{Action, Change, Report};
use crate::commands::colours::{BOLD, CYAN, GREEN, PLAIN, RED, paint};

const CONTEXT: usize = 3;
const SUMMARY: [Action; 5] = [Action::Created, Action::Changed, Action::Deleted, Action::Released, Action::Unchanged];

impl Report {
    /// A diff for each created or changed object, a line for each deleted, released or kept one, and a summary.
    pub fn render(&self, colours: bool) -> String {
        let mut text = String::new();
        for change in self.changes.iter().filter(|change| change.action != Action::Unchanged) {
            headline(&mut text, change, colours);
            if change.before != change.after {
                body(&mut text, change, colours);
            }
        }
        let count = |action| self.changes.iter().filter(|change| change.action == action).count();
        let counts: Vec<String> = SUMMARY.map(|action| format!("{} {}", count(action), action.as_str())).into();
        let kept = count(Action::Kept);
        let kept = if kept > 0 { format!(", {kept} kept") } else { String::new() };
        writeln!(text, "{}{kept}", counts.join(", ")).unwrap_or_default();
        text
    }
}

fn headline(text: &mut String, change: &Change, colours: bool) {
    let note = if change.note.is_empty() { String::new() } else { format!(" ({})", change.note) };
    let line = format!("{} {}{note}", change.action.as_str(), change.object);
    push_line(text, &line, BOLD, colours);
}

fn body(text: &mut String, change: &Change, colours: bool) {
    let name = |side: &str, yaml: &str| {
        if yaml.is_empty() { "/dev/null".to_owned() } else { format!("{side}/{}", change.object) }
    };
    let (before, after) = (name("live", &change.before), name("bundle", &change.after));
    let diff = TextDiff::from_lines(change.before.as_str(), change.after.as_str());
    let unified = diff.unified_diff().context_radius(CONTEXT).header(&before, &after).to_string();
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
