//! Rules that many fields share: required, immutable, of a format (spec 62 §2.6, §2.7, §4).

use std::fmt;

use serde::Serialize;

use crate::api::meta::field::{Errors, Path, Shown, shapes::Text};

pub(super) const REQUIRED: &str = "field is required";
const IMMUTABLE: &str = "field is immutable";

pub(super) fn required(field: &Path<'_>, value: &str, errors: &mut Errors) {
    required_if(value.is_empty(), field, errors);
}

pub(super) fn required_if(missing: bool, field: &Path<'_>, errors: &mut Errors) {
    if missing {
        errors.required(field, REQUIRED);
    }
}

/// The value is an enumeration, so an error shows it as JSON.
pub(super) fn one_of(field: &Path<'_>, value: &Text<'_>, supported: &[&str], errors: &mut Errors) {
    if !supported.contains(&&**value) {
        errors.unsupported(field, Shown::Json(value), supported);
    }
}

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

pub(super) fn immutable_text(field: &Path<'_>, new: &str, old: &str, errors: &mut Errors) {
    immutable_shown(new != old, field, Shown::Text(new), errors);
}

/// Adds an error if `changed`; `shown` is the value in the error.
pub(super) fn immutable_shown(changed: bool, field: &Path<'_>, shown: Shown<'_>, errors: &mut Errors) {
    if changed {
        errors.invalid(field, shown, IMMUTABLE);
    }
}

pub(super) fn each_invalid(field: &Path<'_>, value: &str, details: Vec<String>, errors: &mut Errors) {
    details.into_iter().for_each(|detail| errors.invalid(field, Shown::Text(value), detail));
}
