//! The texts about referrers. Pure.

use std::{collections::BTreeSet, rc::Rc};

use crate::actors::shared::texts::{bracketed, note};

/// The names of all referrers of one kind: `name`, or `namespace/name`.
pub type ReferrerNames = BTreeSet<String>;

/// A text with lists: fixed texts, each followed by the referrers of a kind, given by its index in
/// [`users`](super::GuardDefinition::users). `{name}` in a fixed text stands for the name of the guarded object.
pub type NoteText = &'static [(&'static str, usize)];

/// Why an object stays.
pub struct Note {
    text: NoteText,
    /// The referrers that the text names.
    pub referrers: Vec<Rc<ReferrerNames>>,
}

impl Note {
    /// Returns the first text that names a referrer; `None` if nobody refers to the object. `referrers` returns the
    /// referrers of a kind. It is not called for later texts.
    pub fn first<E>(
        texts: &'static [NoteText],
        referrers: impl Fn(usize) -> Result<Rc<ReferrerNames>, E>,
    ) -> Result<Option<Self>, E> {
        for text in texts {
            let referrers = text.iter().map(|(_, user)| referrers(*user)).collect::<Result<Vec<_>, E>>()?;
            if referrers.iter().any(|names| !names.is_empty()) {
                return Ok(Some(Self { text, referrers }));
            }
        }
        Ok(None)
    }

    /// Returns the text with as many referrers as an Event may name.
    pub fn bounded(&self, name: &str) -> String {
        let texts = self.texts(name);
        let parts: Vec<_> = texts.iter().map(String::as_str).zip(self.referrers.iter().map(|names| &**names)).collect();
        note(&parts)
    }

    /// Returns the text with all referrers.
    pub fn whole(&self, name: &str) -> String {
        let part = |(text, names): (&String, &Rc<ReferrerNames>)| format!("{text}{}", bracketed(names));
        self.texts(name).iter().zip(&self.referrers).map(part).collect()
    }

    fn texts(&self, name: &str) -> Vec<String> {
        self.text.iter().map(|(text, _)| text.replace("{name}", name)).collect()
    }
}
