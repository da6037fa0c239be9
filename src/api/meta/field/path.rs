//! Paths of fields: they borrow from each other, and cost nothing until an error contains one.

use std::fmt;

/// A path from the root of an object to a field, e.g. `spec.pools[2].machineImage.name`.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Position(usize),
}

impl<'a> Path<'a> {
    /// A field of the object itself.
    pub const fn root(field: &'a str) -> Self {
        Self { parent: None, step: Step::Field(field) }
    }

    /// A field of this value, or an entry of this map; appended with a dot.
    pub const fn child(&'a self, field: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Field(field) }
    }

    /// An item of this list.
    pub const fn at(&'a self, position: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Position(position) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match (self.step, self.parent) {
            (Step::Field(field), None) => f.write_str(field),
            (Step::Field(field), Some(_)) => write!(f, ".{field}"),
            (Step::Position(position), _) => write!(f, "[{position}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 62 §2.1
    #[test]
    fn a_path_reads_as_in_messages_of_kubernetes() {
        let (spec, name) = (Path::root("spec"), "name");
        let pools = spec.child("pools");
        assert_eq!(pools.at(2).child("machineImage").child(name).to_string(), "spec.pools[2].machineImage.name");
        assert_eq!(pools.at(0).child("nodeTemplate").child("cpu").to_string(), "spec.pools[0].nodeTemplate.cpu");
    }
}
