//! Why an object could not be applied (spec 10 §11.7).

use std::fmt;

use cluster::ApiError;

use super::super::remove::clean::invalid_update;

/// Its text is the condition's (spec 10 §11.7).
#[derive(Debug, Clone)]
pub(crate) struct ObjectError {
    text: String,
    no_match: bool,
    /// The object was as described before, and was deleted so that it can be created anew.
    replaced: bool,
}

impl ObjectError {
    pub(super) fn text(text: String) -> Self {
        Self { text, no_match: false, replaced: false }
    }

    pub(super) fn during(display: &str, error: &dyn fmt::Display) -> Self {
        Self::text(invalid_update::apply_error(display, &error.to_string()))
    }

    /// The text of a conflict stays as it is (spec 10 §11.7).
    pub(super) fn api(display: &str, error: &ApiError) -> Self {
        if error.is_conflict() {
            return Self::text(error.to_string());
        }
        Self { no_match: error.is_no_match() || error.is_not_served(), ..Self::during(display, error) }
    }

    pub(super) fn of_replaced(text: String) -> Self {
        Self { replaced: true, ..Self::text(text) }
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.replaced
    }

    pub(super) fn is_no_match(&self) -> bool {
        self.no_match
    }
}

impl fmt::Display for ObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
