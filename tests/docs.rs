//! README, `docs/` and the crate documentation are true: files exist, commands work, lists are complete.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use gardener_resource_manager::{
    actors::resource_manager::bundle::decode::{self, SecretData},
    cli::{Cli, Command},
};

/// Paths that documents name, but that the reader creates.
const NOT_IN_THE_REPOSITORY: [&str; 1] = ["config/tls"];

/// A path of the repository begins with one of these.
const ROOTS: [&str; 7] = ["src/", "crates/", "docs/", "config/", "deploy/", "tests/", ".ci/"];

/// A file that is named without its folder ends with one of these.
const FILES: [&str; 4] = [".yaml", ".md", ".rs", ".toml"];

const MARKER: &str = "<!-- ci: test -->";

#[test]
fn documents_name_only_existing_files() {
    let missing: Vec<String> = documents()
        .iter()
        .flat_map(|document| {
            named(document)
                .into_iter()
                .filter(|path| !exists(path))
                .map(|path| format!("{}: {}", shown(document), shown(&path)))
        })
        .collect();

    assert!(missing.is_empty(), "named, but missing:\n{}", missing.join("\n"));
}

#[test]
fn comments_name_only_existing_documents() {
    let sources = files().into_iter().filter(|path| name_of(path).ends_with(".rs"));
    let missing: Vec<String> = sources
        .flat_map(|source| {
            let text = read(&source);
            let comments =
                text.lines().filter(|line| line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            let named = links_in(&comments).into_iter().chain(spans(&comments)).filter(|name| name.ends_with(".md"));
            let is_there = |name: &String| root().join(name).is_file() || folder_of(&source).join(name).is_file();
            named.filter(|name| !is_there(name)).map(|name| format!("{}: {name}", shown(&source))).collect::<Vec<_>>()
        })
        .collect();

    assert!(missing.is_empty(), "named in a comment, but missing:\n{}", missing.join("\n"));
}

#[test]
fn documents_can_all_be_reached_from_the_readme() {
    let mut reached = BTreeSet::new();
    let mut next = vec![root().join("README.md")];
    while let Some(document) = next.pop() {
        let chapters = if is_of_the_specification(&document) { mentioned(&document) } else { Vec::new() };
        let links = linked(&document).into_iter().chain(chapters);
        let links = links.filter(|path| path.is_file() && name_of(path).ends_with(".md"));
        next.extend(links.map(|path| normal(&path)).filter(|path| reached.insert(path.clone())));
    }

    for document in documents().iter().filter(|document| document.starts_with(root().join("docs"))) {
        assert!(reached.contains(&normal(document)), "no link leads from README.md to {}", shown(document));
    }
}

#[test]
fn readme_commands_are_accepted_by_the_program() {
    let commands: Vec<String> =
        fenced(&read(&root().join("README.md"))).into_iter().filter(|line| line.starts_with("cargo run")).collect();
    let parsed: Vec<Command> = commands
        .iter()
        .map(|command| {
            let (_, arguments) = command.split_once(" -- ").expect("arguments of the program follow --");
            let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
            Cli::parse_from(&arguments, &|_| None).unwrap_or_else(|error| panic!("{command}: {error}"))
        })
        .collect();

    assert!(matches!(parsed.as_slice(), [Command::Demo(_), Command::Run(_)]), "{commands:?}");
}

#[test]
fn readme_commands_use_existing_features() {
    let manifest = read(&root().join("Cargo.toml"));

    for line in fenced(&read(&root().join("README.md"))) {
        if let Some((_, rest)) = line.split_once("--features ") {
            let feature = rest.split_whitespace().next().unwrap_or_default();
            assert!(manifest.contains(&format!("\n{feature} = [")), "{line}");
        }
    }
}

/// `.ci/run` runs the command below the marker, so that README and CI cannot diverge.
#[test]
fn readme_marks_one_test_command_for_ci() {
    let readme = read(&root().join("README.md"));
    let (_, behind) = readme.split_once(MARKER).expect("the README has the marker");

    assert_eq!(fenced(behind).first().map(String::as_str), Some("cargo test"));
    assert!(!behind.contains(MARKER), "the marker stands twice");
    assert!(read(&root().join(".ci/run")).contains(MARKER), ".ci/run looks for the marker");
}

#[test]
fn layout_in_the_architecture_page_is_complete() {
    let layout = layout();

    for folder in ["src", "crates", "tests"] {
        let direct = |path: &String| {
            let name = path.strip_prefix(folder)?.strip_prefix('/')?;
            (!name.trim_end_matches('/').contains('/')).then(|| name.to_owned())
        };
        let listed: BTreeSet<String> = layout.iter().filter_map(direct).collect();
        let present: BTreeSet<String> = children(&root().join(folder)).iter().map(|path| name_of(path)).collect();

        assert_eq!(listed, present, "{folder}/ in docs/architecture.md (left), and in the repository (right)");
    }
}

#[test]
fn examples_decode_except_for_the_broken_document() {
    let table = [("webapp", 8, None), ("monitoring", 3, None), ("broken", 2, Some(1))];

    for (example, documents, broken) in table {
        let folder = root().join("config/examples").join(example);
        let data: BTreeMap<String, Vec<u8>> =
            children(&folder).iter().map(|path| (name_of(path), read(path).into_bytes())).collect();
        let decoded = decode::decode([SecretData { namespace: "default", name: example, data: &data }]);

        assert_eq!(decoded.documents.len(), documents, "{example}");
        assert_eq!(decoded.errors.first().map(|error| error.index), broken, "{example}: {:?}", decoded.errors);
        assert!(decoded.errors.len() <= 1 && decoded.warnings.is_empty(), "{example}");
        let secret = format!("name: example-{example}\n");
        assert!(read(&root().join("config/examples/managedresources.yaml")).contains(&secret), "{example}");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents() -> Vec<PathBuf> {
    files().into_iter().filter(|path| name_of(path).ends_with(".md")).collect()
}

fn files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for path in children(&folder) {
            let name = name_of(&path);
            if !path.is_dir() {
                found.push(path);
            } else if !name.starts_with('.') && name != "target/" {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A chapter of the specification names other chapters without links, and data keys and files of other systems.
fn is_of_the_specification(document: &Path) -> bool {
    folder_of(document) == root().join("docs/spec")
}

fn named(document: &Path) -> Vec<PathBuf> {
    let is_of_the_specification = is_of_the_specification(document);
    let is_meant = |path: &PathBuf| !is_of_the_specification || name_of(path).ends_with(".md");
    linked(document).into_iter().chain(mentioned(document).into_iter().filter(is_meant)).collect()
}

fn linked(document: &Path) -> Vec<PathBuf> {
    links_in(&read(document)).into_iter().map(|target| folder_of(document).join(target)).collect()
}

/// Targets of links in the repository. Text between backticks is skipped: a regular expression may look like a link.
fn links_in(text: &str) -> Vec<String> {
    let text: String = text.lines().flat_map(|line| line.split('`').step_by(2).chain(["\n"])).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#', ' ']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://")).map(str::to_owned).collect()
}

/// Files that a document names in code: by their path in the repository, or by its end.
fn mentioned(document: &Path) -> Vec<PathBuf> {
    let (text, files) = (read(document), files());
    let code = fenced(&text).into_iter().chain(spans(&text));
    let words: Vec<String> = code
        .flat_map(|code| code.split([' ', '"', '\'', '=', ',', '(', ')']).map(str::to_owned).collect::<Vec<_>>())
        .filter(|word| !word.contains(['$', '<', '*', '{', ':']))
        .collect();
    let path = |word: &String| {
        if ROOTS.iter().any(|root| word.starts_with(root)) {
            Some(root().join(word))
        } else {
            let is_file = FILES.iter().any(|ending| word.ends_with(ending)) && !word.starts_with(['/', '.', '~']);
            let beside = folder_of(document).join(word);
            let elsewhere = || files.iter().find(|file| is_file && file.ends_with(word)).cloned();
            let found = if beside.exists() { Some(beside.clone()) } else { elsewhere() };
            (is_file || word.starts_with("../")).then(|| found.unwrap_or(beside))
        }
    };
    words.iter().filter_map(path).collect()
}

fn fenced(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let content = line.trim_start();
        if content.starts_with("```") {
            inside = !inside;
        } else if inside || line.starts_with("    ") {
            lines.push(content.to_owned());
        }
    }
    lines
}

fn spans(text: &str) -> Vec<String> {
    let mut inside = false;
    let mut spans = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            spans.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    spans
}

/// The paths in the first column of the section "Folders" of `docs/architecture.md`. Folders end with `/`.
fn layout() -> Vec<String> {
    let text = read(&root().join("docs/architecture.md"));
    let section = text.lines().skip_while(|line| *line != "## 9. Folders");
    let rows = section.filter(|line| line.starts_with("| `"));
    rows.filter_map(|line| line.split('|').nth(1)).flat_map(spans).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.is_dir() { name + "/" } else { name }
}

fn folder_of(document: &Path) -> &Path {
    document.parent().unwrap_or(root())
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn normal(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn exists(path: &Path) -> bool {
    let shown = shown(path);
    path.exists() || NOT_IN_THE_REPOSITORY.iter().any(|absent| shown.starts_with(absent))
}
