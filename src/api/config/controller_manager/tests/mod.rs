//! Tests of the configuration, by what they are about, and their fixtures.

mod decoding;
mod defaults;
mod examples;
mod validation;

use super::*;

fn loaded(yaml: &str) -> Loaded {
    load(yaml.as_bytes(), None).expect("the configuration is valid")
}

fn config(yaml: &str) -> Config {
    loaded(yaml).config
}

fn error(yaml: &str) -> String {
    load(yaml.as_bytes(), None).expect_err("the configuration is not valid").to_string()
}

fn findings(yaml: &str) -> Vec<String> {
    match load(yaml.as_bytes(), None) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Invalid(errors)) => errors.iter().map(FieldError::to_string).collect(),
        Err(error) => panic!("not validated: {error}"),
    }
}

fn warnings(yaml: &str) -> Vec<String> {
    loaded(yaml).warnings.iter().map(Warning::to_string).collect()
}
