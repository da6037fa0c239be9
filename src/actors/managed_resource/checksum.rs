//! The checksum over the manifests of a bundle (spec 10 §9.5).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Adds up the raw data of the manifests that are kept, in processing order.
#[derive(Clone, Default)]
pub struct Checksum {
    hasher: Sha256,
}

/// The last checksum of a bundle, and what it was made of. A key with many manifests is long and is added once for each
/// of them: its checksum takes time in the square of its size, and a big bundle is read once per time slice.
#[derive(Clone)]
pub struct Known {
    summary: [u8; 32],
    text: String,
}

/// The checksum of a bundle: of `data_keys`, in the order of `kept`, which holds the data key of each manifest that is
/// kept. Computed only if it is not the one that is `known`.
pub fn of(data_keys: &[&[u8]], kept: &[usize], known: &mut Option<Known>) -> String {
    let summary = summary(data_keys, kept);
    if let Some(known) = known.as_ref().filter(|known| known.summary == summary) {
        return known.text.clone();
    }
    let mut checksum = Checksum::default();
    kept.iter().filter_map(|key| data_keys.get(*key)).for_each(|raw| checksum.add(raw));
    let text = checksum.finish();
    *known = Some(Known { summary, text: text.clone() });
    text
}

/// Tells apart what has different checksums: the hash of each data key, and the order in which they are added.
fn summary(data_keys: &[&[u8]], kept: &[usize]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(data_keys.len().to_le_bytes());
    for raw in data_keys {
        hasher.update(Sha256::digest(raw));
    }
    for key in kept {
        hasher.update(key.to_le_bytes());
    }
    hasher.finalize().into()
}

// === impl Checksum ===

impl Checksum {
    /// One kept manifest. `raw` is the **whole** value of its data key, compressed if it is compressed: a key with three
    /// kept manifests is added three times.
    pub fn add(&mut self, raw: &[u8]) {
        self.hasher.update(raw);
    }

    /// SHA-256 in lower-case hex. Without any manifest it is the hash of the empty string.
    pub fn finish(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl std::fmt::Debug for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Checksum")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_manifest_gives_the_hash_of_the_empty_string() {
        assert_eq!(Checksum::default().finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_known_checksum_is_taken_only_for_the_same_data_in_the_same_order() {
        let table: [(&[&[u8]], &[usize]); 6] = [
            (&[b"ab", b"c"], &[0, 0, 1]),
            (&[b"ab", b"c"], &[0, 0, 1]),
            (&[b"ab", b"c"], &[1, 0, 0]),
            (&[b"ab", b"c"], &[0, 1]),
            (&[b"ab", b"d"], &[0, 1]),
            (&[], &[]),
        ];
        let mut known = None;

        for (data_keys, kept) in table {
            let fresh = of(data_keys, kept, &mut None);
            assert_eq!(of(data_keys, kept, &mut known), fresh, "{data_keys:?} {kept:?}");
        }
        assert_eq!(of(&[b"ab"], &[0, 0], &mut known), of(&[b"abab"], &[0], &mut None));
    }

    #[test]
    fn a_key_with_two_manifests_contributes_its_bytes_twice() {
        let mut checksum = Checksum::default();
        checksum.add(b"ab");
        checksum.add(b"ab");

        let mut whole = Checksum::default();
        whole.add(b"abab");

        assert_eq!(checksum.finish(), whole.finish());
    }
}
