//! Bounds of decoding: how large the content of a Secret of 1 MiB may become.

use kit::json;

/// Bounds of decoding. The defaults are far above the needs of real manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of one data key after decompression, in bytes.
    pub decompressed: usize,
    /// Documents of one data key, including empty and broken ones.
    pub documents: usize,
    /// Nested lists and maps. The default is that of API servers.
    pub depth: usize,
    /// Memory for the copies that the aliases of one YAML document make, in bytes.
    pub aliases: usize,
    /// Memory for everything in all Secrets, in bytes: decompressed data, nodes and errors together.
    pub bundle: usize,
}

pub(super) const NODE_COST: usize = 64; // approximate cost of a list, map or scalar, besides its text
pub(super) const FIELDS_COST: usize = 600; // approximate cost of a map with fields, besides them: a node of a B-tree
pub(super) const ERROR_COST: usize = 512; // approximate cost of an error

#[derive(Debug)]
pub(super) struct Meter {
    spent: usize,
    limit: usize,
    #[cfg(test)]
    readings: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1 << 20;

        Self {
            decompressed: 64 * MIB,
            documents: 20_000,
            depth: json::MOST_LEVELS,
            aliases: 16 * MIB,
            bundle: 256 * MIB,
        }
    }
}

impl Limits {
    pub(super) fn documents_text(&self) -> String {
        format!("there are more than {} documents", self.documents)
    }

    pub(super) fn depth_text(&self) -> String {
        json::too_deep(self.depth)
    }

    pub(super) fn aliases_text(&self) -> String {
        format!("aliases copy more than {} bytes", self.aliases)
    }

    pub(super) fn decompressed_text(&self) -> String {
        format!("decompressed data is larger than {} bytes", self.decompressed)
    }
}

impl Meter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            spent: 0,
            limit,
            #[cfg(test)]
            readings: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn count_reading(&mut self) {
        self.readings += 1;
    }

    #[cfg(test)]
    pub(super) fn readings(&self) -> usize {
        self.readings
    }

    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.spent)
    }

    /// Adds a cost. Fails at the limit, with a text that names it.
    pub(super) fn charge(&mut self, cost: usize) -> Result<(), String> {
        self.spent = self.spent.saturating_add(cost);
        if self.is_exhausted() {
            let limit = self.limit;
            return Err(format!("the manifests take more than {limit} bytes of memory, the rest is skipped"));
        }
        Ok(())
    }

    pub(super) fn begin_with(&mut self, spent: usize) {
        self.spent = spent;
    }

    /// Forgets later costs: their data was dropped.
    pub(super) fn give_back(&mut self, spent_before: usize) {
        self.spent = self.spent.min(spent_before);
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.spent > self.limit
    }

    pub(super) fn spent(&self) -> usize {
        self.spent
    }
}
