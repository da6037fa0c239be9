//! Reads a part of a JSON value. The rest is skipped, however large or deep it is.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{Budget, Json, Key, once};

/// The part of a value that is read.
#[derive(Debug, Clone, Copy)]
pub enum Keep {
    /// Everything.
    All,
    /// Maps: this part of the values under these keys. Lists: nothing. Other values: everything.
    Only(&'static [(&'static str, Keep)]),
    /// Maps: all, but only this part (`None`: nothing) of the values under these keys. Lists: nothing. Others: all.
    Except(&'static [(&'static str, Option<Keep>)]),
    /// Lists: this part of each item. Maps: nothing. Other values: everything.
    Each(&'static Keep),
}

/// Reads the part as one [`Json`]; skipped values take no room.
#[derive(Debug)]
pub struct Picking<'a> {
    /// The part that is read.
    pub keep: Keep,
    /// Remaining number of values.
    pub room: &'a mut usize,
}

impl Keep {
    fn below(self, key: &str) -> Option<Self> {
        match self {
            Self::All => Some(Self::All),
            Self::Only(keys) => keys.iter().find(|(kept, _)| *kept == key).map(|(_, keep)| *keep),
            Self::Except(keys) => {
                keys.iter().find(|(known, _)| *known == key).map_or(Some(Self::All), |(_, keep)| *keep)
            }
            Self::Each(_) => None,
        }
    }

    fn of_items(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::All),
            Self::Each(keep) => Some(*keep),
            Self::Only(_) | Self::Except(_) => None,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Picking<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        match self.keep {
            Keep::All => Budget(self.room).deserialize(deserializer),
            Keep::Only(_) | Keep::Except(_) | Keep::Each(_) => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Picking<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Json<'de>, E> {
        Budget(self.room).visit_unit()
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json<'de>, E> {
        Budget(self.room).visit_bool(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json<'de>, E> {
        Budget(self.room).visit_i64(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json<'de>, E> {
        Budget(self.room).visit_u64(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json<'de>, E> {
        Budget(self.room).visit_f64(value)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Json<'de>, E> {
        Budget(self.room).visit_borrowed_str(text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json<'de>, E> {
        Budget(self.room).visit_str(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json<'de>, A::Error> {
        let Self { keep, room } = self;
        let mut items = Vec::new();
        if let Some(keep) = keep.of_items() {
            Budget(&mut *room).take()?;
            while let Some(item) = access.next_element_seed(Picking { keep, room: &mut *room })? {
                items.push(item);
            }
        } else {
            while access.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(Json::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json<'de>, A::Error> {
        let Self { keep, room } = self;
        Budget(&mut *room).take()?;
        let mut entries = Vec::new();
        while let Some(Key(key)) = access.next_key::<Key<'de>>()? {
            match keep.below(&key) {
                Some(keep) => entries.push((key, access.next_value_seed(Picking { keep, room: &mut *room })?)),
                None => {
                    access.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Json::Map(once(entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(keep: Keep, text: &str) -> Result<String, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let json = Picking { keep, room: &mut 4 }.deserialize(&mut reader).map_err(|error| error.to_string())?;
        reader.end().map_err(|error| error.to_string())?;
        Ok(serde_json::to_string(&json).unwrap())
    }

    #[test]
    fn picking_skips_the_rest_without_taking_room() {
        const NAME: Keep = Keep::Only(&[("m", Keep::Only(&[("n", Keep::Only(&[]))]))]);
        const NO_S: Keep = Keep::Except(&[("s", None)]);
        const NO_S_IN_L: Keep = Keep::Except(&[("l", Some(Keep::Each(&NO_S)))]);
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let many = format!("[{}0]", "0,".repeat(10_000));
        for (keep, text, expected) in [
            (NAME, format!(r#"{{"a":{deep},"m":{{"b":{many},"n":"x","c":1}},"d":{many}}}"#), r#"{"m":{"n":"x"}}"#),
            (NAME, format!(r#"{{"m":{{"n":{deep}}}}}"#), r#"{"m":{"n":[]}}"#),
            (NAME, r#"{"m":{"n":{"n":1}}}"#.to_owned(), r#"{"m":{"n":{}}}"#),
            (NAME, r#"{"m":5}"#.to_owned(), r#"{"m":5}"#),
            (NAME, "null".to_owned(), "null"),
            (NO_S, format!(r#"{{"a":{{"s":1}},"s":{deep}}}"#), r#"{"a":{"s":1}}"#),
            (NO_S_IN_L, format!(r#"{{"l":[{{"s":{deep}}},{{"s":{many}}}]}}"#), r#"{"l":[{},{}]}"#),
            (NO_S_IN_L, format!(r#"{{"l":{{"a":{deep}}},"s":1}}"#), r#"{"l":{},"s":1}"#),
            (NO_S_IN_L, format!(r#"{{"l":[{deep},5,null]}}"#), r#"{"l":[[],5,null]}"#),
            (NO_S_IN_L, r#"{"l":"x"}"#.to_owned(), r#"{"l":"x"}"#),
        ] {
            assert_eq!(picked(keep, &text).as_deref(), Ok(expected));
        }
        for (keep, text) in [(NO_S, r#"{"a":[1,2,3]}"#), (NO_S_IN_L, r#"{"l":[1,2,3]}"#)] {
            assert!(picked(keep, text).unwrap_err().starts_with(super::super::TOO_MANY), "{text}");
        }
        assert!(picked(NAME, r#"{"a":[}"#).is_err(), "it has to be JSON nevertheless");
    }
}
