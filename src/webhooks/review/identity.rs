//! The fields that an answer must repeat of its review (spec 50 §2.3).

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// Version, kind and UID of a review. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `apiVersion`, e.g. `admission.k8s.io/v1beta1`.
    pub api_version: String,
    /// `kind`, in practice `AdmissionReview`.
    pub kind: String,
    /// `request.uid`.
    pub uid: String,
}

struct Reading<'a> {
    found: &'a mut Identity,
    in_request: bool,
}

impl Identity {
    /// Returns the identity of a review that cannot be decoded or is cut off, as far as it stands before the error
    /// (spec 50, "better" 9). API servers write these fields first.
    pub fn found_in(body: &[u8]) -> Self {
        let mut found = Self::default();
        let reading = Reading { found: &mut found, in_request: false };
        reading.deserialize(&mut serde_json::Deserializer::from_slice(body)).ok();
        found
    }

    /// Sets the identity of a review that has neither version nor kind (spec 50 §2.3 rule 2).
    pub(in crate::webhooks) fn or_default(mut self) -> Self {
        if self.api_version.is_empty() && self.kind.is_empty() {
            self.api_version = "admission.k8s.io/v1".to_owned();
            self.kind = "AdmissionReview".to_owned();
        }
        self
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a review")
    }

    /// `null` counts as absent.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<String>()? {
            match (self.in_request, field.as_str()) {
                (false, "apiVersion") => self.found.api_version = text(&mut map)?,
                (false, "kind") => self.found.kind = text(&mut map)?,
                (false, "request") => map.next_value_seed(Reading { found: &mut *self.found, in_request: true })?,
                (true, "uid") => self.found.uid = text(&mut map)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
    Ok(map.next_value::<Option<String>>()?.unwrap_or_default())
}
