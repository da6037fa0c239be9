use std::hash::{DefaultHasher, Hash, Hasher};

/// Returns a hash of the value: the same in every run of one build, but not meant for storage.
pub fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
