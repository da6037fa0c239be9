//! Builds requests by hand, including malformed ones.

use std::slice;

use base64::{Engine, engine::general_purpose::STANDARD};

const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

pub(crate) const UTF8: u8 = 0x0C;
pub(crate) const DNS: u8 = 0x82;
pub(crate) const IP: u8 = 0x87;

#[derive(Debug, Clone, Default)]
pub(crate) struct Parts {
    pub(crate) subject: Vec<u8>,
    pub(crate) attributes: Vec<u8>,
    pub(crate) surplus: Vec<u8>,
}

impl Parts {
    pub(crate) fn usual(common_name: &str, organizations: &[&str], dns: &[&str], ips: &[&[u8]]) -> Self {
        let mut subject: Vec<u8> = organizations.iter().flat_map(|name| pair(10, UTF8, name.as_bytes())).collect();
        subject.extend(pair(3, UTF8, common_name.as_bytes()));
        let names: Vec<(u8, &[u8])> =
            dns.iter().map(|name| (DNS, name.as_bytes())).chain(ips.iter().map(|ip| (IP, *ip))).collect();
        let attributes = if names.is_empty() { Vec::new() } else { extension_request(&[alternative_names(&names)]) };
        Self { subject, attributes, surplus: Vec::new() }
    }

    pub(crate) fn der(&self) -> Vec<u8> {
        let key = element(SEQUENCE, &[algorithm(), element(0x03, &[vec![0], vec![7; 32]])]);
        let version = element(0x02, &[vec![0]]);
        let subject = element(SEQUENCE, slice::from_ref(&self.subject));
        let attributes = element(0xA0, slice::from_ref(&self.attributes));
        let info = element(SEQUENCE, &[version, subject, key, attributes, self.surplus.clone()]);
        element(SEQUENCE, &[info, algorithm(), element(0x03, &[vec![0], vec![9; 64]])])
    }

    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE REQUEST", &self.der())
    }
}

pub(crate) fn element(identifier: u8, contents: &[Vec<u8>]) -> Vec<u8> {
    let content = contents.concat();
    let length = content.len().to_be_bytes();
    let length: &[u8] = &length[length.iter().position(|octet| *octet > 0).unwrap_or(length.len() - 1)..];
    let mut element = vec![identifier];
    if content.len() >= 0x80 {
        element.push(0x80 | u8::try_from(length.len()).expect("a length has eight octets at most"));
    }
    element.extend(length);
    element.extend(content);
    element
}

pub(crate) fn pair(kind: u8, tag: u8, value: &[u8]) -> Vec<u8> {
    element(SET, &[pair_alone(kind, tag, value)])
}

pub(crate) fn pair_alone(kind: u8, tag: u8, value: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[element(OBJECT_IDENTIFIER, &[vec![0x55, 0x04, kind]]), element(tag, &[value.to_vec()])])
}

pub(crate) fn extension_request(extensions: &[Vec<u8>]) -> Vec<u8> {
    attribute(0x0E, &[element(SEQUENCE, extensions)])
}

pub(crate) fn attribute(kind: u8, values: &[Vec<u8>]) -> Vec<u8> {
    let kind = vec![0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, kind];
    element(SEQUENCE, &[element(OBJECT_IDENTIFIER, &[kind]), element(SET, values)])
}

/// The extension 2.5.29.`kind`; `critical` is the encoded flag or empty.
pub(crate) fn extension(kind: u8, critical: &[u8], value: Vec<u8>) -> Vec<u8> {
    let kind = element(OBJECT_IDENTIFIER, &[vec![0x55, 0x1D, kind]]);
    element(SEQUENCE, &[kind, critical.to_vec(), element(0x04, &[value])])
}

pub(crate) fn alternative_names(names: &[(u8, &[u8])]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|(tag, name)| element(*tag, &[name.to_vec()])).collect();
    extension(17, &[], element(SEQUENCE, &names))
}

pub(crate) fn pem(label: &str, content: &[u8]) -> String {
    let encoded = STANDARD.encode(content);
    let lines: Vec<_> =
        encoded.as_bytes().chunks(64).map(|line| str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Ed25519; it takes no parameters.
fn algorithm() -> Vec<u8> {
    element(SEQUENCE, &[element(OBJECT_IDENTIFIER, &[vec![0x2B, 0x65, 0x70]])])
}
