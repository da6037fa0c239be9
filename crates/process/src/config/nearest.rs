//! The known name that a misspelt one resembles.

/// Longest misspelt name that is compared, in bytes. Known names are shorter.
const LONGEST: usize = 64;

/// Returns the known name that differs least from `name`, if at most a third of the letters differ. Upper and lower case
/// count as equal, because keys are often misspelt so.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let most = name.chars().count().max(3) / 3;
    let distances = known.into_iter().map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), known));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_differs_in_a_third_of_its_letters_at_most() {
        let known = ["enabled", "concurrentSyncs", "syncPeriod", "alwaysUpdate"];
        for (name, expected) in [
            ("enable", Some("enabled")),
            ("syncperiod", Some("syncPeriod")),
            ("synPeriod", Some("syncPeriod")),
            ("snycPeriod", Some("syncPeriod")),
            ("concurrentSync", Some("concurrentSyncs")),
            ("period", None),
            ("foo", None),
            ("", None),
            (&"e".repeat(100), None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest("a", []), None);
    }
}
