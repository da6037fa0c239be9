//! The checksum over the manifests of a ManagedResource (spec 10 §9.5).

use sha2::{Digest, Sha256};

/// SHA-256 in lower-case hex of raw values: for each kept manifest, in processing order, the **whole** value of its data
/// key, still compressed. Without manifests it is the hash of the empty string.
pub fn checksum<'a>(raw: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    raw.into_iter().for_each(|value| hasher.update(value));
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_manifest_gives_the_hash_of_the_empty_string() {
        assert_eq!(checksum([]), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn a_key_with_two_manifests_contributes_its_bytes_twice() {
        assert_eq!(checksum([&b"ab"[..], b"ab"]), checksum([&b"abab"[..]]));
    }

    /// The example of RFC 6234: the value is comparable with those of the Go program.
    #[test]
    fn the_checksum_is_sha_256_in_lower_case() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

        assert_eq!(checksum([&b"abc"[..]]), expected);
    }
}
