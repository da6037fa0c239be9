//! A webhook that panics has answered: its panic is a verdict like another.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs one attempt of a webhook; the text of its panic if it panics.
pub(super) fn caught<T>(attempt: impl FnOnce() -> T) -> Result<T, String> {
    // On a panic nothing of the attempt is left but the view, which answers again as it did.
    catch_unwind(AssertUnwindSafe(attempt)).map_err(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("unknown cause").to_owned()
}
