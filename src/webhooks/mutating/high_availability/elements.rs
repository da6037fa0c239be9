//! Elements of lists in raw JSON.

use serde_json::Value;

use crate::webhooks::fields::{self, WrongType};

/// How the place of an element is written, e.g. `spec.containers[0]`.
pub(super) fn place(list: &[&str], index: usize) -> String {
    format!("{}[{index}]", list.join("."))
}

/// A field of an element; `""` when it is absent, as it is for the API server.
pub(super) fn text<'a>(element: &'a Value, list: &[&str], index: usize, field: &str) -> Result<&'a str, WrongType> {
    let text = fields::text(element, &[field]).map_err(|error| error.below(&place(list, index)))?;
    Ok(text.unwrap_or_default())
}

/// Removes the elements with one of these texts in a field; the others keep their order. `list` is the path, for errors.
pub(super) fn remove(elements: &mut Vec<Value>, list: &[&str], field: &str, texts: &[&str]) -> Result<(), WrongType> {
    let mut kept = Vec::with_capacity(elements.len());
    for (index, element) in elements.drain(..).enumerate() {
        if !texts.contains(&text(&element, list, index, field)?) {
            kept.push(element);
        }
    }
    *elements = kept;
    Ok(())
}
