//! Lists of texts in messages: bounded, whatever they come from.

use crate::api::quote::cut;

/// Texts of a list that are told; of more the number is.
const TOLD: usize = 10;

/// Texts as one: the first ten, each no longer than a message needs, and how many there are more.
pub(in crate::actors) fn together(texts: &[String], between: &str) -> String {
    let told: Vec<_> = texts.iter().take(TOLD).map(|text| cut(text)).collect();
    let told = told.join(between);
    match texts.len().saturating_sub(TOLD) {
        0 => told,
        more => format!("{told}{between}and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_pass_are_told_up_to_ten() {
        let texts: Vec<String> = (0..5_000).map(|number| format!("{number}{}", "x".repeat(10_000))).collect();
        let together = together(&texts, "; ");
        assert!(together.ends_with("; and 4990 more") && together.len() < 10_000, "{}", together.len());
        assert_eq!(super::together(&texts[..0], "; "), "");
    }
}
