//! What a comment cites is there: `spec 30 §5.2` leads to a section of `docs/spec/`, `facts §4` to one of `docs/facts.md`.

use crate::{
    documents::Library,
    reading::Reader,
    sources::{self, Comments},
};

/// Documents whose citations are checked as those of comments are.
const DOCUMENTS: [(&str, Option<u32>); 3] =
    [("docs/architecture.md", None), ("docs/compatibility.md", Some(10)), ("docs/decisions", None)];

#[test]
fn every_citation_leads_somewhere() {
    let library = Library::read();
    let mut dead = Vec::new();
    let mut count = 0;

    let code = ["src", "crates", "tests", "fuzz"].into_iter().flat_map(sources::comments_in).map(|file| (file, None));
    let text = DOCUMENTS
        .into_iter()
        .flat_map(|(path, chapter)| sources::lines_in(path).into_iter().map(move |file| (file, chapter)));
    for (Comments { file, comments }, chapter) in code.chain(text) {
        let mut reader = Reader::default();
        for (line, comment) in comments {
            if let Some(chapter) = chapter {
                reader = Reader::of_chapter(chapter);
            }
            match reader.read(&comment) {
                Ok(targets) => {
                    count += targets.len();
                    let missing = targets.iter().filter(|target| !library.has(target));
                    dead.extend(missing.map(|target| format!("{file}:{line}: {target:?}")));
                }
                Err(word) => dead.push(format!("{file}:{line}: unclear at {word:?}")),
            }
        }
    }

    assert!(dead.is_empty(), "{} of {count} citations lead nowhere:\n{}", dead.len(), dead.join("\n"));
    assert!(count > 1_000, "only {count} citations were found");
}
