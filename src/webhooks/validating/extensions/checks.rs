//! Rules that many fields have: something is missing, or has changed, or is not of its format (spec 62 §2.6, §2.7, §4).

use std::fmt;

use serde::Serialize;

use crate::api::field::{Errors, Path, Shown};

/// Detail of a field that must be there.
pub(super) const REQUIRED: &str = "field is required";
const IMMUTABLE: &str = "field is immutable";

/// The field must not be empty.
pub(super) fn required(field: &Path<'_>, value: &str, errors: &mut Errors) {
    required_if(value.is_empty(), field, errors);
}

/// The field must not be missing, as it is if `missing`.
pub(super) fn required_if(missing: bool, field: &Path<'_>, errors: &mut Errors) {
    if missing {
        errors.required(field, REQUIRED);
    }
}

/// A value must not change.
pub(super) fn immutable<T: PartialEq + Serialize + fmt::Debug>(
    field: &Path<'_>,
    new: &T,
    old: &T,
    errors: &mut Errors,
) {
    if new != old {
        errors.invalid(field, Shown::Json(new), IMMUTABLE);
    }
}

/// A text must not change.
pub(super) fn immutable_text(field: &Path<'_>, new: &str, old: &str, errors: &mut Errors) {
    immutable_shown(new != old, field, Shown::Text(new), errors);
}

/// A value that is shown so has changed, if `changed`.
pub(super) fn immutable_shown(changed: bool, field: &Path<'_>, shown: Shown<'_>, errors: &mut Errors) {
    if changed {
        errors.invalid(field, shown, IMMUTABLE);
    }
}

/// An error for each detail that a format has against a text.
pub(super) fn each_invalid(field: &Path<'_>, value: &str, details: Vec<String>, errors: &mut Errors) {
    details.into_iter().for_each(|detail| errors.invalid(field, Shown::Text(value), detail));
}
