use serde_json::{Value, json};

use super::*;

fn list() -> Value {
    json!({"kind": "List", "items": [
        {"metadata": {"name": "a", "labels": {"example.com/x": "1", "b c": "2"}}, "n": 1, "ok": true, "none": null,
            "status": {"conditions": [
                {"type": "ResourcesApplied", "status": "True"}, {"type": "ResourcesHealthy", "status": "False"},
            ]}},
        {"metadata": {"name": "b"}, "n": 2.5, "ok": false, "status": {"conditions": []}},
    ]})
}

fn print(template: &str, value: &Value) -> String {
    template.parse::<Template>().unwrap_or_else(|error| panic!("{template}: {error}")).print(value).unwrap()
}

#[test]
fn jsonpath_template_prints_as_kubectl_does() {
    let table = [
        ("{.kind}", "List"),
        ("kind: {.kind}!", "kind: List!"),
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[0].metadata.name}{'/'}{.items[-1].metadata.name}", "a/b"),
        ("{$.kind}{@.kind}{ .kind }", "ListListList"),
        ("{.items[5].n}{.nothing.at.all}{.kind[0]}{.kind.x}{.items.n}{.items[-9].n}", ""),
        ("{.items[0].none}", ""),
        (r"{.items[0].metadata.labels.example\.com/x}", "1"),
        ("{.items[0].metadata.labels['b c']}{.items[0]['metadata'][\"name\"]}", "2a"),
        ("{.items[0].metadata.labels.*}", "2 1"),
        ("{.items[*].n} {.items[*].ok}", "1 2.5 true false"),
        ("{.items[1].status}", r#"{"conditions":[]}"#),
        (r#"{.items[*].status.conditions[?(@.type=="ResourcesHealthy")].status}"#, "False"),
        (r#"{.items[0].status.conditions[?( @.type != 'ResourcesHealthy' )].status}"#, "True"),
        ("{.items[?(@.ok==true)].metadata.name}{.items[?(@.n==2.5)].metadata.name}", "ab"),
        ("{.items[?(@.metadata.labels)].metadata.name}{.items[?(@.none)].n}", "a"),
        (r#"{range .items[*]}{.metadata.name}{"\t"}{@.n}{"\n"}{end}done"#, "a\t1\nb\t2.5\ndone"),
        (
            "{range .items[*]}{range .status.conditions[*]}{.type}{','}{end}{';'}{end}",
            "ResourcesApplied,ResourcesHealthy,;;",
        ),
        (r#"{"a \"b\" \\ \t"}{'c \'d\''}"#, "a \"b\" \\ \tc 'd'"),
        ("{range .items[*].n}{.}{@}{end}", "112.52.5"),
        ("{range .nothing[*]}x{end}", ""),
    ];

    for (template, expected) in table {
        assert_eq!(print(template, &list()), expected, "{template}");
    }
}

#[test]
fn jsonpath_that_is_unknown_is_refused_with_its_place() {
    let table = [
        ("", "there is no expression in braces — write for example {.metadata.name}, at \"the end\""),
        (
            ".metadata.name",
            "there is no expression in braces — write for example {.metadata.name}, at \".metadata.name\"",
        ),
        ("{.a", "expected }, at \"the end\""),
        ("{}", "a path begins with a dot, for example {.metadata.name}, at \"}\""),
        ("{metadata.name}", "a path begins with a dot, for example {.metadata.name}, at \"metadata.name}\""),
        ("{..name}", "recursive descent is not supported, at \"..name}\""),
        ("{.a..b}", "recursive descent is not supported, at \"..b}\""),
        ("{.a[0:2]}", "slices are not supported, at \"0:2]}\""),
        ("{.a[:2]}", "slices are not supported, at \":2]}\""),
        ("{.a[0,1]}", "unions are not supported, at \"0,1]}\""),
        ("{.a['b','c']}", "unions are not supported, at \"'b','c']}\""),
        ("{.a[b]}", "expected a number, *, a quoted name or ?(…), at \"b]}\""),
        ("{.a[--1]}", "expected a number, *, a quoted name or ?(…), at \"--1]}\""),
        ("{.a[99999999999999999999]}", "expected a number, *, a quoted name or ?(…), at \"99999999999999999999\""),
        ("{.a[0}", "expected ], at \"}\""),
        ("{.a[?(.b==1)]}", "a filter begins with @, at \".b==1)]}\""),
        ("{.a[?(@.b>1)]}", "other comparisons than == and != are not supported, at \">1)]}\""),
        ("{.a[?(@.b==x)]}", "expected a text in quotes, a number, true or false, at \"x)]}\""),
        ("{.a[?(@.b[?(@.c)])]}", "filters within filters are not supported, at \"@.b[?(@.c)])]}\""),
        ("{.a.}", "expected the name of a field, at \"}\""),
        ("{.a .b}", "expected }, at \".b}\""),
        ("{'a}", "expected a quote at the end of the text, at \"'a}\""),
        (r#"{"\x"}"#, r#"the escapes are \n, \t, \r, \\, \" and \', at "x\"}""#),
        (r"{.a\", "expected a character after the backslash, at \"a\\\\\""),
        ("{range .items[*]}{.a}", "range without {end}, at \"{range .items[*]}{.a\""),
        ("{.a}{end}", "end without range, at \"{end}\""),
    ];

    for (template, expected) in table {
        let error = template.parse::<Template>().expect_err(template);

        assert_eq!(error.to_string(), expected, "{template}");
    }
    let deep = "{range .a}".repeat(9);
    assert!(deep.parse::<Template>().unwrap_err().to_string().starts_with("ranges are too deep"));
    assert_eq!("x".repeat(20_000).parse::<Template>(), Err(JsonPathError::TooLong(16 << 10)));
}

#[test]
fn jsonpath_alone_may_lack_braces_and_dot() {
    let value = json!({"metadata": {"name": "a"}, "list": [1, 2]});
    let of = |path: &str| path.parse::<Path>().unwrap_or_else(|error| panic!("{path}: {error}"));

    for path in ["metadata.name", ".metadata.name", "{.metadata.name}", "{metadata.name}", " {.metadata['name']} "] {
        assert_eq!(of(path).of(&value).unwrap(), [&json!("a")], "{path}");
    }
    assert_eq!(of("list[*]").of(&value).unwrap().len(), 2);
    for wrong in ["", "{", "{.a", ".a}", ".a{.b}", "{.a}{.b}", "a b", "{range .a}"] {
        assert!(wrong.parse::<Path>().is_err(), "{wrong}");
    }
}

#[test]
fn jsonpath_ends_when_it_visits_too_much() {
    let items = vec![json!(1); 100];
    let value = json!({ "items": items });
    let path: Path = ".items[*]".parse().unwrap();

    assert_eq!(path.within(&value, &mut evaluate::Budget(50)), Err(TooMuch));
    assert_eq!(path.within(&value, &mut evaluate::Budget(102)).map(|found| found.len()), Ok(100));
}
