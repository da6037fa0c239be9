//! Messages of conditions.

use kit::quote::cut_within;

/// Longest message in bytes. The API server refuses objects beyond 1.5 MiB; each status write has all messages.
pub(super) const MESSAGE_LIMIT: usize = 30 * 1024;

/// Joins errors into one (spec 10 §13.6): the first in full, the others counted. Sort them first, for a stable text.
pub(crate) fn aggregate(prefix: &str, items: &[String]) -> String {
    let text = match items {
        [item] => format!("{prefix}: 1 error occurred: {item}"),
        items => format!("{prefix}: {} errors occurred: [{}]", items.len(), bounded_list(items, ", ")),
    };
    bounded(&text)
}

pub(super) fn bounded_list(items: &[String], separator: &str) -> String {
    const ROOM_FOR_FRAME: usize = 256;

    let mut text = String::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 && text.len() + separator.len() + item.len() > MESSAGE_LIMIT - ROOM_FOR_FRAME {
            text.push_str(&format!("{separator}… and {} more", items.len() - index));
            break;
        }
        if index > 0 {
            text.push_str(separator);
        }
        text.push_str(&cut_within(MESSAGE_LIMIT - ROOM_FOR_FRAME, item));
    }
    text
}

pub(crate) fn bounded(message: &str) -> String {
    cut_within(MESSAGE_LIMIT, message).into_owned()
}
