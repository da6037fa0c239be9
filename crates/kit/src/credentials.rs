//! Leaves credentials out of texts that should hold none: a path, a name or an address in whose place a user may have put
//! a token, a kubeconfig or a URL with a password.

use std::borrow::Cow;

/// What stands for a text that may be a credential.
pub const LEFT_OUT: &str = "(left out: it may be a credential)";

/// Longest text that counts as a path, a name or an address, in bytes: Linux takes no longer path.
const LONGEST: usize = 4096;
/// Longest part of a path or a name, in bytes. Tokens and encoded keys are longer.
const LONGEST_PART: usize = 255;

/// Returns the text without user and query of a URL, or [`LEFT_OUT`] for a text that is no path, name or address: one with
/// several lines, a JSON document, a JSON Web Token, a text with `Bearer`, or a very long one. Other texts stay as they are.
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    if is_suspect(text) {
        return Cow::Borrowed(LEFT_OUT);
    }
    let begin = text.find("://").map(|scheme| scheme + "://".len());
    let rest = &text[begin.unwrap_or_default()..];
    let end = begin.and_then(|_| rest.find(['?', '#'])).unwrap_or(rest.len());
    let user = rest[..end].rfind('@').filter(|user| begin.is_some() || rest[..*user].contains(':'));
    if user.is_none() && end == rest.len() {
        return Cow::Borrowed(text);
    }
    let address = user.map_or(&rest[..end], |user| &rest[user..end]);
    let hidden = if user.is_some() { "…" } else { "" };
    let query = if end < rest.len() { "?…" } else { "" };
    Cow::Owned(format!("{}{hidden}{address}{query}", &text[..begin.unwrap_or_default()]))
}

/// Whether a text looks like the path of a file: it begins with a folder, has an ending that kubeconfigs have, or has a
/// slash and no characters but those of usual names. A short token looks like nothing, so it looks like no path either.
pub fn is_like_a_path(text: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["/", "./", "../", "~/"];
    const ENDINGS: [&str; 6] = [".conf", ".config", ".json", ".yaml", ".yml", "kubeconfig"];

    let is_usual =
        |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || "-._/".contains(character);
    let is_like = BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        || ENDINGS.iter().any(|ending| text.ends_with(ending))
        || text.contains('/') && text.chars().all(is_usual);
    is_like && !is_suspect(text)
}

/// Whether a text is the content of a file in the place of its path or of a name, as with `--config "$(cat FILE)"`.
pub fn is_content(text: &str) -> bool {
    let is_json = text.trim_start().starts_with('{') && text.contains('"');
    text.len() > LONGEST || text.contains(['\n', '\r']) || is_json
}

/// Returns a word of a command line for an error about it, or its length if it [is content](is_content): that may hold
/// credentials.
pub fn shown_word(word: &str) -> Cow<'_, str> {
    if is_content(word) { Cow::Owned(format!("(a text of {} bytes)", word.len())) } else { Cow::Borrowed(word) }
}

fn is_suspect(text: &str) -> bool {
    let is_token = |word: &str| word.starts_with("eyJ") && word.contains('.');
    text.len() > LONGEST
        || text.contains(['\n', '\r', '{'])
        || text.split(['/', '.', ':', ',']).any(|part| part.len() > LONGEST_PART)
        || text.split_whitespace().any(|word| is_token(word) || word.eq_ignore_ascii_case("bearer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_left_out_of_texts_that_should_have_none() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{}.c2ln", "a".repeat(20));
        for text in [
            "apiVersion: v1\nkind: Config\nusers: []",
            r#"{"apiVersion": "v1", "kind": "Config"}"#,
            &token,
            &format!("a {token}"),
            "Bearer abc",
            &"QUJD".repeat(100),
            &format!("a/{}", "b/".repeat(3000)),
        ] {
            assert_eq!(without_credentials(text), LEFT_OUT, "{text}");
        }
    }

    #[test]
    fn credentials_in_a_url_are_left_out_and_the_address_stays() {
        for (text, expected) in [
            ("https://me:sesame@host:6443/path", "https://…@host:6443/path"),
            ("https://sesame@host", "https://…@host"),
            ("https://me:p@ss@host", "https://…@host"),
            ("https://host/path?token=sesame", "https://host/path?…"),
            ("https://me:sesame@host?a=b@c", "https://…@host?…"),
            ("me:sesame@host:6443", "…@host:6443"),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }

    #[test]
    fn short_token_does_not_look_like_a_path() {
        for text in
            ["/etc/kubernetes/admin.conf", "kubeconfig", "dev.kubeconfig", "./a", "~/.kube/config", "config/tls"]
        {
            assert!(is_like_a_path(text), "{text}");
        }
        for text in
            ["", "sesame", "abcdef.0123456789abcdef", "c2Vz/YW1lCg==", "/eyJhbGciOi.eyJh.c2ln\nx", "me:sesame@host"]
        {
            assert!(!is_like_a_path(text), "{text}");
        }
    }

    #[test]
    fn content_in_the_place_of_a_path_is_not_shown() {
        for text in ["a: b\nc: d\n", "a\r", "{\"a\": \"sesame\"}", " {\"a\": 1}", &"a".repeat(4097)] {
            assert_eq!(shown_word(text), format!("(a text of {} bytes)", text.len()));
        }
        for text in ["", "-", "/a b/c", "jsonpath={.a}", "{.spec.class}", &"a".repeat(4096)] {
            assert_eq!(shown_word(text), text);
        }
    }

    #[test]
    fn credentials_are_not_suspected_in_paths_names_and_addresses() {
        for text in [
            "",
            "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig",
            "C:\\kubeconfig",
            "/home/me@example.org/kubeconfig",
            "shoot--foo--bar",
            "<cluster>",
            "[::1]:8080",
            "https://api.example.org:6443",
            &"n".repeat(253),
        ] {
            assert_eq!(without_credentials(text), text);
        }
    }
}
