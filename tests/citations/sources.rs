//! The doc comments of all tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The doc comments of the tests in a folder of the repository and below it, with the files they stand in. The folder of
/// this test is left out: it writes about citations.
pub(crate) fn comments_of_tests_in(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut comments = Vec::new();
    for path in files(&root.join(folder)) {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if file.starts_with("tests/citations") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        comments.extend(doc_comments_of_tests(&source).into_iter().map(|comment| (file.clone(), comment)));
    }
    comments
}

/// The texts of the doc comments that stand directly before a test, with their lines.
fn doc_comments_of_tests(source: &str) -> Vec<String> {
    let mut comments = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            lines.push(text.trim());
        } else if line.starts_with("#[") {
            if is_test_attribute(line) && !lines.is_empty() {
                comments.push(lines.join("\n"));
            }
        } else {
            lines.clear();
        }
    }
    comments
}

fn is_test_attribute(line: &str) -> bool {
    ["#[test]", "#[tokio::test", "#[actix::test", "#[actix_web::test"]
        .iter()
        .any(|attribute| line.starts_with(attribute))
}

/// All Rust files in a folder and below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    let is_source = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    paths.into_iter().flat_map(below).filter(is_source).collect()
}

#[test]
fn only_doc_comments_of_tests_count() {
    let source = "/// spec 10 scenario 1\nfn helper() {}\n\n/// spec 10 scenario 2,\n/// and spec 10 scenario 3\n#[test]\n\
                  fn test() {}\n\n/// spec 10 scenario 4\n#[tokio::test(start_paused = true)]\nasync fn test() {}\n\
                  // spec 10 scenario 5\n#[test]\nfn test() {}\n";

    let comments = doc_comments_of_tests(source);

    assert_eq!(comments, ["spec 10 scenario 2,\nand spec 10 scenario 3", "spec 10 scenario 4"]);
}
