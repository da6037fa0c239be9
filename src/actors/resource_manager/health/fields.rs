//! Reads fields for checks (spec 20 §11.1). Absent is 0 or empty; another type is an error: kinds may be custom.

use serde_json::Value;

use crate::api::meta::fields::{self, WrongType, wrong};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// A rule is broken; the text is the condition's.
    Bad(String),
    /// A field that a rule needs has the wrong type.
    Unreadable(String),
}

pub(super) type Check = Result<(), Trouble>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Condition<'a> {
    fields: &'a Value,
    kind: &'a str,
}

pub(super) fn bad(text: impl Into<String>) -> Check {
    Err(Trouble::Bad(text.into()))
}

/// Fails if `status.observedGeneration` is behind `metadata.generation`, or if either is no integer.
pub(super) fn generation_observed(object: &Value) -> Check {
    not_outdated(number(object, "status.observedGeneration")?, object)
}

fn not_outdated(observed: i64, object: &Value) -> Check {
    let generation = number(object, "metadata.generation")?;
    if observed < generation {
        return bad(format!("observed generation outdated ({observed}/{generation})"));
    }
    Ok(())
}

/// Returns the value at a path, `None` if absent or null. Fails if a field on the way is neither absent nor a map.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, Trouble> {
    Ok(fields::value(object, &names(path))?)
}

pub(super) fn number(object: &Value, path: &str) -> Result<i64, Trouble> {
    Ok(optional_number(object, path)?.unwrap_or_default())
}

pub(super) fn optional_number(object: &Value, path: &str) -> Result<Option<i64>, Trouble> {
    Ok(fields::integer(object, &names(path))?)
}

/// Returns the wanted replicas: 1 if the object does not say.
pub(super) fn replicas(object: &Value) -> Result<i64, Trouble> {
    Ok(optional_number(object, "spec.replicas")?.unwrap_or(1))
}

pub(super) fn text<'a>(object: &'a Value, path: &str) -> Result<&'a str, Trouble> {
    Ok(fields::text(object, &names(path))?.unwrap_or_default())
}

pub(super) fn list<'a>(object: &'a Value, path: &str) -> Result<&'a [Value], Trouble> {
    Ok(fields::list(object, &names(path))?)
}

fn names(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// Returns the first condition of a type, if any. Fails if `status.conditions` is not a list of maps with a type.
pub(super) fn condition<'a>(object: &'a Value, kind: &'a str) -> Result<Option<Condition<'a>>, Trouble> {
    for (index, fields) in list(object, "status.conditions")?.iter().enumerate() {
        if !fields.is_object() {
            return Err(wrong(&["status", "conditions", &format!("[{index}]")], "a map", fields).into());
        }
        if text(fields, "type").map_err(of_conditions)? == kind {
            return Ok(Some(Condition { fields, kind }));
        }
    }
    Ok(None)
}

pub(super) fn required<'a>(object: &'a Value, kind: &'a str) -> Result<Condition<'a>, Trouble> {
    condition(object, kind)?.ok_or_else(|| Trouble::Bad(format!("condition \"{kind}\" is missing")))
}

pub(super) fn must_be(object: &Value, kind: &str, expected: &str) -> Check {
    required(object, kind)?.is(expected)
}

/// Fails if the condition exists with another status, and as [`condition`] does.
pub(super) fn may_be(object: &Value, kind: &str, expected: &str) -> Check {
    condition(object, kind)?.map_or(Ok(()), |condition| condition.is(expected))
}

fn of_conditions(trouble: Trouble) -> Trouble {
    match trouble {
        Trouble::Unreadable(text) => Trouble::Unreadable(format!("status.conditions: {text}")),
        bad @ Trouble::Bad(_) => bad,
    }
}

impl From<WrongType> for Trouble {
    fn from(error: WrongType) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl<'a> Condition<'a> {
    pub(super) fn status(&self) -> Result<&'a str, Trouble> {
        self.text("status")
    }

    pub(super) fn reason(&self) -> Result<&'a str, Trouble> {
        self.text("reason")
    }

    pub(super) fn message(&self) -> Result<&'a str, Trouble> {
        self.text("message")
    }

    /// Fails if the condition has another status, with the text of spec 20 §11.1.
    pub(super) fn is(&self, expected: &str) -> Check {
        let status = self.status()?;
        if status == expected {
            return Ok(());
        }
        let (kind, reason, message) = (self.kind, self.reason()?, self.message()?);
        bad(format!(
            "condition \"{kind}\" has invalid status {status} (expected {expected}) due to {reason}: {message}"
        ))
    }

    pub(super) fn generation_observed(&self, object: &Value) -> Check {
        not_outdated(number(self.fields, "observedGeneration").map_err(of_conditions)?, object)
    }

    fn text(&self, field: &str) -> Result<&'a str, Trouble> {
        text(self.fields, field).map_err(of_conditions)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_absent_or_null_have_defaults() {
        for object in [json!({}), json!({"status": null}), json!({"status": {"a": null}})] {
            assert_eq!(number(&object, "status.a"), Ok(0));
            assert_eq!(optional_number(&object, "status.a"), Ok(None));
            assert_eq!(text(&object, "status.a"), Ok(""));
            assert_eq!(list(&object, "status.a"), Ok(&[][..]));
        }
    }

    #[test]
    fn fields_of_another_type_are_named() {
        let object = json!({"status": {"a": {"b": "x"}, "n": 1.5, "big": u64::MAX}, "spec": 3});
        let unreadable = |text: &str| Trouble::Unreadable(text.to_owned());

        assert_eq!(number(&object, "status.a.b"), Err(unreadable("status.a.b: expected an integer, found a string")));
        assert_eq!(number(&object, "status.n"), Err(unreadable("status.n: expected an integer, found a number")));
        assert_eq!(number(&object, "status.big"), Err(unreadable("status.big: expected an integer, found a number")));
        assert_eq!(text(&object, "status.a"), Err(unreadable("status.a: expected a string, found a map")));
        assert_eq!(list(&object, "status.a"), Err(unreadable("status.a: expected a list, found a map")));
        assert_eq!(number(&object, "spec.replicas"), Err(unreadable("spec: expected a map, found a number")));
        assert_eq!(number(&object, "status.a.b.c"), Err(unreadable("status.a.b: expected a map, found a string")));
    }

    #[test]
    fn conditions_of_the_same_type_count_by_the_first() {
        let object = json!({"status": {"conditions": [
            {"type": "A", "status": "True"}, {"type": "B", "status": "False"}, {"type": "B", "status": "True"}]}});

        let text = "condition \"B\" has invalid status False (expected True) due to : ";
        assert_eq!(must_be(&object, "B", "True"), bad(text));
        assert_eq!(may_be(&object, "C", "True"), Ok(()));
        assert_eq!(must_be(&object, "C", "True"), bad("condition \"C\" is missing"));
    }

    #[test]
    fn conditions_of_a_wrong_shape_are_unreadable() {
        for (conditions, text) in [
            (json!("x"), "status.conditions: expected a list, found a string"),
            (json!(["x"]), "status.conditions[0]: expected a map, found a string"),
            (json!([{"type": 1}]), "status.conditions: type: expected a string, found a number"),
            (json!([{"type": "A", "status": true}]), "status.conditions: status: expected a string, found a boolean"),
        ] {
            let object = json!({"status": {"conditions": conditions}});

            assert_eq!(must_be(&object, "A", "True"), Err(Trouble::Unreadable(text.to_owned())));
        }
    }
}
