use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// The text of a group, version, kind or plural: a constant of the program, or shared between its clones.
#[derive(Clone)]
pub struct ApiName(Text);

#[derive(Clone)]
enum Text {
    Constant(&'static str),
    Shared(Arc<str>),
}

impl ApiName {
    /// Creates a name from a constant, without an allocation.
    pub const fn constant(name: &'static str) -> Self {
        Self(Text::Constant(name))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Constant(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl Deref for ApiName {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for ApiName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for ApiName {
    fn from(text: &str) -> Self {
        Self(Text::Shared(text.into()))
    }
}

impl PartialEq for ApiName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ApiName {}

impl PartialEq<&str> for ApiName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialOrd for ApiName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ApiName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for ApiName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for ApiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for ApiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
