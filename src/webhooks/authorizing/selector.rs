//! Field selectors of reviews (spec 61 §2).

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor},
};

use super::text::MOST_ITEMS;
use crate::api::meta::field::shapes::{Keyed, Text};

const MULTIPLE: &str = "fieldSelectors do not yet support multiple values";
const IN_WITHOUT_VALUE: &str = "fieldSelectors in must have one value";
const NOT_IN_WITHOUT_VALUE: &str = "fieldSelectors not in must have one value";

/// A field selector as received. It is parsed only where it is needed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector<'a> {
    #[serde(borrow)]
    raw_selector: Text<'a>,
    requirements: Listed<'a>,
}

/// The requirements of a selector, and the error if some could not be parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements<'a> {
    /// All of them must hold.
    pub all: Vec<Requirement<'a>>,
    /// Why some are missing.
    pub error: Option<String>,
}

/// A requirement on a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement<'a> {
    /// The field has this value.
    Equals(Cow<'a, str>, Cow<'a, str>),
    /// The field has another value.
    NotEquals(Cow<'a, str>, Cow<'a, str>),
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Listed<'a>(Vec<Item<'a>>);

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    operator: Text<'a>,
    values: Values<'a>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Values<'a> {
    #[default]
    None,
    One(Cow<'a, str>),
    Several,
}

impl Selector<'_> {
    /// Returns the requirements. A list of requirements takes precedence over the raw selector.
    pub fn requirements(&self) -> Requirements<'_> {
        if self.requirements.0.is_empty() {
            return match parse(&self.raw_selector.0) {
                Ok(all) => Requirements { all, error: None },
                Err(error) => Requirements { all: Vec::new(), error: Some(error) },
            };
        }
        let mut found = Requirements::default();
        let mut errors: Vec<Cow<'_, str>> = Vec::new();
        for item in &self.requirements.0 {
            match item.requirement() {
                Ok(requirement) => found.all.push(requirement),
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        found.error = match errors.as_slice() {
            [] => None,
            [one] => Some(one.to_string()),
            several => Some(format!("[{}]", several.join(", "))),
        };
        found
    }
}

impl Item<'_> {
    fn requirement(&self) -> Result<Requirement<'_>, Cow<'static, str>> {
        let key = Cow::Borrowed(&*self.key.0);
        match (&*self.operator.0, &self.values) {
            ("In", Values::One(value)) => Ok(Requirement::Equals(key, Cow::Borrowed(value))),
            ("NotIn", Values::One(value)) => Ok(Requirement::NotEquals(key, Cow::Borrowed(value))),
            ("In", Values::None) => Err(IN_WITHOUT_VALUE.into()),
            ("NotIn", Values::None) => Err(NOT_IN_WITHOUT_VALUE.into()),
            ("In" | "NotIn", Values::Several) => Err(MULTIPLE.into()),
            (operator @ ("Exists" | "DoesNotExist"), _) => {
                Err(format!("fieldSelectors do not yet support {operator}").into())
            }
            (operator, _) => Err(format!("\"{operator}\" is not a valid field selector operator").into()),
        }
    }
}

/// Commas separate terms; `\` escapes the next character.
fn parse(text: &str) -> Result<Vec<Requirement<'_>>, String> {
    let terms = split(text).into_iter().filter(|term| !term.is_empty());
    terms.map(|term| requirement(term).unwrap_or_else(|| Err(not_understood(text, term)))).collect()
}

fn not_understood(text: &str, term: &str) -> String {
    format!("invalid selector: '{text}'; can't understand '{term}'")
}

fn split(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                terms.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Returns `None` if there is no operator.
fn requirement(term: &str) -> Option<Result<Requirement<'_>, String>> {
    let index = [term.find("!="), term.find('=')].into_iter().flatten().min()?;
    let (key, rest) = term.split_at(index);
    let key = Cow::Borrowed(key);
    Some(if let Some(value) = rest.strip_prefix("!=") {
        unescaped(value).map(|value| Requirement::NotEquals(key, value))
    } else {
        let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')).unwrap_or(rest);
        unescaped(value).map(|value| Requirement::Equals(key, value))
    })
}

fn unescaped(value: &str) -> Result<Cow<'_, str>, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {character}")),
            other => plain.push(other),
        }
    }
    Ok(Cow::Owned(plain))
}

impl<'de: 'a, 'a> Deserialize<'de> for Listed<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListedVisitor)
    }
}

struct ListedVisitor;

impl<'de> Visitor<'de> for ListedVisitor {
    type Value = Listed<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of requirements")
    }

    fn visit_unit<E: Error>(self) -> Result<Listed<'de>, E> {
        Ok(Listed::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Listed<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(Keyed(item)) = items.next_element::<Keyed<Item<'de>>>()? {
            if all.len() == MOST_ITEMS {
                return Err(A::Error::custom("too many requirements"));
            }
            all.push(item);
        }
        Ok(Listed(all))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Values<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_unit<E: Error>(self) -> Result<Values<'de>, E> {
        Ok(Values::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Values<'de>, A::Error> {
        let Some(Text(first)) = items.next_element()? else { return Ok(Values::None) };
        if items.next_element::<Text<'de>>()?.is_none() {
            return Ok(Values::One(first));
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Values::Several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equals<'a>(key: &'a str, value: &'a str) -> Requirement<'a> {
        Requirement::Equals(key.into(), value.into())
    }

    fn not_equals<'a>(key: &'a str, value: &'a str) -> Requirement<'a> {
        Requirement::NotEquals(key.into(), value.into())
    }

    /// spec 61 §2
    #[test]
    fn raw_selector_is_parsed_as_the_api_server_does() {
        let table = [
            ("", Ok(vec![])),
            (",", Ok(vec![])),
            ("a=b", Ok(vec![equals("a", "b")])),
            ("a==b,c!=d", Ok(vec![equals("a", "b"), not_equals("c", "d")])),
            ("a=,=b", Ok(vec![equals("a", ""), equals("", "b")])),
            ("a!b=c", Ok(vec![equals("a!b", "c")])),
            (r"a=b\,c\=d\\e", Ok(vec![equals("a", r"b,c=d\e")])),
            ("a", Err("invalid selector: 'a'; can't understand 'a'")),
            ("a=b,c!", Err("invalid selector: 'a=b,c!'; can't understand 'c!'")),
            ("a=b=c", Err("invalid field selector: unescaped character in value: =")),
            (r"a=b\c", Err(r"invalid field selector: invalid escape sequence: \c")),
            (r"a=b\", Err(r"invalid field selector: invalid escape sequence: \")),
        ];

        for (text, expected) in table {
            let selector = Selector { raw_selector: text.into(), ..Selector::default() };
            let Requirements { all, error } = selector.requirements();
            let found = error.map_or(Ok(all), Err);
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }

    /// spec 61 §2
    #[test]
    fn requirement_without_exactly_one_value_is_dropped_and_reported() {
        let table: [(&str, Vec<Requirement<'_>>, Option<&str>); 9] = [
            (r#"{"requirements": null, "rawSelector": "a=b"}"#, vec![equals("a", "b")], None),
            (
                r#"{"requirements": [{"key": "a", "operator": "In", "values": ["b"]}], "rawSelector": "x"}"#,
                vec![equals("a", "b")],
                None,
            ),
            (
                r#"{"requirements": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}"#,
                vec![not_equals("a", "b")],
                None,
            ),
            (r#"{"requirements": [{"key": "a", "operator": "In"}]}"#, vec![], Some(IN_WITHOUT_VALUE)),
            (
                r#"{"requirements": [{"key": "a", "operator": "NotIn", "values": []}]}"#,
                vec![],
                Some(NOT_IN_WITHOUT_VALUE),
            ),
            (
                r#"{"requirements": [{"operator": "In", "values": ["b", "c"]}, {"operator": "NotIn", "values": ["b", "c", "d"]}]}"#,
                vec![],
                Some(MULTIPLE),
            ),
            (r#"{"requirements": [{"operator": "Exists"}]}"#, vec![], Some("fieldSelectors do not yet support Exists")),
            (
                r#"{"requirements": [{"operator": "DoesNotExist"}]}"#,
                vec![],
                Some("fieldSelectors do not yet support DoesNotExist"),
            ),
            (
                r#"{"requirements": [{"operator": "x"}, {"key": "a", "operator": "In", "values": ["b"]}, {"operator": "In"}, {"operator": "In"}]}"#,
                vec![equals("a", "b")],
                Some(r#"["x" is not a valid field selector operator, fieldSelectors in must have one value]"#),
            ),
        ];

        for (json, all, error) in table {
            let selector: Selector<'_> = serde_json::from_str(json).unwrap();
            let error = error.map(str::to_owned);
            assert_eq!(selector.requirements(), Requirements { all, error }, "{json}");
        }
    }
}
