//! Every input that the fuzz targets of `fuzz/` start from has the properties of `tests/checks/`.

mod checks;

use std::{
    fs,
    path::{Path, PathBuf},
};

use checks::{decode, merge, mutate, plan, review, validate};

#[test]
fn decode_corpus_keeps_its_properties() {
    for (path, input) in corpus("decode") {
        checked(&path, || decode::check(&input));
    }
}

#[test]
fn merge_corpus_keeps_its_properties() {
    for (path, input) in corpus("merge") {
        let case = merge::Case::try_from(&input[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        checked(&path, || merge::check(&case));
    }
}

#[test]
fn mutate_corpus_keeps_its_properties() {
    for (path, input) in corpus("mutate") {
        let case = mutate::Case::try_from(&input[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        checked(&path, || mutate::check(&case));
    }
}

#[test]
fn plan_corpus_keeps_its_properties() {
    for (path, input) in corpus("plan") {
        let case = plan::Case::try_from(&input[..]).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        checked(&path, || plan::check(&case));
    }
}

#[test]
fn review_corpus_keeps_its_properties() {
    for (path, input) in corpus("review") {
        checked(&path, || review::check(&input[..].into()));
    }
}

#[test]
fn validate_corpus_keeps_its_properties() {
    for (path, input) in corpus("validate") {
        checked(&path, || validate::check(&input));
    }
}

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("a file of the corpus"));
    paths.into_iter().map(read).collect()
}

fn checked(path: &Path, check: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) {
        eprintln!("broken by {}", path.display());
        std::panic::resume_unwind(panic);
    }
}
