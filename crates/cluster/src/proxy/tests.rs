use super::*;

fn proxies(variables: &[(&str, &str)]) -> ProxySettings {
    ProxySettings::of(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

fn chosen(variables: &[(&str, &str)], server: &str, proxy_url: Option<&str>) -> String {
    let proxy = proxies(variables).choose(&server.parse().unwrap(), proxy_url).unwrap();
    proxy.map_or_else(|| "none".to_owned(), |proxy| proxy.to_string())
}

fn of_variable(value: &str) -> String {
    chosen(&[("HTTPS_PROXY", value)], "https://a", None)
}

/// spec 70 §8.1, row "which"
#[test]
fn proxy_url_overrides_the_variable_of_the_scheme() {
    let all = [("HTTPS_PROXY", "http://s"), ("HTTP_PROXY", "http://p"), ("NO_PROXY", "*")];
    let lower = [("https_proxy", "http://s"), ("http_proxy", "http://p")];
    let both = [("HTTPS_PROXY", "http://upper"), ("https_proxy", "http://lower")];
    let empty = [("HTTPS_PROXY", ""), ("https_proxy", "http://lower")];
    let table: [(&[_], _, _, _); _] = [
        // environment, server, proxy-url, proxy
        (&all, "https://a", Some("http://k"), "http://k:80"),
        (&all, "https://localhost", Some("http://k"), "http://k:80"),
        (&all[..2], "https://a", None, "http://s:80"),
        (&all[..2], "http://a", None, "http://p:80"),
        (&all[..2], "https://a", Some(""), "http://s:80"),
        (&all[1..2], "https://a", None, "none"),
        (&all[..1], "http://a", None, "none"),
        (&lower, "https://a", None, "http://s:80"),
        (&lower, "http://a", None, "http://p:80"),
        (&both, "https://a", None, "http://upper:80"),
        (&empty, "https://a", None, "http://lower:80"),
        (&[("ALL_PROXY", "http://all"), ("all_proxy", "http://all")], "https://a", None, "none"),
        (&[], "https://a", None, "none"),
    ];

    for (variables, server, proxy_url, expected) in table {
        assert_eq!(chosen(variables, server, proxy_url), expected, "{variables:?} {server} {proxy_url:?}");
    }
}

/// spec 70 §8.1, row "value"
#[test]
fn proxy_is_a_url_with_a_known_scheme_and_its_default_port() {
    let table = [
        // value, as a variable, as proxy-url
        ("http://p", "http://p:80", "http://p:80"),
        ("https://p", "https://p:443", "https://p:443"),
        ("socks5://p", "socks5://p:1080", "socks5://p:1080"),
        ("socks5h://p", "socks5://p:1080", "unsupported scheme \"socks5h\", must be http, https, or socks5"),
        ("HTTP://P:3128/", "http://P:3128", "http://P:3128"),
        ("http://p:/?x#y", "http://p:80", "http://p:80"),
        ("http://10.0.0.1:8", "http://10.0.0.1:8", "http://10.0.0.1:8"),
        ("http://[fd00::1]", "http://[fd00::1]:80", "http://[fd00::1]:80"),
        ("http://[fd00::1]:8", "http://[fd00::1]:8", "http://[fd00::1]:8"),
        ("p", "http://p:80", "unsupported scheme \"\", must be http, https, or socks5"),
        ("p:3128", "http://p:3128", "unsupported scheme \"p\", must be http, https, or socks5"),
        ("10.0.0.1:3128", "http://10.0.0.1:3128", "could not parse: 10.0.0.1:3128"),
        ("ftp://p", "none", "unsupported scheme \"ftp\", must be http, https, or socks5"),
        ("://p", "none", "could not parse: ://p"),
        ("http://", "none", "could not parse: http://"),
        ("http://:3128", "none", "could not parse: http://:3128"),
        ("http://p:port", "none", "could not parse: http://p:port"),
        ("http://p:+1", "none", "could not parse: http://p:+1"),
        ("http://p:65536", "none", "could not parse: http://p:65536"),
        ("http://a b", "none", "could not parse: http://a b"),
        ("http:p", "none", "could not parse: http:p"),
    ];

    for (value, variable, proxy_url) in table {
        assert_eq!(of_variable(value), variable, "{value}");
        let chosen = ProxySettings::default().choose(&"https://a".parse().unwrap(), Some(value));
        let text = chosen.map_or_else(|error| error.to_string(), |proxy| proxy.unwrap().to_string());
        assert_eq!(text, proxy_url, "{value}");
    }
}

/// spec 70 §8.1
#[test]
fn proxy_variables_with_an_invalid_value_are_named() {
    let settings = proxies(&[("HTTPS_PROXY", "ftp://p"), ("https_proxy", "http://p"), ("http_proxy", "a b")]);

    assert_eq!(settings.ignored(), ["HTTPS_PROXY", "http_proxy"]);
    assert_eq!((settings.https, settings.http), (None, None));
}

/// spec 70 §8.1, row "how"
#[test]
fn proxy_user_and_password_are_decoded() {
    let table = [
        ("http://p", None),
        ("http://@p", None),
        ("http://me@p", Some("me and nothing")),
        ("http://me:sesame@p", Some("me and sesame")),
        ("http://me:a:b@p", Some("me and a:b")),
        ("http://m%40e:s%3Ae%25%ff@p", Some("m@e and s:e%\\xff")),
        ("me:sesame@p:3128", Some("me and sesame")),
    ];

    for (value, expected) in table {
        let user = Proxy::of_variable(value).unwrap().user.map(|user| match &user.password[..] {
            [] => format!("{} and nothing", user.name.escape_ascii()),
            password => format!("{} and {}", user.name.escape_ascii(), password.escape_ascii()),
        });
        assert_eq!(user.as_deref(), expected, "{value}");
    }
    for value in ["http://me:%4@p", "http://me:%+1@p", "http://me:%zz@p", "http://m e@p", "http://me:s/x@p"] {
        assert!(Proxy::of_variable(value).is_none(), "{value}");
    }
    // the apparent host and port are user and password
    for value in ["http://me:2024/sesame@p:3128", "me:2024?sesame@p:3128", "http://me:2024#sesame@p", "http://me/@p"] {
        assert!(Proxy::of_variable(value).is_none(), "{value}");
    }
}

/// spec 70 §8.1
#[test]
fn proxy_user_and_password_are_never_shown() {
    let table = [
        ("http://me:sesame@p:port", "could not parse: http://***@p:port"),
        ("http://me:ses/a#me@p", "could not parse: http://***@p"),
        ("http://sesame:2024/secret@p:3128", "could not parse: http://***@p:3128"),
        ("http://me:ses@me%@p", "could not parse: http://***@p"),
        ("me:sesame@p:3128", "could not parse: ***@p:3128"),
        ("http:me:sesame@p:3128", "could not parse: ***@p:3128"),
        ("me:sesame://x@p", "could not parse: ***@p"),
        ("ftp://me:sesame@p", "unsupported scheme \"ftp\", must be http, https, or socks5"),
    ];

    for (value, text) in table {
        let error = ProxySettings::default().choose(&"https://a".parse().unwrap(), Some(value)).unwrap_err();
        assert_eq!(error.to_string(), text, "{value}");
        assert!(!format!("{error:?}").contains("ses"), "{error:?}");
    }
    let settings = proxies(&[("HTTPS_PROXY", "http://me:sesame@p"), ("HTTP_PROXY", "me:ses@ame:1")]);
    assert!(!format!("{settings:?}").contains("ses"), "{settings:?}");
    assert_ne!(settings, proxies(&[("HTTPS_PROXY", "http://me:other@p"), ("HTTP_PROXY", "me:ses@ame:1")]));
}

/// spec 70 §8.1, row "never"
#[test]
fn no_proxy_includes_this_machine() {
    let table = [
        ("https://localhost", true),
        ("https://LOCALHOST:6443", true),
        ("https://127.0.0.1:6443", true),
        ("https://127.1.2.3", true),
        ("https://[::1]:6443", true),
        ("https://[::ffff:127.0.0.1]", true),
        ("https://localhost.", false),
        ("https://a.localhost", false),
        ("https://10.0.0.1", false),
        ("https://[fd00::1]", false),
    ];

    for (server, direct) in table {
        assert_eq!(chosen(&[("HTTPS_PROXY", "p")], server, None) == "none", direct, "{server}");
    }
}

/// spec 70 §8.1, row "`NO_PROXY`"
#[test]
fn no_proxy_entries_are_reached_directly() {
    let table: [(&str, &[&str], &[&str]); _] = [
        // NO_PROXY, directly, through the proxy
        ("*", &["https://a", "https://10.0.0.1", "https://[fd00::1]:6443"], &[]),
        ("x,*", &["https://a", "https://10.0.0.1"], &[]),
        ("", &[], &["https://a", "https://10.0.0.1"]),
        (", ,", &[], &["https://a", "https://10.0.0.1"]),
        (" b , a ", &["https://a", "https://b"], &["https://c"]),
        (
            "10.0.0.1",
            &["https://10.0.0.1", "https://10.0.0.1:6443", "https://[::ffff:10.0.0.1]"],
            &["https://10.0.0.11"],
        ),
        (
            "10.0.0.0/8",
            &["https://10.255.0.1:6443", "https://[::ffff:10.0.0.1]"],
            &["https://11.0.0.1", "https://[a00::]"],
        ),
        ("10.1.2.3/8", &["https://10.255.0.1"], &["https://11.0.0.1"]),
        ("10.0.0.128/25", &["https://10.0.0.128", "https://10.0.0.255"], &["https://10.0.0.127", "https://10.0.1.128"]),
        ("0.0.0.0/0", &["https://1.2.3.4"], &["https://[fd00::1]", "https://a"]),
        ("10.0.0.1/32", &["https://10.0.0.1"], &["https://10.0.0.2"]),
        ("10.0.0.0/33", &[], &["https://10.0.0.0"]),
        ("fd00::1", &["https://[fd00::1]", "https://[FD00::1]:6443", "https://[fd00:0::1]"], &["https://[fd00::2]"]),
        ("fd00::/8", &["https://[fd12::1]:6443"], &["https://[fe00::1]", "https://253.0.0.0"]),
        ("::/0", &["https://[fe00::1]"], &["https://10.0.0.1"]),
        ("10.0.0.1:6443", &["https://10.0.0.1:6443"], &["https://10.0.0.1", "https://10.0.0.2:6443"]),
        ("[fd00::1]:443", &["https://[fd00::1]", "https://[fd00::1]:443"], &["https://[fd00::1]:6443"]),
        (
            "example.org",
            &["https://example.org", "https://a.b.example.org:6443"],
            &["https://anexample.org", "https://org"],
        ),
        ("EXAMPLE.org", &["https://example.ORG", "https://A.example.org"], &["https://example.com"]),
        (".example.org", &["https://a.example.org", "https://a.b.example.org"], &["https://example.org"]),
        ("*.example.org", &["https://a.example.org", "https://a.b.example.org"], &["https://example.org"]),
        ("*example.org", &[], &["https://anexample.org", "https://a.example.org"]),
        ("example.org:6443", &["https://example.org:6443", "https://a.example.org:6443"], &["https://example.org"]),
        ("example.org:443", &["https://example.org"], &["https://example.org:6443", "http://example.org"]),
        ("example.org:80", &["http://example.org"], &["https://example.org"]),
        (".example.org:443", &["https://a.example.org"], &["https://example.org", "https://a.example.org:6443"]),
        // a name that ends with a dot is another name, as in Go
        ("example.org", &[], &["https://example.org."]),
        ("example.org.", &["https://example.org.", "https://a.example.org."], &["https://example.org"]),
        // names are not resolved, and addresses have no subdomains
        ("127.0.0.0/8,::1", &[], &["https://example.org"]),
        ("0.0.1,.1", &[], &["https://10.0.0.1"]),
    ];

    for (list, directly, through) in table {
        for name in ["NO_PROXY", "no_proxy"] {
            let variables = [("HTTPS_PROXY", "p"), ("HTTP_PROXY", "p"), (name, list)];
            for server in directly {
                assert_eq!(chosen(&variables, server, None), "none", "{name}={list} {server}");
            }
            for server in through {
                assert_eq!(chosen(&variables, server, None), "http://p:80", "{name}={list} {server}");
            }
        }
    }
}
