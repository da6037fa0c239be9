//! The values of `--output` and `--sort-by`. They are checked here, before any request.

use std::{ffi::OsStr, marker::PhantomData, str::FromStr};

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::jsonpath::{Path, Template};

const MOST_COLUMNS: usize = 64;

/// Output format of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportFormat {
    /// JSON.
    Json,
    /// The same content as YAML.
    Yaml,
    /// What a template makes of that content.
    JsonPath(Template),
}

/// Output format of `get`, other than the table that fits into the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputFormat {
    /// The table, with all columns, and PROBLEM in full.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Names only, one per line.
    Name,
    /// What a template makes of the objects.
    JsonPath(Template),
    /// A table with these columns; at least one.
    CustomColumns(Vec<CustomColumn>),
}

/// A column of a table that the user describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomColumn {
    /// The title.
    pub header: String,
    /// Where its values are in an object.
    pub path: Path,
}

/// What `get` sorts by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortBy {
    /// A column of the table.
    Column(TableColumn),
    /// A field of the objects.
    Path(Path),
}

/// The columns of the table of `get`, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the titles of the columns")]
pub enum TableColumn {
    Namespace,
    Name,
    Class,
    Applied,
    Healthy,
    Progressing,
    Objects,
    Age,
    Problem,
}

/// A format with the values that the help and the shell show.
pub(super) trait Format: FromStr<Err = String> + Clone + Send + Sync + 'static {
    const VALUES: &'static [(&'static str, &'static str)];
}

/// Reads a [`Format`].
#[derive(Debug)]
pub(super) struct FormatParser<T>(PhantomData<fn() -> T>);

const JSONPATH: (&str, &str) =
    ("jsonpath=", "What a template makes of that: jsonpath='{.a.b}'; docs/operations.md has the syntax");

impl Format for ReportFormat {
    const VALUES: &'static [(&'static str, &'static str)] =
        &[("json", "JSON"), ("yaml", "The same content as YAML"), JSONPATH];
}

impl Format for OutputFormat {
    const VALUES: &'static [(&'static str, &'static str)] = &[
        ("wide", "The table, with all columns, and PROBLEM in full"),
        ("json", "The objects as JSON"),
        ("yaml", "The objects as YAML"),
        ("name", "Names only, one per line"),
        JSONPATH,
        ("custom-columns=", "A table: custom-columns=<header>:<path>,…, e.g. NAME:.metadata.name"),
    ];
}

impl<T> FormatParser<T> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Clone for FormatParser<T> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

impl<T: Format> TypedValueParser for FormatParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parser = StringValueParser::new().try_map(|text: String| T::from_str(&text));
        parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::VALUES.iter().map(|(name, help)| PossibleValue::new(*name).help(*help))))
    }
}

impl FromStr for ReportFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("jsonpath=")) {
            ("json", _) => Ok(Self::Json),
            ("yaml", _) => Ok(Self::Yaml),
            (_, Some(template)) => Ok(Self::JsonPath(of_jsonpath(template)?)),
            (_, None) => Err("must be json, yaml or jsonpath=<template>".to_owned()),
        }
    }
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=').unwrap_or((text, "")) {
            ("wide", "") => Ok(Self::Wide),
            ("json", "") => Ok(Self::Json),
            ("yaml", "") => Ok(Self::Yaml),
            ("name", "") => Ok(Self::Name),
            ("jsonpath", template) => Ok(Self::JsonPath(of_jsonpath(template)?)),
            ("custom-columns", columns) => custom_columns(columns).map(Self::CustomColumns),
            _ => {
                Err("must be wide, json, yaml, name, jsonpath=<template> or custom-columns=<header>:<path>,…"
                    .to_owned())
            }
        }
    }
}

impl FromStr for SortBy {
    type Err = String;

    /// Reads the title of a column, in any case, or a JSONPath.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(column) = TableColumn::ALL.into_iter().find(|column| column.title().eq_ignore_ascii_case(text)) {
            return Ok(Self::Column(column));
        }
        if !text.contains(['.', '{', '[']) {
            let titles = TableColumn::ALL.map(TableColumn::title).join(", ");
            return Err(format!("must be a column ({titles}) or a JSONPath such as .metadata.name"));
        }
        text.parse().map(Self::Path).map_err(|error| format!("not a JSONPath: {error}"))
    }
}

impl TableColumn {
    /// All columns, in their order.
    pub const ALL: [Self; 9] = [
        Self::Namespace,
        Self::Name,
        Self::Class,
        Self::Applied,
        Self::Healthy,
        Self::Progressing,
        Self::Objects,
        Self::Age,
        Self::Problem,
    ];

    /// Returns the title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Namespace => "NAMESPACE",
            Self::Name => "NAME",
            Self::Class => "CLASS",
            Self::Applied => "APPLIED",
            Self::Healthy => "HEALTHY",
            Self::Progressing => "PROGRESSING",
            Self::Objects => "OBJECTS",
            Self::Age => "AGE",
            Self::Problem => "PROBLEM",
        }
    }
}

fn of_jsonpath(template: &str) -> Result<Template, String> {
    template.parse().map_err(|error| format!("not a JSONPath template: {error}"))
}

fn custom_columns(text: &str) -> Result<Vec<CustomColumn>, String> {
    let parts = split(text);
    if parts.len() > MOST_COLUMNS {
        return Err(format!("more than {MOST_COLUMNS} columns"));
    }
    let column = |part: &str| {
        let (header, path) = part
            .split_once(':')
            .filter(|(header, path)| !header.is_empty() && !path.is_empty())
            .ok_or_else(|| format!("the column {part:?} is not <header>:<path>, e.g. NAME:.metadata.name"))?;
        let path = path.parse().map_err(|error| format!("column {header:?}: not a JSONPath: {error}"))?;
        Ok(CustomColumn { header: header.to_owned(), path })
    };
    parts.into_iter().map(column).collect()
}

/// Splits at commas outside of brackets and quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    text.split(move |character| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match (character, quote) {
            ('\\', _) => is_escaped = true,
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(character),
            ('[', None) => depth += 1,
            (']', None) => depth = depth.saturating_sub(1),
            (',', None) => return depth == 0,
            _ => {}
        }
        false
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_format_takes_templates_and_columns() {
        let template = |text: &str| text.parse::<Template>().unwrap();
        let columns = |text: &str| match text.parse::<OutputFormat>() {
            Ok(OutputFormat::CustomColumns(columns)) => {
                columns.into_iter().map(|column| column.header).collect::<Vec<_>>()
            }
            other => panic!("{text}: {other:?}"),
        };

        assert_eq!("yaml".parse(), Ok(OutputFormat::Yaml));
        assert_eq!("jsonpath={.a}=".parse(), Ok(OutputFormat::JsonPath(template("{.a}="))));
        assert_eq!("jsonpath={.a}".parse(), Ok(ReportFormat::JsonPath(template("{.a}"))));
        assert_eq!(columns("custom-columns=NAME:.metadata.name,B:b"), ["NAME", "B"]);
        assert_eq!(columns(r#"custom-columns=A:.a[?(@.b=="x,y]")].c,L:.labels.x\,y,B:['k,']"#), ["A", "L", "B"]);
    }

    #[test]
    fn output_format_that_is_wrong_names_the_remedy() {
        let table = [
            ("table", "must be wide, json, yaml, name, jsonpath=<template> or custom-columns=<header>:<path>,…"),
            ("json=x", "must be wide, json, yaml, name, jsonpath=<template> or custom-columns=<header>:<path>,…"),
            ("jsonpath", "not a JSONPath template: there is no expression in braces"),
            ("jsonpath={.a..b}", "not a JSONPath template: recursive descent is not supported"),
            ("custom-columns=", "the column \"\" is not <header>:<path>"),
            ("custom-columns=A:.a,", "the column \"\" is not <header>:<path>"),
            ("custom-columns=A", "the column \"A\" is not <header>:<path>"),
            ("custom-columns=A:.a[", "column \"A\": not a JSONPath: expected a number"),
        ];

        for (text, expected) in table {
            let error = text.parse::<OutputFormat>().expect_err(text);

            assert!(error.starts_with(expected), "{text}: {error}");
        }
        let many = vec!["A:.a"; 65].join(",");
        assert_eq!(format!("custom-columns={many}").parse::<OutputFormat>(), Err("more than 64 columns".to_owned()));
        assert_eq!("wide".parse::<ReportFormat>(), Err("must be json, yaml or jsonpath=<template>".to_owned()));
    }

    #[test]
    fn sort_column_is_a_title_or_a_path() {
        assert_eq!("age".parse(), Ok(SortBy::Column(TableColumn::Age)));
        assert_eq!("{.spec.class}".parse(), Ok(SortBy::Path(".spec.class".parse().unwrap())));
        let error = "size".parse::<SortBy>().unwrap_err();
        assert!(error.starts_with("must be a column (NAMESPACE, NAME, CLASS, "), "{error}");
        assert!(".a[1:2]".parse::<SortBy>().unwrap_err().starts_with("not a JSONPath: slices are not supported"));
    }
}
