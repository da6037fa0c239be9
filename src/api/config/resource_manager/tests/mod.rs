//! Tests of the component configuration, one file per step, and their fixtures.

mod decoding;
mod defaults;
mod examples;
mod reference;
mod validation;

use super::*;

/// Loads these lines without leader election, which would need a namespace.
fn loaded(yaml: &str) -> Loaded {
    load(format!("leaderElection: {{leaderElect: false}}\n{yaml}").as_bytes()).expect("the configuration is valid")
}

fn config(yaml: &str) -> Config {
    loaded(yaml).config
}

fn findings(yaml: &str) -> Vec<String> {
    findings_of(&format!("leaderElection: {{leaderElect: false}}\n{yaml}"))
}

fn findings_of(yaml: &str) -> Vec<String> {
    match load(yaml.as_bytes()) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Invalid(errors)) => errors.iter().map(FieldError::to_string).collect(),
        Err(error) => panic!("not decodable: {error}"),
    }
}

fn decode_error(yaml: &str) -> String {
    load(yaml.as_bytes()).expect_err("the configuration is not decodable").to_string()
}

fn warnings(yaml: &str) -> Vec<String> {
    loaded(yaml).warnings.iter().map(Warning::to_string).collect()
}
