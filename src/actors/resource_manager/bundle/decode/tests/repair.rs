//! Text that Go's YAML parser accepts and ours refuses: unindented lines of quoted text, byte order marks.

use proptest::prelude::*;
use serde_json::Map;

use super::{
    super::{duplicates::DuplicateKeys, limits::Meter, yaml},
    *,
};

const BOM: &str = "\u{feff}";

fn only(input: &str) -> Value {
    let mut documents = read(input);
    assert_eq!(documents.len(), 1, "{input:?}: {documents:?}");
    documents.remove(0).1.unwrap_or_else(|error| panic!("{input:?}: {error}"))
}

/// spec 10 §9.2
#[test]
fn quoted_text_may_have_lines_that_are_not_indented_wherever_it_stands() {
    for (input, expected) in [
        ("a:\n  b: \"one\ntwo\n\n three\"\n  c: 'x\ny'\n", json!({"a": {"b": "one two\nthree", "c": "x y"}})),
        ("a:\n- \"x\ny\"\n- - 'p\nq'\n", json!({"a": ["x y", ["p q"]]})),
        ("a:\n  b: \"it's\n'not' an\n'end'\n\"\n  c: 1\n", json!({"a": {"b": "it's 'not' an 'end' ", "c": 1}})),
        ("a:\n  b: 'say ''x''\n\"y\"'\n", json!({"a": {"b": "say 'x' \"y\""}})),
        ("a:\n  b: \"x\\\"\ny\\\\\"\n  c: \"d\ne\"\n", json!({"a": {"b": "x\" y\\", "c": "d e"}})),
        ("a:\n  b: \"x\\\ny\nz\"\n", json!({"a": {"b": "xy z"}})),
        ("a:\n  \"b\": \"x\ny\"\n", json!({"a": {"b": "x y"}})),
        ("a:\n  ? b\n  : \"x\ny\"\n", json!({"a": {"b": "x y"}})),
        ("a:\n  b: &x \"x\ny\"\n  c: *x\n", json!({"a": {"b": "x y", "c": "x y"}})),
        ("a:\n  b: !!str \"1\n2\"\n", json!({"a": {"b": "1 2"}})),
        ("a:\n  b:\n    \"x\ny\"\n", json!({"a": {"b": "x y"}})),
        ("a:\n  b: \"x\n\ty\"\n", json!({"a": {"b": "x y"}})),
        ("a:\n  b: [\"x\n\ty\", {c: 'p\nq'}]\n  d: \"e\nf\"\n", json!({"a": {"b": ["x y", {"c": "p q"}], "d": "e f"}})),
        ("a:\n  b: \"x\ny\" # \"z\n  c: \"p\nq\"\n", json!({"a": {"b": "x y", "c": "p q"}})),
        ("# it's \"\na:\n  # \"\n  b: \"x\ny\"\n", json!({"a": {"b": "x y"}})),
        ("a:\n  b: it's # \"\n  c: \"x\ny\"\n", json!({"a": {"b": "it's", "c": "x y"}})),
        ("a:\n  b: one\n    \"two # \"\n  c: \"x\ny\"\n", json!({"a": {"b": "one \"two", "c": "x y"}})),
        ("a:\n  b: |\n    it's \"\n\n    - \"\n  c: \"x\ny\"\n", json!({"a": {"b": "it's \"\n\n- \"\n", "c": "x y"}})),
        ("a:\n  b: >2-\n    \"x\n  c: \"x\ny\"\n", json!({"a": {"b": "\"x", "c": "x y"}})),
        ("a:\n  b: |\n  c: \"x\ny\"\n", json!({"a": {"b": "", "c": "x y"}})),
        ("- \"x\ny\"\n", Value::Null),
        ("a:\n  b: \"ü\nö\"\n  ä: \"x\ny\"\n", json!({"a": {"b": "ü ö", "ä": "x y"}})),
        ("a:\r\n  b: \"x\r\ny\"\r\n", json!({"a": {"b": "x y"}})),
        ("a:\n  b: \"x\ny\"\n...\n\"\n", json!({"a": {"b": "x y"}})),
    ] {
        if expected.is_null() {
            assert_eq!(outline(input), "0!", "a list is no object: {input:?}");
        } else {
            assert_eq!(only(input), expected, "{input:?}");
        }
    }
}

#[test]
fn broken_parts_beside_quoted_text_stay_refused_at_their_position() {
    for (input, expected) in [
        ("a:\n  b: \"x\ny\" z\n", "yaml: line 3 column 4: "),
        ("a:\n  b: \"x\ny\"\n  c: ]\n", "yaml: line 4 column 6: "),
        ("a:\n  b: \"x\ny\n", "yaml: line 4 column 1: "),
        ("a:\n  b: \"x\n... \ny\"\n", "yaml: line 3 column 1: "),
    ] {
        let error = read(input).remove(0).1.unwrap_err();

        assert!(error.starts_with(expected), "{input:?}: {error}");
    }
}

/// spec 10 §9.2: the work for a document grows with its size, not with its size times its lines.
#[test]
fn quoted_text_is_read_twice_however_many_lines_are_not_indented() {
    let scalars = |count| (0..count).map(|index| format!("  k{index}: \"it's\nx\"\n")).collect::<String>();
    let inputs = [
        format!("a:\n  b: \"{}\"\n", "\n'".repeat(2000)),
        format!("a:\n  b: '{}'\n", "\n\"x\"".repeat(2000)),
        format!("a:\n{}", scalars(2000)),
        format!("a:\n  b: \"{}\"\n", format!("\n{}", "x' ".repeat(170)).repeat(900)),
    ];
    for input in inputs {
        let (limits, size) = (Limits::default(), input.len());
        let mut meter = Meter::new(3 * size + 64 * 4100 + 8 * 4100 + 3 * 4100);

        let result = yaml::document(&input, 0, &limits, &mut meter, &mut DuplicateKeys::default());

        assert!(matches!(result, Ok(Some(_))), "{size} bytes: {result:?}");
        assert!(meter.readings() <= 2, "{size} bytes were read {} times", meter.readings());
    }
}

/// spec 10 §9.2
#[test]
fn a_byte_order_mark_that_begins_a_line_is_no_content() {
    for (input, expected) in [
        (format!("{BOM}a: 1\n"), "0"),
        (format!("{BOM}# c\na: 1\n"), "0"),
        (format!("{BOM}{{\"a\":1}}\n"), "0"),
        (format!("{BOM}---\na: 1\n---\n{BOM}b: 1\n"), "0 1"),
        (format!("---\n{BOM}a: 1\n"), "0"),
        (format!("---\n{BOM}# c\na: 1\n"), "0"),
        (format!("# c\n{BOM}a: 1\n"), "0"),
        (format!("a: 1\n{BOM}# c\nb: 1\n"), "0"),
        (format!("a: 1\n{BOM}\nb: 1\n"), "0"),
        (format!("a: |\n  x\n{BOM}# c\nb: \"x\ny\"\n"), "0"),
        (format!("a: 1\n---\n{BOM}# c\n---\n{BOM}\n---\nb: 1\n"), "0 3"),
        (format!("a: 1\n{BOM}b: 1\n"), "0!"),
    ] {
        assert_eq!(outline(&input), expected, "{input:?}");
    }
    assert_eq!(only(&format!("a: 1\n  {BOM}# c\n")), json!({"a": format!("1 {BOM}# c")}));
}

#[derive(Debug, Clone)]
enum Notation {
    Quoted(char, Vec<(usize, String)>),
    Plain(String),
    Literal(Vec<String>),
    Flow(Box<Notation>),
    List(Box<Notation>),
}

impl Notation {
    /// As the value of a key with `indent` blanks before it.
    fn text(&self, indent: usize) -> String {
        let margin = " ".repeat(indent + 1);
        match self {
            Self::Quoted(quote, lines) => {
                let lines: Vec<_> = lines.iter().map(|(blanks, line)| " ".repeat(*blanks) + line).collect();
                format!(" {quote}{}{quote}\n", lines.join("\n").trim_start())
            }
            Self::Plain(text) => format!(" {text}\n{margin}{text}\n"),
            Self::Literal(lines) => {
                format!(" |\n{}", lines.iter().map(|line| format!("{margin}{line}\n")).collect::<String>())
            }
            Self::Flow(value) => format!(" [1,{}{margin}]\n", value.text(indent)),
            Self::List(value) => format!("\n{margin}-{}", value.text(indent + 1)),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Quoted(_, lines) => {
                let mut text = String::new();
                let mut breaks = 0;
                for (index, (_, line)) in lines.iter().enumerate() {
                    if line.is_empty() {
                        breaks += 1;
                    } else {
                        let fold = if breaks == 0 && index > 0 { " ".to_owned() } else { "\n".repeat(breaks) };
                        text += &(fold + line);
                        breaks = 0;
                    }
                }
                json!(text)
            }
            Self::Plain(text) => json!(format!("{text} {text}")),
            Self::Literal(lines) => json!(lines.iter().map(|line| format!("{line}\n")).collect::<String>()),
            Self::Flow(value) => json!([1, value.value()]),
            Self::List(value) => json!([value.value()]),
        }
    }
}

fn words(without: char) -> impl Strategy<Value = String> {
    let words = ["it's", "\"q", "# c", "k: v", "- x", "a", "[", "{b", "|", "ü", "&x", "%"];
    let words: Vec<_> = words.into_iter().filter(|word| !word.contains(without)).collect();
    prop::collection::vec(prop::sample::select(words), 1..3).prop_map(|words| words.join(" "))
}

fn quoted() -> impl Strategy<Value = Notation> {
    prop::sample::select(vec!['"', '\'']).prop_flat_map(|quote| {
        let line = prop_oneof![1 => Just(String::new()), 4 => words(quote)];
        let lines = prop::collection::vec((0..5_usize, line), 0..5);
        (words(quote), lines, words(quote)).prop_map(move |(first, lines, last)| {
            let lines = [vec![(0, first)], lines, vec![(0, last)]].concat();
            Notation::Quoted(quote, lines)
        })
    })
}

fn notation() -> impl Strategy<Value = Notation> {
    prop_oneof![
        4 => quoted(),
        1 => prop::sample::select(vec!["it's", "x \"y", "a#b"]).prop_map(|text| Notation::Plain(text.to_owned())),
        1 => prop::collection::vec(words('\0'), 1..3).prop_map(Notation::Literal),
        1 => quoted().prop_map(|value| Notation::Flow(Box::new(value))),
        1 => quoted().prop_map(|value| Notation::List(Box::new(value))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// spec 10 §9.2
    #[test]
    fn quoted_text_means_the_same_however_its_lines_are_indented(
        entries in prop::collection::vec((0..3_usize, notation(), any::<bool>()), 1..6),
    ) {
        let (mut text, mut expected) = (String::new(), Map::new());
        for (index, (depth, notation, comment)) in entries.iter().enumerate() {
            let key = format!("k{index}");
            let mut value = notation.value();
            for level in 0..*depth {
                text += &format!("{}{key}:\n", " ".repeat(2 * level));
                value = json!({ key.as_str(): value });
            }
            let comment = if *comment { "# it's \"\n" } else { "" };
            text += &format!("{}{key}:{}{comment}", " ".repeat(2 * depth), notation.text(2 * depth));
            expected.insert(key, value);
        }

        let mut meter = Meter::new(1 << 20);
        let read = yaml::document(&text, 0, &Limits::default(), &mut meter, &mut DuplicateKeys::default());

        prop_assert_eq!(read, Ok(Some(Value::Object(expected))), "{}", text);
        prop_assert!(meter.readings() <= 2);
    }

    #[test]
    fn quotes_and_marks_in_any_text_are_read_twice_at_most(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "\"", "'", "\n", "\n\t", "\n  ", "a: ", "- ", "? ", "[", "]", "{", "}", ",", "|\n", "#", " ", "\\", BOM, "...\n", "&x ",
        ]), 0..40),
    ) {
        let mut meter = Meter::new(1 << 20);

        drop(yaml::document(&pieces.concat(), 0, &Limits::default(), &mut meter, &mut DuplicateKeys::default()));

        prop_assert!(meter.readings() <= 2);
    }
}

/// spec 10 §9.2
#[test]
fn quoted_text_that_would_grow_beyond_measure_stays_refused_and_costs_nothing_else() {
    // Each line would get 500 blanks.
    let input = format!("{}a: \"{}\"\n---\na: 1\n", " ".repeat(500), "x\n".repeat(10_000));

    let documents = read(&input);

    let error = documents[0].1.as_ref().unwrap_err();
    assert!(error.starts_with("yaml: line 2 column 1: "), "{error}");
    assert_eq!(documents[1], (1, Ok(json!({"a": 1}))));
}
