//! The comments of the sources, and those among them that describe tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The doc comments of the tests in a folder of the repository and below it, with the files they stand in. The folder of
/// this test is left out: it writes about citations.
pub(crate) fn comments_of_tests_in(folder: &str) -> Vec<(String, String)> {
    let mut comments = Vec::new();
    for (file, source) in texts(folder, "rs") {
        if !file.starts_with("tests/citations") {
            comments.extend(doc_comments_of_tests(&source).into_iter().map(|comment| (file.clone(), comment)));
        }
    }
    comments
}

/// What is written in one file.
#[derive(Debug)]
pub(crate) struct Comments {
    /// From the root of the repository.
    pub(crate) file: String,
    /// Line of the first word, and text: lines that follow one another are one comment.
    pub(crate) comments: Vec<(usize, String)>,
}

/// All comments in a folder of the repository and below it. The folder of this test is left out: it writes about citations.
pub(crate) fn comments_in(folder: &str) -> Vec<Comments> {
    let files = texts(folder, "rs").into_iter().filter(|(file, _)| !file.starts_with("tests/citations"));
    files.map(|(file, text)| Comments { comments: comments_of(&text), file }).collect()
}

/// All lines of a Markdown file, or of those in a folder.
pub(crate) fn lines_in(path: &str) -> Vec<Comments> {
    let lines = |text: String| text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned())).collect();
    texts(path, "md").into_iter().map(|(file, text)| Comments { comments: lines(text), file }).collect()
}

fn comments_of(source: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in source.lines().enumerate() {
        let whole = line.trim_start().strip_prefix("//");
        let text = whole.or_else(|| line.split_once(" // ").map(|(_, text)| text));
        let text = text.map(|text| text.trim_start_matches(['/', '!']));
        match (text, comments.last_mut()) {
            (Some(text), Some((_, comment))) if is_open && whole.is_some() => {
                comment.push(' ');
                comment.push_str(text);
            }
            (Some(text), _) => comments.push((index + 1, text.to_owned())),
            (None, _) => {}
        }
        is_open = whole.is_some();
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

/// The files with an ending, in a folder of the repository and below it, or the one file of this path: path and text.
pub(crate) fn texts(path: &str, ending: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == ending);
    let text = |path: PathBuf| {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, text)
    };
    files(&root.join(path)).into_iter().filter(is_text).map(text).collect()
}

/// A file, or all in a folder and below it, without build results.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths.retain(|path| !path.ends_with("target"));
    paths.iter().flat_map(|path| files(path)).collect()
}

#[test]
fn lines_of_comments_that_follow_one_another_are_read_as_one() {
    let source = "//! spec 10\n//! §3\n\nlet a = 1; // spec 20\n// spec 30\nlet url = \"https://a\";\n";

    let comments = comments_of(source);

    let expected = [(1, " spec 10  §3"), (4, "spec 20"), (5, " spec 30")];
    assert_eq!(comments, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn only_doc_comments_of_tests_count() {
    let source = "/// spec 10 scenario 1\nfn helper() {}\n\n/// spec 10 scenario 2,\n/// and spec 10 scenario 3\n#[test]\n\
                  fn test() {}\n\n/// spec 10 scenario 4\n#[tokio::test(start_paused = true)]\nasync fn test() {}\n\
                  // spec 10 scenario 5\n#[test]\nfn test() {}\n";

    let comments = doc_comments_of_tests(source);

    assert_eq!(comments, ["spec 10 scenario 2,\nand spec 10 scenario 3", "spec 10 scenario 4"]);
}
