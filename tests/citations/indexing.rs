//! JSON that came from elsewhere is never changed by index: `value["field"] = …` panics where `value` is no map.
//!
//! Reading by index is fine: what is not there is null. To change a place there are `object::field_mut`, `api::fields`, and
//! the methods of maps. The compiler cannot tell the two kinds of indexing apart, and clippy does not see operators.

use super::sources::texts;

/// The only file that indexes to change, behind a check.
const ALLOWED: &str = "crates/cluster/src/object.rs";

/// fault 31
#[test]
fn json_is_not_changed_by_index() {
    let mut found = Vec::new();
    for folder in ["src", "crates/cluster/src", "crates/kit/src"] {
        for (file, text) in texts(folder, "rs") {
            if file != ALLOWED && !is_of_tests(&file) {
                found.extend(changes(&text).map(|line| format!("{file}:{line}")));
            }
        }
    }
    assert!(found.is_empty(), "change the place with `object::field_mut`: {found:#?}");
}

#[test]
fn changes_by_index_are_told_from_reads() {
    for line in [
        r#"a["b"] = c;"#,
        r#"a.b["c"]["d"] = e;"#,
        r#"a["b"][c] = d;"#,
        r#"a[FIELD] = b;"#,
        r#"a["b"][*c] = d;"#,
        r#"a["b"] += c;"#,
        r#"f(&mut a["b"]);"#,
        r#"f(&mut a["b"][c], d);"#,
        r#"a["b"].take()"#,
        r#"a["b"].as_object_mut()"#,
        r#"a["b"][0].push(c);"#,
    ] {
        assert!(changes_by_index(line), "{line}");
    }
    for line in [
        r#"a["b"] == c"#,
        r#"let a = &b["c"];"#,
        r#"a[0] = b;"#,
        r#"a[index] = b;"#,
        r#"let [a, b] = c;"#,
        r#"a["b"].as_object()"#,
        r#"let a: [&str; 1] = ["b"];"#,
        r#"match a["b"] { c => d }"#,
        r#"#[cfg(a = "b")]"#,
    ] {
        assert!(!changes_by_index(line), "{line}");
    }
}

fn is_of_tests(file: &str) -> bool {
    file.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "testing.rs" | "testing"))
}

/// The lines that change by index, before the tests of the file.
fn changes(text: &str) -> impl Iterator<Item = usize> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code: Vec<String> = code.lines().map(str::to_owned).collect();
    code.into_iter().enumerate().filter(|(_, line)| changes_by_index(line)).map(|(index, _)| index + 1)
}

/// Methods that change what they are called on.
const CHANGING: [&str; 12] = [
    ".take()",
    ".as_object_mut()",
    ".as_array_mut()",
    ".get_mut(",
    ".pointer_mut(",
    ".push(",
    ".extend(",
    ".insert(",
    ".remove(",
    ".retain(",
    ".append(",
    ".clear()",
];

fn changes_by_index(line: &str) -> bool {
    let line = line.split("//").next().unwrap_or_default();
    let mut rest = line;
    while let Some(open) = rest.find('[') {
        let before = &rest[..open];
        let Some((brackets, after)) = brackets(&rest[open..]) else { return false };
        rest = after;
        let is_index = before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ')' | '?'));
        if !is_index || !brackets.iter().any(|index| is_field(index)) {
            continue;
        }
        let after = after.trim_start();
        let is_assigned = after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=>");
        let place = before.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).map_or(0, |end| end + 1);
        let is_lent = before[..place].trim_end().ends_with("&mut");
        if is_assigned || after.starts_with("+=") || is_lent || CHANGING.iter().any(|method| after.starts_with(method))
        {
            return true;
        }
    }
    false
}

/// What stands in brackets that follow one another, and what is behind them.
fn brackets(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(inner) = rest.strip_prefix('[') {
        let close = inner.find(']')?;
        found.push(&inner[..close]);
        rest = &inner[close + 1..];
    }
    Some((found, rest))
}

/// Whether an index is a field of JSON: a text, a constant, or a reference to one.
fn is_field(index: &str) -> bool {
    let is_constant = index.len() > 1 && index.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    index.starts_with(['"', '*']) || is_constant || matches!(index, "field" | "key" | "name")
}
