//! Deeply nested JSON, and the thread stacks that hold it. API servers accept objects of [`MOST_LEVELS`] levels;
//! `serde_json` stops at 128. One unreadable object would make the list and the watch of its whole kind unreadable. So
//! [`from_slice`] reads what an API server accepts, and rejects deeper input before it becomes a tree: reading,
//! copying, comparing, writing and dropping a tree takes stack per level, and a stack that is too small ends the
//! process. Threads that hold trees have [`STACK`].

use serde::Deserialize;
use serde_json::{Deserializer, error::Category};

/// Maximum nesting of lists and maps in one object: what API servers store and read, `managedFields` included
/// (`maxNestingDepth` of `sigs.k8s.io/json`; measured with kube-apiserver 1.36 and a custom kind).
pub const MOST_LEVELS: usize = 10_000;

const AROUND: usize = 16; // levels around an object, e.g. those of a list or of an event

const SHALLOW: usize = 128; // `serde_json`'s own limit

const DEEPEST: usize = MOST_LEVELS + AROUND; // maximum nesting that is read, with the levels around an object

/// Stack in bytes of a thread that holds objects: 13 KiB per level. Measured for 10,000 levels of maps or of lists:
/// `serde_json` takes 6 MiB to read, copy, compare, write or drop them, and up to 24 MiB without optimisation. The
/// stack is address space; memory is only used where an object is that deep.
pub const STACK: usize = 128 << 20;

/// Reads JSON like [`serde_json::from_slice`], but down to [`MOST_LEVELS`]. Only for threads with [`STACK`].
pub fn from_slice<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    match serde_json::from_slice(bytes) {
        // Hardly any object is deep: only rejected input is read again, after its levels are counted.
        Err(error) if error.classify() == Category::Syntax => match levels(bytes) {
            0..SHALLOW => Err(error),
            SHALLOW..=DEEPEST => read(bytes),
            _ => Err(serde::de::Error::custom(too_deep(MOST_LEVELS))),
        },
        read => read,
    }
}

/// Weight of a map with fields in [`holds_at_most`]: a tree reserves room for eleven fields in it. An empty map counts 1.
pub const MAP: usize = 17;

/// Returns true if a tree of this JSON has at most `most` values, where a map counts [`MAP`]. Each of these takes 32 to
/// 64 bytes of memory. Not a parser: it also gives an answer for invalid JSON.
pub fn holds_at_most(most: usize, bytes: &[u8]) -> bool {
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count();
    // Brackets in strings count as well, which nearly always makes no difference.
    if count(b',') + count(b'[') + count(b'{') * MAP < most {
        return true;
    }
    let (mut values, mut in_empty_map) = (1_usize, false);
    for byte in outside_strings(bytes) {
        let is_empty_map = in_empty_map && byte == b'}';
        in_empty_map &= byte.is_ascii_whitespace();
        match byte {
            b',' | b'[' => values += 1,
            b'{' => (values, in_empty_map) = (values + MAP, true),
            b'}' if is_empty_map => values -= MAP - 1,
            _ => {}
        }
        if values > most + MAP {
            return false; // also if the last map is empty
        }
    }
    values <= most
}

/// Returns the error text for JSON with more levels than allowed.
pub fn too_deep(allowed: usize) -> String {
    format!("lists and maps are nested deeper than {allowed} levels")
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    let mut deserializer = Deserializer::from_slice(bytes);
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Returns the maximum nesting of brackets outside of strings; for invalid JSON at least as deep as a parser would go.
fn levels(bytes: &[u8]) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    for byte in outside_strings(bytes) {
        match byte {
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the bytes outside of strings. A string leaves its closing quote.
fn outside_strings(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    bytes.iter().copied().filter(move |byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
        !in_string
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde::de::IgnoredAny;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::on_a_large_stack;

    fn maps(levels: usize) -> String {
        "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)
    }

    fn lists(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn deep_json_within_the_limit_is_read_copied_compared_hashed_and_written() {
        on_a_large_stack(|| {
            for text in [maps(MOST_LEVELS), lists(MOST_LEVELS), maps(128), lists(127)] {
                let value: Value = from_slice(text.as_bytes()).unwrap();

                assert!(value.clone() == value);
                assert_eq!(value.to_string(), text);
                assert!(format!("{value:?}").len() > text.len());
            }
        });
    }

    #[test]
    fn deep_json_above_the_limit_is_rejected_before_it_is_a_tree() {
        for text in [maps(DEEPEST + 1), lists(DEEPEST + 1), "[".repeat(1 << 20), "{\"a\":".repeat(1 << 20)] {
            let error = from_slice::<Value>(text.as_bytes()).unwrap_err().to_string();

            assert_eq!(error, "lists and maps are nested deeper than 10000 levels");
        }
    }

    #[test]
    fn nesting_levels_ignore_brackets_in_strings() {
        let text = json!({ "a": "[\"{".repeat(20_000), "b\\": "\\", "c": "]" }).to_string();

        assert_eq!((levels(text.as_bytes()), levels(maps(300).as_bytes())), (1, 300));
        assert_eq!(levels(br#"[[],[[]],{"]":"\\"},[[[]]]]"#), 4);
    }

    #[test]
    fn value_count_ignores_strings() {
        for (text, values) in [
            ("1", 1),
            ("[1,2,3]", 4),
            (r#"{"a":1,"b":[2]}"#, MAP + 3),
            (r#"["{{{{[[[[,,,,\"{{{{","{"]"#, 3),
            (r#"[{},{ },{"a":{}},"{}"]"#, MAP + 8),
            (&maps(100), 100 * MAP + 1),
        ] {
            assert!(holds_at_most(values, text.as_bytes()), "{text}");
            assert!(!holds_at_most(values - 1, text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_rejected_as_by_serde_json() {
        on_a_large_stack(|| {
            for text in ["", "{", "[1,]", "{} x", &("[".repeat(300) + "x"), &(maps(300) + "}"), &lists(300)[1..]] {
                assert!(from_slice::<Value>(text.as_bytes()).is_err(), "{text}");
            }
            assert!(from_slice::<u8>(lists(300).as_bytes()).unwrap_err().to_string().contains("invalid type"));
        });
    }

    #[test]
    fn json_texts_may_be_borrowed() {
        let text = format!("{{\"deep\":{},\"kind\":\"A\"}}", maps(300));
        #[derive(serde::Deserialize)]
        struct Borrowing<'a> {
            #[serde(borrow)]
            kind: Cow<'a, str>,
            #[allow(dead_code, reason = "the reader skips it")]
            deep: IgnoredAny,
        }

        let read: Borrowing<'_> = from_slice(text.as_bytes()).unwrap();

        assert!(matches!(read.kind, Cow::Borrowed("A")));
    }
}
