//! Bounded lists of texts in messages.

use crate::api::quote::cut;

const REPORTED: usize = 10;

/// Joins the first ten texts, each no longer than a message needs, and says how many more there are.
pub(in crate::actors) fn together(texts: &[String], between: &str) -> String {
    let reported: Vec<_> = texts.iter().take(REPORTED).map(|text| cut(text)).collect();
    let reported = reported.join(between);
    match texts.len().saturating_sub(REPORTED) {
        0 => reported,
        more => format!("{reported}{between}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_list_shows_up_to_ten_errors() {
        let texts: Vec<String> = (0..5_000).map(|number| format!("{number}{}", "x".repeat(10_000))).collect();
        let together = together(&texts, "; ");
        assert!(together.ends_with("; and 4990 more") && together.len() < 10_000, "{}", together.len());
        assert_eq!(super::together(&texts[..0], "; "), "");
    }
}
