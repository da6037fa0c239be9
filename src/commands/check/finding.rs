use std::{cmp::Reverse, fmt};

use serde_json::{Value, json};

use crate::{
    cli::ReportFormat,
    commands::{
        DIFFERENT, OK, Said,
        colours::{GREEN, RED, YELLOW},
        columns::{Cell, lines, plain, styled},
        output::foreign,
        report,
        screen::Content,
    },
    jsonpath::TooMuch,
};

/// One thing that the program needs, and whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// `cluster`, `kind`, `right` or `certificate`.
    pub(super) topic: &'static str,
    /// Name of the cluster; empty for the process itself.
    pub(super) cluster: &'static str,
    /// Empty for all namespaces.
    pub(super) namespace: String,
    pub(super) what: String,
    pub(super) outcome: Outcome,
    pub(super) detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Good,
    /// It is not as it should be, and the program works.
    Note,
    Missing,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Note => "note",
            Self::Missing => "missing",
        }
    }
}

impl Finding {
    /// In all namespaces, and without detail.
    pub(super) fn new(topic: &'static str, cluster: &'static str, what: impl Into<String>, outcome: Outcome) -> Self {
        Self { topic, cluster, namespace: String::new(), what: what.into(), outcome, detail: String::new() }
    }

    /// With a detail, which may be the text of a server's answer.
    pub(super) fn because(self, detail: impl fmt::Display) -> Self {
        Self { detail: foreign(&detail.to_string()), ..self }
    }

    fn json(&self) -> Value {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json!({
            "check": self.topic, "cluster": given(self.cluster), "namespace": given(&self.namespace),
            "what": self.what, "result": self.outcome.as_str(), "detail": given(&self.detail),
        })
    }

    fn row(&self) -> Vec<Cell> {
        let style = match self.outcome {
            Outcome::Good => GREEN,
            Outcome::Note => YELLOW,
            Outcome::Missing => RED,
        };
        let result = styled(self.outcome.as_str(), style);
        vec![
            plain(self.topic),
            plain(self.cluster),
            plain(&self.namespace),
            result,
            plain(&self.what),
            plain(&self.detail),
        ]
    }
}

/// Prints the findings: what is missing first. The exit code is 1 if something is missing.
pub(super) fn said(findings: &[Finding], format: Option<&ReportFormat>, colours: bool) -> Result<Said, TooMuch> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| Reverse(finding.outcome));
    let (out, content) = match format {
        Some(format) => (report::list(sorted.iter().map(|finding| finding.json()), format)?, Content::Data),
        None => {
            let head = ["CHECK", "CLUSTER", "NAMESPACE", "RESULT", "WHAT", "DETAIL"].map(plain).to_vec();
            let rows: Vec<_> = std::iter::once(head).chain(sorted.iter().map(|finding| finding.row())).collect();
            (lines(&rows, "", colours), Content::Painted)
        }
    };
    let count = |outcome| findings.iter().filter(|finding| finding.outcome == outcome).count();
    let (missing, notes) = (count(Outcome::Missing), count(Outcome::Note));
    let remark = format!("checks: {}, missing: {missing}, notes: {notes}", findings.len());
    Ok(Said { out, content, remarks: vec![remark], code: if missing > 0 { DIFFERENT } else { OK } })
}
