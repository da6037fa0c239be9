//! The checksum over the manifests of a ManagedResource (spec 10 §9.5).

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Sums up the raw data of the kept manifests, in processing order.
#[derive(Clone, Default)]
pub struct Checksum {
    hasher: Sha256,
}

impl Checksum {
    /// Adds one kept manifest. `raw` is the **whole** value of its data key, still compressed, once for each manifest.
    pub fn add(&mut self, raw: &[u8]) {
        self.hasher.update(raw);
    }

    /// SHA-256 in lower-case hex. Without manifests it is the hash of the empty string.
    pub fn finish(self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
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
    fn a_key_with_two_manifests_contributes_its_bytes_twice() {
        let mut checksum = Checksum::default();
        checksum.add(b"ab");
        checksum.add(b"ab");

        let mut whole = Checksum::default();
        whole.add(b"abab");

        assert_eq!(checksum.finish(), whole.finish());
    }

    /// The example of RFC 6234: the value is comparable with those of the Go program.
    #[test]
    fn the_checksum_is_sha_256_in_lower_case() {
        let mut checksum = Checksum::default();
        checksum.add(b"abc");

        assert_eq!(format!("{checksum:?}"), "Checksum");
        assert_eq!(checksum.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
