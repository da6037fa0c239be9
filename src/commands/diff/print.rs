//! Prints the reports one after the other.

use super::{
    Action, DiffError, Report,
    render::{Totals, title},
};
use crate::{
    cli::ReportFormat,
    commands::{
        OK,
        report::ReportList,
        screen::{Content, Screen},
    },
};

pub(in crate::commands) struct Printer<'f, 's, 'w> {
    screen: &'s mut Screen<'w>,
    list: Option<ReportList<'f>>,
    /// Whether the text names the ManagedResources.
    has_titles: bool,
    bundles: usize,
    totals: Totals,
    code: i32,
}

impl<'f, 's, 'w> Printer<'f, 's, 'w> {
    pub(in crate::commands) fn new(
        screen: &'s mut Screen<'w>,
        format: Option<&'f ReportFormat>,
        has_titles: bool,
    ) -> Self {
        let list = format.map(ReportList::new);
        Self { screen, list, has_titles, bundles: 0, totals: Totals::default(), code: OK }
    }

    /// Prints a report. Fails if a template takes too much.
    pub(in crate::commands) fn take(&mut self, report: Report) -> Result<(), DiffError> {
        self.bundles += 1;
        self.totals.add(&report.changes);
        self.code = self.code.max(report.exit_code());
        for remark in &report.remarks {
            let remark = if self.has_titles { about(remark, &report) } else { remark.clone() };
            self.screen.remark(&remark);
        }
        let content = self.content();
        let text = match &mut self.list {
            Some(list) => list.next(report.json())?,
            None => {
                let colours = self.screen.look.colours;
                let has_changes = report.changes.iter().any(|change| change.action != Action::Unchanged);
                let title = if self.has_titles && has_changes { title(&report.bundle, colours) } else { String::new() };
                title + &report.render(colours)
            }
        };
        self.screen.say(&text, content);
        Ok(())
    }

    fn content(&self) -> Content {
        if self.list.is_some() { Content::Data } else { Content::Painted }
    }

    /// Prints the summary, and returns the exit code. Fails if a template takes too much.
    pub(in crate::commands) fn end(self) -> Result<i32, DiffError> {
        let content = self.content();
        let text = match self.list {
            Some(list) => list.end()?,
            None if self.has_titles => {
                let s = if self.bundles == 1 { "" } else { "s" };
                format!("in {} ManagedResource{s}: {}", self.bundles, self.totals.line())
            }
            None => self.totals.line(),
        };
        self.screen.say(&text, content);
        Ok(self.code)
    }
}

/// Adds the ManagedResource to a remark that does not begin with it, after `warning: ` or `error: `.
fn about(remark: &str, report: &Report) -> String {
    let bundle = report.bundle.to_string();
    match remark.split_once(": ") {
        Some((_, text)) if text.starts_with(&bundle) => remark.to_owned(),
        Some((level @ ("warning" | "error"), text)) => format!("{level}: {bundle}: {text}"),
        _ => format!("{bundle}: {remark}"),
    }
}
