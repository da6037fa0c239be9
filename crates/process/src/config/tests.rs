#![expect(unreachable_pub, reason = "blocks are public wherever they are declared")]

use std::time::Duration;

use kit::duration::GoDuration;

use super::*;
use crate::config_blocks;

const SCHEMA: ConfigSchema = ConfigSchema {
    api_version: "example.org/v1",
    kind: "Example",
    aliases: &[
        alias("block.former", "block.name", BothSpellings::OfficialWins),
        alias("other", "block", BothSpellings::MergeFields),
    ],
    without_effect: &["gone", "block.gone"],
    selecting: &["Selecting"],
};

const fn alias(accepted: &'static str, official: &'static str, both: BothSpellings) -> Alias {
    Alias { accepted, official, both, is_deprecated: true }
}

/// The configuration of these tests.
mod blocks {
    use super::*;

    config_blocks! {
        /// The file.
        pub struct Example {
            /// Group and version.
            pub api_version: String,
            /// Kind.
            pub kind: String,
            /// A block that can be off.
            pub block: Enabled<Block>,
            /// Selects something.
            pub selecting: Selecting,
        }

        /// A block.
        pub struct Block {
            /// A name.
            #[default = "nobody"]
            pub name: String,
            /// Workers.
            pub workers: Workers,
            /// A positive duration.
            pub period: Positive<10>,
        }

        /// Selects something.
        pub struct Selecting {
            /// A label.
            pub label: String,
        }
    }
}

use blocks::{Block, Example};

fn decoded(yaml: &str) -> Decoded<Example> {
    SCHEMA.decode(yaml.as_bytes()).expect("it is an example")
}

fn error(yaml: &str) -> String {
    SCHEMA.decode::<Example>(yaml.as_bytes()).expect_err("it is no example").to_string()
}

fn warnings(yaml: &str) -> Vec<String> {
    decoded(yaml).warnings.iter().map(Warning::to_string).collect()
}

#[test]
fn enabled_block_has_its_settings_beside_the_switch() {
    let block = |yaml: &str| decoded(yaml).config.block;

    assert_eq!(block("block: {enabled: true, name: a}").on().map(|block| &*block.name), Some("a"));
    assert_eq!(block("block: {enabled: false, name: a}").on(), None);
    assert_eq!(block("block: {name: a}").settings.name, "a");
    for absent in ["", "block:", "block: {}", "block: {enabled: null, name: null}"] {
        assert_eq!(block(absent), Enabled::default(), "{absent}");
    }
    assert_eq!(Enabled::<Block>::default().on(), None);
    let on = block("block: {enabled: true, workers: 0}");
    assert_eq!(json(&on), r#"{"enabled":true,"name":"nobody","workers":1,"period":"10s"}"#);
}

#[test]
fn enabled_block_reports_errors_and_unknown_keys_with_their_paths() {
    assert_eq!(error("block: {enabled: x}"), "block.enabled: invalid type: string, expected a boolean");
    assert_eq!(error("block: {name: 1}"), "block.name: invalid type: integer `1`, expected a string");
    assert_eq!(error("block: on"), "block: invalid type: boolean `true`, expected an object");
    assert_eq!(
        warnings("block: {enabled: true, Name: a}"),
        [r#"block.Name: Unknown configuration key is ignored; did you mean "name"?"#]
    );
    assert_eq!(
        warnings("block: {enable: true}"),
        [r#"block.enable: Unknown configuration key is ignored; did you mean "enabled"?"#]
    );
    assert_eq!(warnings("block: {colour: red}"), ["block.colour: Unknown configuration key is ignored"]);
    assert!(error("selecting: {Label: a}").starts_with("selecting: unknown key \"Label\""));
}

#[test]
fn former_key_takes_the_place_of_todays() {
    let former = decoded("block: {former: a, name: ''}");
    assert_eq!(former.config.block.settings.name, "a");
    assert!(former.was_moved("block.name") && !former.was_moved("block"));
    assert_eq!(former.warnings[0].to_string(), "block.former: Configuration key is deprecated (block.name)");

    let both = decoded("block: {former: a, name: b}");
    assert_eq!((both.config.block.settings.name.as_str(), both.warnings.len()), ("b", 1));
    let merged = decoded("block: {name: b}\nother: {name: a, workers: 3}").config.block.settings;
    assert_eq!((merged.name.as_str(), merged.workers.count()), ("b", 3));
    let error = error("block: {name: b}\nother: {workers: x}");
    assert_eq!(error, "other.workers: invalid type: string, expected i64");
}

#[test]
fn key_without_effect_is_accepted_with_a_warning() {
    let text = "Setting has no effect any more";
    assert_eq!(warnings("gone: [1]\nblock: {gone: {}}"), [format!("gone: {text}"), format!("block.gone: {text}")]);
    assert_eq!(warnings("gone:"), Vec::<String>::new());
}

#[test]
fn workers_are_at_least_one() {
    let counts = [i64::MIN, 0, 1, 7].map(|written| (Workers::new(written).written(), Workers::new(written).count()));

    assert_eq!(counts, [(i64::MIN, 1), (0, 1), (1, 1), (7, 7)]);
    assert_eq!(Workers::default().count(), 5);
}

#[test]
fn durations_have_a_default_and_a_meaning_below_zero() {
    let second = Duration::from_secs(1);
    let minus = GoDuration::from_secs(-1);

    assert_eq!(Period::<3>::default().get(), 3 * second);
    assert_eq!([Period::<3>::from(minus).get(), Period::<3>::from(GoDuration::ZERO).get()], [Duration::ZERO; 2]);
    assert_eq!(Positive::<3>::default().get(), 3 * second);
    assert_eq!([minus, GoDuration::ZERO].map(|it| Positive::<3>::from(it).get()), [3 * second; 2]);
    assert_eq!([minus, GoDuration::ZERO].map(|it| Positive::<3>::from(it).is_replaced()), [true; 2]);
    assert_eq!(Positive::<3>::from(minus).written(), minus);
    assert_eq!(Positive::<3>::from(second).get(), second);
}

#[test]
fn hash_is_that_of_the_meaning() {
    let hash = |yaml: &str| hash(&decoded(yaml).config);

    assert_eq!(hash("block: {name: a, workers: 3}"), hash(""));
    assert_eq!(hash("block: {enabled: true, workers: 0, period: -1s}"), hash("block: {enabled: true, workers: 1}"));
    assert_ne!(hash("block: {enabled: true}"), hash(""));
}

#[test]
fn warning_has_the_line_of_its_key_in_the_file() {
    let yaml = "block:\n  former: a\n  nam: b\ngone: 1\nother:\n  workrs: 1\n";
    let mut warnings = decoded(yaml).warnings;
    warnings.push(Warning::new("--flag", WarningKind::NoEffect));
    SCHEMA.locate(&mut warnings, yaml.as_bytes());

    let lines: Vec<_> = warnings.iter().map(|warning| (warning.path.as_str(), warning.line)).collect();
    let expected = [
        ("block.former", Some(2)),
        ("other", Some(5)),
        ("gone", Some(4)),
        ("block.nam", Some(3)),
        ("other.workrs", Some(6)),
        ("--flag", None),
    ];
    assert_eq!(lines, expected);
    let text = r#"/c:3: block.nam: Unknown configuration key is ignored; did you mean "name"?"#;
    assert_eq!(warnings[3].text(Some("/c")), text);
    assert_eq!(warnings[3].text(None), &text["/c:3: ".len()..]);
    assert_eq!(warnings[5].text(Some("/c")), "--flag: Setting has no effect any more");
}

#[test]
fn place_of_an_error_is_the_line_of_the_spelling_that_counts() {
    let place = |path: &str, yaml: &str| {
        SCHEMA.place(&ConfigError::Invalid(vec![FieldError::required(path, "")]), "/c", yaml.as_bytes())
    };
    let both = "block:\n  workers: 1\n  period: null\nother:\n  workers: 2\n  period: 1\n";

    for path in ["block.workers", "other.workers"] {
        assert_eq!(place(path, both), "/c, line 2", "{path}: a field of both is that of today's spelling");
        assert_eq!(place(path, &both.replacen("block", "x", 1)), "/c, line 5", "{path}");
        assert_eq!(place(path, &both.replacen("other", "x", 1)), "/c, line 2", "{path}");
    }
    for path in ["block.period", "other.period"] {
        assert_eq!(place(path, both), "/c, line 6", "{path}: null is no value");
    }
    let names = "block:\n  former: a\n  name: b\n";
    for path in ["block.name", "block.former"] {
        let line = if path == "block.name" { 3 } else { 2 };
        assert_eq!(place(path, names), format!("/c, line {line}"), "{path}");
    }
}

#[test]
fn place_of_an_error_is_the_file_with_the_lines_of_its_keys() {
    let yaml = "block:\n  workers: x\nother: {period: 1}\n";
    let place = |error: ConfigError| SCHEMA.place(&error, "/c", yaml.as_bytes());
    let invalid =
        |paths: &[&str]| ConfigError::Invalid(paths.iter().map(|path| FieldError::required(*path, "")).collect());

    let alone = b"block:\n  workers: x\n";
    let error = SCHEMA.decode::<Example>(alone).expect_err("it is no example");
    assert_eq!(SCHEMA.place(&error.into(), "/c", alone), "/c, line 2");
    assert_eq!(place(invalid(&["block.period"])), "/c, line 3", "the block has two spellings");
    assert_eq!(place(invalid(&["block.name"])), "/c, line 1", "it is absent, and the block counts");
    assert_eq!(place(invalid(&["selecting"])), "/c");
    let several = invalid(&["block.workers", "selecting", "block.period"]);
    assert_eq!(place(several), "/c, line 2: block.workers, line 3: block.period");
    assert_eq!(place(DecodeError::Syntax("at line 1".to_owned()).into()), "/c");
}
