use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

struct Untyped<'a>(&'a Map<String, Value>);

impl Serialize for Untyped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.iter().filter(|(key, _)| *key != "apiVersion" && *key != "kind") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The JSON of `value` after `apiVersion`, `kind` and the opening brace.
pub(super) fn tail(value: &Value) -> Vec<u8> {
    let mut text = match value.as_object() {
        Some(map) => to_vec(&Untyped(map)),
        None => b"{}".to_vec(),
    };
    text.remove(0);
    text
}

/// Cannot fail: values made of JSON have string keys only.
pub(super) fn to_vec(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

pub(super) fn indent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let text = text.trim_ascii_end();
    for (index, &byte) in text.iter().enumerate() {
        let is_empty = matches!(text.get(index + 1), Some(b'}' | b']'));
        match byte {
            _ if in_string => {
                in_string = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
                out.push(byte);
            }
            b'"' => {
                in_string = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                depth += 1;
                out.push(byte);
                if !is_empty {
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if !matches!(text[index - 1], b'{' | b'[') {
                    line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn indented_text_says_the_same() {
        let value = json!({"a": [1, {"b": "x \" \\ {"}], "c": {}, "d": [], "e": null});

        let text = indent(&to_vec(&value));

        assert_eq!(text, serde_json::to_vec_pretty(&value).unwrap());
    }
}
