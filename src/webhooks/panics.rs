//! Turns a webhook's panic into a result that is answered like any other.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

pub(super) fn caught<T>(attempt: impl FnOnce() -> T) -> Result<T, String> {
    // Unwind safe: a panic leaves nothing of the attempt behind except the view, whose answers do not change.
    catch_unwind(AssertUnwindSafe(attempt)).map_err(|panic| text_of(&*panic))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("unknown cause").to_owned()
}
