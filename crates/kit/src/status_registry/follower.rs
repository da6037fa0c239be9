//! Finds what changed in a status registry. A look compares one number per cell, so that ten thousand cells at rest cost
//! a fraction of a millisecond.

use std::{collections::HashMap, sync::Arc};

use super::{ActorState, StatusRegistry};

/// Remembers which state of each actor it has reported. Nothing in the registry knows of it.
#[derive(Debug)]
pub struct Follower {
    registry: StatusRegistry,
    /// The registry's version before the last look.
    seen: u64,
    /// The stamps of the reported states.
    known: HashMap<Arc<str>, u64>,
}

/// What changed between two looks.
#[derive(Debug, PartialEq)]
pub struct RegistryChanges {
    /// The registry's version before this look.
    pub version: u64,
    /// New and changed states, sorted by path; none of them is gone. A state may be reported although only its stamp
    /// changed.
    pub changed: Vec<ActorState>,
    /// Paths whose actors are gone, sorted.
    pub gone: Vec<Arc<str>>,
}

impl Follower {
    /// Follows a registry from its present state on: looks report what changes later.
    pub fn new(registry: StatusRegistry) -> Self {
        let mut follower = Self { seen: registry.version(), registry, known: HashMap::new() };
        follower.paths();
        follower
    }

    /// The registry's version before the last look.
    pub fn version(&self) -> u64 {
        self.seen
    }

    /// Reports the changes since the last look. Costs one comparison if there are none.
    pub fn look(&mut self) -> Option<RegistryChanges> {
        // Read first: what changes meanwhile has a larger stamp and is found now or by the next look.
        let version = self.registry.version();
        if version == self.seen {
            return None;
        }
        let (mut cells, mut candidates) = (0, Vec::new());
        for cell in self.registry.cells.iter() {
            cells += 1;
            if cell.value().stamp() > self.seen {
                candidates.push(cell.value().clone());
            }
        }
        let mut changed = Vec::new();
        for cell in candidates {
            let (state, stamp) = cell.stamped();
            if self.known.insert(cell.0.path.clone(), stamp) != Some(stamp) {
                changed.push(state);
            }
        }
        changed.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        // Every cell of this look is known now, so that surplus paths are gone.
        let gone = if self.known.len() > cells { self.forget_gone() } else { Vec::new() };
        // An actor may have ended during this look.
        changed.retain(|state| self.known.contains_key(&*state.path));
        self.seen = version;
        Some(RegistryChanges { version, changed, gone })
    }

    /// Returns the paths of all actors, sorted, for who reads their states now. A later look reports when one of these
    /// actors is gone.
    pub fn paths(&mut self) -> Vec<Arc<str>> {
        let paths = self.registry.paths();
        for path in &paths {
            if !self.known.contains_key(path) {
                self.known.insert(path.clone(), 0);
            }
        }
        paths
    }

    fn forget_gone(&mut self) -> Vec<Arc<str>> {
        let cells = &self.registry.cells;
        let mut gone: Vec<_> =
            self.known.extract_if(|path, _| !cells.contains_key(path)).map(|(path, _)| path).collect();
        gone.sort_unstable();
        gone
    }
}
