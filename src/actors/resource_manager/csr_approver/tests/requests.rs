//! spec 32 §5.1: malformed and unusual requests. The tables were compared with Go's `encoding/pem` and
//! `x509.ParseCertificateRequest`; a mark in a case names a difference:
//! * *stricter*: Go reads the request, the library does not; no common tool makes such a request
//! * *ambiguous*: Go reads the request and the library could, but readers may differ, so we refuse it
//! * *laxer*: Go does not read the request, so the API server stores no such request

use std::net::IpAddr;

use super::{
    builder::{
        DNS, IP, Parts, UTF8, alternative_names, attribute, element, extension, extension_request, pair, pair_alone,
        pem,
    },
    *,
};

const PRINTABLE: u8 = 0x13;
const T61: u8 = 0x14;
const IA5: u8 = 0x16;
const BMP: u8 = 0x1E;

/// Made by Go, as in kubelets and node agents.
const GO: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBOTCB4AIBADA0MRUwEwYDVQQKEwxzeXN0ZW06bm9kZXMxGzAZBgNVBAMTEnN5
c3RlbTpub2RlOm5vZGUtMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJ5pFH0T
JSLmmJs1dWgVKakhYtnE+fLriQYFvQqL9nDR2uF8cbaLaG7mGv1JeAXOjTOlCAlv
bTuGGkFsspuBAk2gSjBIBgkqhkiG9w0BCQ4xOzA5MDcGA1UdEQQwMC6CBm5vZGUt
MYIMbm9kZS0xLmxvY2FshwQKAAABhxAgAQ24AAAAAAAAAAAAAAABMAoGCCqGSM49
BAMCA0gAMEUCIGUXrfGdWt7+ugkLvZ3Bzxr0ld932mw1gKO535nOORriAiEA7eka
FBuTbhx34xwmHsfUP+9hb2YBMl9GGymFMVmrpPY=
-----END CERTIFICATE REQUEST-----
";

/// Made by OpenSSL with an RSA key, two common names, an e-mail address and a URI.
const OPENSSL: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBxDCCAS0CAQAwRDEVMBMGA1UECgwMc3lzdGVtOm5vZGVzMQ4wDAYDVQQDDAVm
aXJzdDEbMBkGA1UEAwwSc3lzdGVtOm5vZGU6bm9kZS0xMIGfMA0GCSqGSIb3DQEB
AQUAA4GNADCBiQKBgQCmVxqXIInWy6zfMjLY/YijHPG0XfBCw2RvQo1yNmhqGYac
XSQtZWGIk3c7LWaADtNxQxKEaaVoPYN2URbAOhhc8bX9NsefqSftSPVsNS0TpFGH
/TsqzEMAm+LeXfAMS0JqvQGqXAMUevfHu8NvxCdz/bwhRG9FZzo5qMCvPy6fZQID
AQABoEAwPgYJKoZIhvcNAQkOMTEwLzAtBgNVHREEJjAkggZub2RlLTGHBAoAAAGB
BWFAYi5jhg1odHRwczovL3gueS96MA0GCSqGSIb3DQEBCwUAA4GBAA8JzoBCRgkm
9ISEXuzIXL4AadUa5DlGeqn0StxUxYOZIvUWHKCksF24jjL2YIxkMMEFZAg4Q8rM
10YdV/zSjMgLGPeTcDA1pgENCvWh2whoqmS4tYW7lkoLPh+RsyS665rFTE5rHteS
FCuPSdFZOPorN07kOfqAb/AvgBjmlji7
-----END CERTIFICATE REQUEST-----
";

fn request(common_name: &str, organizations: &[&str], dns: &[&str], ips: &[&str]) -> Request {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let ip_addresses: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
    Request {
        common_name: common_name.to_owned(),
        organizations: texts(organizations),
        dns_names: texts(dns),
        ip_addresses,
        other_names: 0,
    }
}

/// The request with two names that are neither DNS names nor addresses.
fn with_two_others(request: Request) -> Request {
    Request { other_names: 2, ..request }
}

fn subject(sets: &[Vec<u8>]) -> Vec<u8> {
    Parts { subject: sets.concat(), ..Parts::default() }.der()
}

fn attributes(attributes: &[Vec<u8>]) -> Vec<u8> {
    Parts { attributes: attributes.concat(), ..Parts::default() }.der()
}

#[test]
fn requests_of_common_tools_are_read() {
    let go =
        request("system:node:node-1", &["system:nodes"], &["node-1", "node-1.local"], &["10.0.0.1", "2001:db8::1"]);
    let openssl = request("system:node:node-1", &["system:nodes"], &["node-1"], &["10.0.0.1"]);

    assert_eq!(Request::from_pem(GO.as_bytes()), Ok(go));
    assert_eq!(Request::from_pem(OPENSSL.as_bytes()), Ok(with_two_others(openssl)));
}

/// Asserts the result; a case named "ambiguous" must be refused by our own rules, not by the library.
fn assert_read(what: &str, der: &[u8], expected: Option<Request>) {
    let read = Request::from_der(der);
    if what.starts_with("ambiguous") {
        assert!(matches!(read, Err(Unreadable::Refused(_))), "{what}: {read:?}");
    }
    assert_eq!(read.ok(), expected, "{what}");
}

/// spec 32 §5.1
#[test]
fn subject_gives_the_last_common_name_and_all_organizations() {
    let common_name = |tag: u8, value: &[u8]| subject(&[pair(3, tag, value)]);
    let named = |name: &str| Some(request(name, &[], &[], &[]));
    let in_one = |pairs: &[Vec<u8>]| subject(&[element(0x31, pairs)]);
    let [o_a, o_b, n_a, n_b] =
        [(10, b"a"), (10, b"b"), (3, b"a"), (3, b"b")].map(|(kind, name)| pair_alone(kind, UTF8, name));
    let integer = pair(3, 0x02, &[5]);
    let surplus =
        element(0x30, &[element(0x06, &[vec![0x55, 4, 3]]), element(UTF8, &[b"n".to_vec()]), vec![0xFF, 0xFF]]);
    for (what, der, expected) in [
        ("empty subject", subject(&[]), named("")),
        ("empty set", subject(&[element(0x31, &[])]), named("")),
        ("two common names", subject(&[pair(3, UTF8, b"a"), pair(3, UTF8, b"b")]), named("b")),
        ("the last is empty", subject(&[pair(3, UTF8, b"a"), pair(3, UTF8, b"")]), named("")),
        ("the last is a number", subject(&[pair(3, UTF8, b"a"), integer.clone()]), named("a")),
        ("other attributes", subject(&[pair(11, UTF8, b"unit"), pair(3, UTF8, b"a"), pair(5, UTF8, b"7")]), named("a")),
        (
            "several in one set, as Go makes it",
            in_one(&[n_a.clone(), o_a.clone(), o_b.clone()]),
            Some(request("a", &["a", "b"], &[], &[])),
        ),
        ("two common names in one set", in_one(&[n_a.clone(), n_b.clone()]), named("b")),
        ("ambiguous: two common names in one set, unsorted", in_one(&[n_b, n_a]), None),
        ("ambiguous: two organizations in one set, unsorted", in_one(&[o_b, o_a]), None),
        (
            "organizations around other things",
            subject(&[pair(10, UTF8, b"b"), pair(3, PRINTABLE, b"n"), pair(10, 0x04, b"x"), pair(10, IA5, b"b")]),
            Some(request("n", &["b", "b"], &[], &[])),
        ),
        ("stricter: surplus in a pair", subject(&[element(0x31, &[surplus])]), None),
        ("UTF-8", common_name(UTF8, "ä€".as_bytes()), named("ä€")),
        ("UTF-8 with NUL", common_name(UTF8, b"a\0b"), named("a\0b")),
        ("UTF-8, invalid", common_name(UTF8, &[0xFF]), None),
        ("printable", common_name(PRINTABLE, b"a-Z 0'()+,./:=?"), named("a-Z 0'()+,./:=?")),
        ("stricter: printable with *", common_name(PRINTABLE, b"*"), None),
        ("stricter: printable with &", common_name(PRINTABLE, b"&"), None),
        ("printable, invalid", common_name(PRINTABLE, b"a_b"), None),
        ("printable, with @", common_name(PRINTABLE, b"a@b"), None),
        ("ambiguous: numeric", common_name(0x12, b"0 9"), None),
        ("numeric, invalid", common_name(0x12, b"a"), None),
        ("IA5", common_name(IA5, b"a@\x00"), named("a@\0")),
        ("IA5, invalid", common_name(IA5, &[0x80]), None),
        ("ambiguous: T61", common_name(T61, &[b'a', 0xE4]), None),
        ("ambiguous: T61 that is ASCII", common_name(T61, b"a"), None),
        ("ambiguous: organization in T61", subject(&[pair(10, T61, b"a")]), None),
        ("ambiguous: BMP", common_name(BMP, &[0, b'a', 0x20, 0xAC]), None),
        ("ambiguous: BMP with an end", common_name(BMP, &[0, b'a', 0, 0]), None),
        ("T61 elsewhere", subject(&[pair(11, T61, b"a"), pair(3, UTF8, b"n")]), named("n")),
        ("BMP, half a character", common_name(BMP, &[0, b'a', 0]), None),
        ("BMP, surrogates", common_name(BMP, &[0xD8, 0x3D, 0xDE, 0x00]), None),
        ("BMP, never a character", common_name(BMP, &[0xFF, 0xFE]), None),
        ("ambiguous: general string", common_name(0x1B, b"a"), None),
        ("ambiguous: visible string", common_name(0x1A, b"a"), None),
        ("ambiguous: videotex string", common_name(0x15, b"a"), None),
        ("stricter: universal string", common_name(0x1C, &[0, 0, 0, b'a']), None),
        ("octets", common_name(0x04, b"a"), named("")),
        ("stricter: in parts", common_name(UTF8 | 0x20, &element(UTF8, &[b"a".to_vec()])), None),
        ("context tag", common_name(0x8C, b"a"), named("")),
        (
            "pair without value",
            subject(&[element(0x31, &[element(0x30, &[element(0x06, &[vec![0x55, 4, 3]])])])]),
            None,
        ),
        ("pair that is a set", subject(&[element(0x31, &[element(0x31, &[])])]), None),
        ("sequence for a set", subject(&[element(0x30, &[pair_alone(3, UTF8, b"a")])]), None),
    ] {
        assert_read(what, &der, expected);
    }
}

/// spec 32 §5.1
#[test]
fn san_names_come_from_the_requested_extensions() {
    let san = |names: &[(u8, &[u8])]| attributes(&[extension_request(&[alternative_names(names)])]);
    let names = |dns: &[&str], ips: &[&str]| Some(request("", &[], dns, ips));
    let a = || alternative_names(&[(DNS, b"a")]);
    let b = || alternative_names(&[(DNS, b"b")]);
    let list = || element(0x30, &[element(DNS, &[b"a".to_vec()])]);
    let long_form = [&[0x82, 0x81, 0x01][..], b"a"].concat();
    let mapped: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1];
    let sloppy = element(
        0x30,
        &[element(0x06, &[vec![0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 9, 0x0E]]), {
            let values = element(0x30, &[b()]);
            [vec![0x31, 0x81, u8::try_from(values.len()).unwrap()], values].concat()
        }],
    );
    for (what, der, expected) in [
        ("no attributes", attributes(&[]), names(&[], &[])),
        (
            "names in order",
            san(&[(DNS, b"b"), (IP, &[10, 0, 0, 1]), (DNS, b"a"), (DNS, b"b")]),
            names(&["b", "a", "b"], &["10.0.0.1"]),
        ),
        ("mapped address", san(&[(IP, mapped)]), names(&[], &["::ffff:10.0.0.1"])),
        ("address of 5 octets", san(&[(IP, &[1, 2, 3, 4, 5])]), None),
        ("address with mask", san(&[(IP, &[10, 0, 0, 1, 255, 0, 0, 0])]), None),
        ("empty address", san(&[(IP, &[])]), None),
        ("empty name", san(&[(DNS, b"")]), names(&[""], &[])),
        ("name with NUL", san(&[(DNS, b"a\0b")]), names(&["a\0b"], &[])),
        ("name that is no ASCII", san(&[(DNS, "ä".as_bytes())]), None),
        (
            "mail and URI",
            san(&[(0x81, b"a@b"), (0x86, b"https://c"), (DNS, b"a")]),
            names(&["a"], &[]).map(with_two_others),
        ),
        ("mail that is no ASCII", san(&[(0x81, &[0xFF])]), None),
        (
            "other kinds of names",
            san(&[(0xA4, &[0x30, 0]), (0x88, &[0x2A]), (DNS, b"a")]),
            names(&["a"], &[]).map(with_two_others),
        ),
        ("stricter: name in parts", san(&[(0xA2, b"x")]), None),
        ("stricter: name without its class", san(&[(0x02, b"x")]), None),
        ("stricter: directory name that is none", san(&[(0xA4, b"x")]), None),
        ("name with a long tag", san(&[(0x9F, &[0x22])]), None),
        ("no names", san(&[]), names(&[], &[])),
        ("critical", attributes(&[extension_request(&[extension(17, &[1, 1, 0xFF], list())])]), names(&["a"], &[])),
        (
            "not critical, said",
            attributes(&[extension_request(&[extension(17, &[1, 1, 0], list())])]),
            names(&["a"], &[]),
        ),
        ("half critical", attributes(&[extension_request(&[extension(17, &[1, 1, 1], list())])]), None),
        (
            "stricter: something behind the names",
            attributes(&[extension_request(&[extension(17, &[], [list(), vec![0xFF]].concat())])]),
            None,
        ),
        (
            "length in long form",
            attributes(&[extension_request(&[extension(17, &[], element(0x30, &[long_form]))])]),
            None,
        ),
        ("no sequence", attributes(&[extension_request(&[extension(17, &[], element(0x31, &[]))])]), None),
        ("names twice", attributes(&[extension_request(&[a(), b()])]), None),
        ("names twice, in two attributes", attributes(&[extension_request(&[a()]), extension_request(&[b()])]), None),
        (
            "laxer: another extension twice",
            attributes(&[extension_request(&[a(), extension(15, &[], vec![]), extension(15, &[], vec![])])]),
            names(&["a"], &[]),
        ),
        (
            "ambiguous: names in the second attribute",
            attributes(&[extension_request(&[extension(15, &[], vec![])]), extension_request(&[b()])]),
            None,
        ),
        (
            "ambiguous: two values",
            attributes(&[attribute(0x0E, &[element(0x30, &[a()]), element(0x30, &[b()])])]),
            None,
        ),
        ("ambiguous: no value", attributes(&[attribute(0x0E, &[])]), None),
        ("no extensions", attributes(&[extension_request(&[])]), names(&[], &[])),
        ("value that is a set", attributes(&[attribute(0x0E, &[element(0x31, &[a()])])]), None),
        (
            "other attributes",
            attributes(&[attribute(7, &[element(UTF8, &[b"secret".to_vec()])]), extension_request(&[a()])]),
            names(&["a"], &[]),
        ),
        (
            "ambiguous: attributes in another order",
            attributes(&[extension_request(&[a()]), attribute(7, &[element(UTF8, &[b"secret".to_vec()])])]),
            None,
        ),
        ("stricter: attribute that is none", attributes(&[vec![0x05, 0x00], extension_request(&[a()])]), None),
        (
            "stricter: attribute with a length that Go passes over",
            attributes(&[extension_request(&[a()]), sloppy]),
            None,
        ),
        (
            "stricter: attribute of another kind with such a length",
            attributes(&[element(0x30, &[vec![0x06, 0x81, 1, 0], element(0x31, &[])])]),
            None,
        ),
        ("truncated attribute", attributes(&[vec![0x30, 0x05]]), None),
    ] {
        assert_read(what, &der, expected);
    }
}

/// spec 32 §5.1
#[test]
fn der_must_be_complete_without_trailing_bytes() {
    let usual = Parts::usual("n", &["o"], &["a"], &[]);
    let der = usual.der();
    let expected = request("n", &["o"], &["a"], &[]);

    assert_eq!(Request::from_der(&der), Ok(expected));
    let surplus = Parts { surplus: vec![0x05, 0x00], ..usual }.der();
    assert!(Request::from_der(&surplus).is_err(), "stricter: more behind the attributes");
    assert!(Request::from_der(&[der.clone(), vec![0]].concat()).is_err(), "more behind the whole");
    for end in 0..der.len() {
        assert!(Request::from_der(&der[..end]).is_err(), "the first {end} octets");
    }
}

/// spec 32 §5.1
#[test]
fn pem_first_block_only_is_read() {
    let label = "CERTIFICATE REQUEST";
    let der = |name| Parts::usual(name, &[], &[], &[]).der();
    let block = |name| pem(label, &der(name));
    let (a, b) = (block("a"), block("b"));
    let headers = a.replacen("-----\n", "-----\nProc-Type: 4\nOther: x:y\n\n", 1);
    let lines: Vec<&str> = a.lines().collect();
    let begin = "-----BEGIN CERTIFICATE REQUEST-----\n";
    let blanks = lines.join(" \t\r\n");
    let one_line = format!("{begin}{}\n-----END {label}-----", lines[1..lines.len() - 1].concat());
    let no_padding = a.replace('=', "");
    let lone_cr = a.replacen("-----\n", "-----\r", 1);
    let (broken, other_end) = (a.replacen('M', "!", 1), a.replace("END CERTIFICATE REQUEST", "END CERTIFICATE"));
    for (what, text, expected) in [
        ("one block", a.clone(), Some("a")),
        ("two blocks", format!("{a}{b}"), Some("a")),
        ("text around it", format!("# a request\n\n{a}trailing\ndata"), Some("a")),
        ("text before it in its line", format!("x{a}"), None),
        ("stricter: text before it in its line, then another", format!("x{a}{b}"), None),
        ("stricter: headers", headers, None),
        ("stricter: blanks at ends of lines", blanks, None),
        ("no line break at the end", a.trim_end().to_owned(), Some("a")),
        ("stricter: one line", one_line, None),
        ("stricter: no base64, then another", format!("{broken}{b}"), None),
        ("stricter: END of another block, then another", format!("{other_end}{b}"), None),
        ("stricter: BEGIN without END, then another", format!("{begin}{b}"), None),
        ("ambiguous: text behind END, then another", format!("{}x\n{b}", a.trim_end()), None),
        ("ambiguous: blanks behind END, then another", format!("{} \n{b}", a.trim_end()), None),
        ("ambiguous: CR alone behind END, then another", format!("{}\r{b}", a.trim_end()), None),
        ("ambiguous: CR alone behind BEGIN, then another", format!("{lone_cr}{b}"), None),
        ("lines that end in CR LF", a.replace('\n', "\r\n"), Some("a")),
        ("another block first", format!("{}{a}", pem("CERTIFICATE", b"x")), None),
        ("the older label", pem("NEW CERTIFICATE REQUEST", &der("a")), None),
        ("lower case", a.replace(label, "certificate request"), None),
        ("headers without end", format!("{begin}a: b\n"), None),
        ("headers over the end", format!("{begin}a: b\n-----END {label}: -----\n"), None),
        ("empty block", format!("{begin}-----END {label}-----\n"), None),
        ("nothing", String::new(), None),
        ("no padding", no_padding.clone(), None),
    ] {
        let name = Request::from_pem(text.as_bytes()).map(|request| request.common_name);

        assert_eq!(name.ok().as_deref(), expected, "{what}");
    }
}
