//! Decodes several Secrets or files within the bounds of one bundle (spec 10 §9.2), so that they need no more memory together.

use crate::producer::decode::{DecodeError, Decoder, Limits, ManifestDocument, SecretData};

#[derive(Default)]
pub(super) struct Decoding {
    limits: Limits,
    most_duplicates: usize,
    spent: usize,
}

impl Decoding {
    pub(super) fn within(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Gathers at most this many duplicate keys of each document.
    pub(super) fn with_duplicate_keys(most: usize) -> Self {
        Self { most_duplicates: most, ..Self::default() }
    }

    /// Hands each document to `take`. At the bound there is one error, and nothing of later Secrets.
    pub(super) fn decode(&mut self, secret: SecretData<'_>, take: impl FnMut(Result<ManifestDocument, DecodeError>)) {
        let mut decoder =
            Decoder::new([secret], self.limits).with_duplicate_keys(self.most_duplicates).after(self.spent);
        decoder.by_ref().for_each(take);
        self.spent = decoder.spent();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn decoding_shares_one_bound_among_all_secrets() {
        let data = BTreeMap::from([("a.yaml".to_owned(), b"a: b\n---\nc: d\n".to_vec())]);
        let secret = SecretData { namespace: "", name: "", data: &data };
        let mut decoding = Decoding::within(Limits { bundle: 10_000, ..Limits::default() });

        let read: Vec<_> = (0..100)
            .map(|_| {
                let mut counts = (0, 0);
                decoding.decode(secret, |read| match read {
                    Ok(_) => counts.0 += 1,
                    Err(_) => counts.1 += 1,
                });
                counts
            })
            .collect();

        assert_eq!(read[0], (2, 0));
        assert_eq!(read.iter().map(|(_, errors)| errors).sum::<usize>(), 1, "{read:?}");
        assert_eq!(read[99], (0, 0));
    }
}
