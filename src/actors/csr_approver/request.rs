//! What a PKCS#10 request asks for, as Go's `x509.ParseCertificateRequest` reads it (spec 32 §5.1).
//!
//! Neither signature nor key is looked at: the API server verifies both before it stores a request. Nor is a URI parsed.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{
    der::{self, Element, Elements, Malformed},
    pem,
};

/// The label of the PEM block of a request.
const LABEL: &[u8] = b"CERTIFICATE REQUEST";

/// Object identifiers, without tag and length.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0A];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1D, 0x11];
/// 1.2.840.113549.1.9.14
const EXTENSION_REQUEST: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x0E];

/// `[0]`, made of elements: the attributes.
const ATTRIBUTES: u8 = 0xA0;

/// The kinds of names in a `subjectAltName`.
const EMAIL: u8 = 0x81;
const DNS_NAME: u8 = 0x82;
const URI: u8 = 0x86;
const IP_ADDRESS: u8 = 0x87;

/// What a request asks for, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The last common name of the subject; empty if there is none.
    pub common_name: String,
    /// All organizations of the subject, in order.
    pub organizations: Vec<String>,
    /// The DNS names, in order.
    pub dns_names: Vec<String>,
    /// The IP addresses, in order. Four octets are IPv4; sixteen are IPv6, also where they stand for an IPv4 address.
    pub ip_addresses: Vec<IpAddr>,
}

/// Why a request cannot be read. It never becomes readable: `spec.request` is immutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// No PEM block, or one of another kind.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Block,
    /// The block is no PKCS#10 request.
    #[error("{0}")]
    Malformed(#[from] Malformed),
}

// === impl Request ===

impl Request {
    /// Reads the first PEM block of a text.
    ///
    /// # Errors
    /// If there is none, it is none of a request, or its content is not one.
    pub fn from_pem(text: &[u8]) -> Result<Self, Unreadable> {
        let block = pem::first_block(text).filter(|block| block.label == LABEL).ok_or(Unreadable::Block)?;
        Ok(Self::from_der(&block.content)?)
    }

    /// Reads a DER encoded request.
    ///
    /// # Errors
    /// If Go would refuse its structure.
    pub fn from_der(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut whole = Elements::of(bytes);
        let mut parts = Elements::of(whole.expect(der::SEQUENCE)?);
        if !whole.is_empty() {
            return Err(Malformed("trailing data"));
        }
        // Elements behind those that are known are passed over, here and below, as Go does.
        let mut info = Elements::of(parts.expect(der::SEQUENCE)?);
        algorithm(&mut parts)?;
        parts.expect(der::BIT_STRING)?;

        info.expect(der::INTEGER)?;
        let subject = Elements::of(info.expect(der::SEQUENCE)?);
        let mut key = Elements::of(info.expect(der::SEQUENCE)?);
        algorithm(&mut key)?;
        key.expect(der::BIT_STRING)?;
        let attributes = Elements::of(info.expect(ATTRIBUTES)?).read_all()?;

        let mut request = Self::default();
        request.read_subject(subject)?;
        let mut seen = BTreeSet::new();
        for extensions in attributes.iter().filter_map(requested_extensions) {
            request.read_extensions(extensions, &mut seen)?;
        }
        Ok(request)
    }

    /// A sequence of sets of pairs of type and value.
    fn read_subject(&mut self, mut sets: Elements<'_>) -> Result<(), Malformed> {
        while !sets.is_empty() {
            let mut pairs = Elements::of(sets.expect(der::SET)?);
            while !pairs.is_empty() {
                let mut pair = Elements::of(pairs.expect(der::SEQUENCE)?);
                let kind = pair.expect(der::OBJECT_IDENTIFIER)?;
                let Some(value) = text(&pair.read()?)? else { continue };
                match kind {
                    COMMON_NAME => self.common_name = value,
                    ORGANIZATION => self.organizations.push(value),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The content of one extension-request attribute. `seen` are the extensions of all of them: Go refuses a request with
    /// two of one kind.
    fn read_extensions<'a>(&mut self, extensions: Element<'a>, seen: &mut BTreeSet<&'a [u8]>) -> Result<(), Malformed> {
        if extensions.identifier != der::SEQUENCE {
            return Err(Malformed("requested extensions are no sequence"));
        }
        let mut extensions = Elements::of(extensions.content);
        while !extensions.is_empty() {
            let mut extension = Elements::of(extensions.expect(der::SEQUENCE)?);
            let kind = extension.expect(der::OBJECT_IDENTIFIER)?;
            if extension.is_at(der::BOOLEAN) && !matches!(extension.expect(der::BOOLEAN)?, [0x00 | 0xFF]) {
                return Err(Malformed("invalid boolean"));
            }
            let value = extension.expect(der::OCTET_STRING)?;
            if !seen.insert(kind) {
                return Err(Malformed("certificate request contains duplicate requested extensions"));
            }
            if kind == SUBJECT_ALTERNATIVE_NAME {
                self.read_alternative_names(Elements::of(value).expect(der::SEQUENCE)?)?;
            }
        }
        Ok(())
    }

    fn read_alternative_names(&mut self, names: &[u8]) -> Result<(), Malformed> {
        let mut names = Elements::of(names);
        while !names.is_empty() {
            let name = names.read()?;
            if name.has_long_tag() {
                return Err(Malformed("invalid subject alternative name"));
            }
            match name.identifier {
                DNS_NAME => self.dns_names.push(ascii(name.content)?.to_owned()),
                IP_ADDRESS => self.ip_addresses.push(ip_address(name.content)?),
                EMAIL | URI => {
                    ascii(name.content)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An algorithm: its identifier and, perhaps, parameters.
fn algorithm(elements: &mut Elements<'_>) -> Result<(), Malformed> {
    let mut algorithm = Elements::of(elements.expect(der::SEQUENCE)?);
    algorithm.expect(der::OBJECT_IDENTIFIER)?;
    if !algorithm.is_empty() {
        algorithm.read()?;
    }
    Ok(())
}

/// The first value of an attribute that requests extensions. Attributes of other kinds, and those that are not made as an
/// attribute should be, are passed over.
fn requested_extensions<'a>(attribute: &Element<'a>) -> Option<Element<'a>> {
    if attribute.identifier != der::SEQUENCE {
        return None;
    }
    let mut parts = Elements::of(attribute.content);
    let kind = parts.expect(der::OBJECT_IDENTIFIER).ok()?;
    let values = Elements::of(parts.expect(der::SET).ok()?).read_all().ok()?;
    values.into_iter().next().filter(|_| kind == EXTENSION_REQUEST)
}

/// The text that a value is; `None` for values that are no text, such as numbers.
fn text(value: &Element<'_>) -> Result<Option<String>, Malformed> {
    let content = value.content;
    let is_printable = |octet: &u8| octet.is_ascii_alphanumeric() || b"'()+,-./ :=?*&".contains(octet);
    let text = match value.identifier {
        der::UTF8_STRING => str::from_utf8(content).ok().map(str::to_owned),
        der::PRINTABLE_STRING => content.iter().all(is_printable).then(|| latin1(content)),
        der::NUMERIC_STRING => {
            content.iter().all(|octet| octet.is_ascii_digit() || *octet == b' ').then(|| latin1(content))
        }
        der::IA5_STRING => content.is_ascii().then(|| latin1(content)),
        // Read as Latin-1, as everybody does.
        der::T61_STRING => Some(latin1(content)),
        der::BMP_STRING => bmp(content),
        _ => return Ok(None),
    };
    text.map(Some).ok_or(Malformed("invalid string"))
}

fn latin1(content: &[u8]) -> String {
    content.iter().copied().map(char::from).collect()
}

/// Two octets a character, with or without a zero at the end. Half characters and those that never are one are refused.
fn bmp(content: &[u8]) -> Option<String> {
    let content =
        if content.len().is_multiple_of(2) { content.strip_suffix(&[0, 0]).unwrap_or(content) } else { content };
    let character = |pair: &[u8]| match *pair {
        [high, low] => match u16::from_be_bytes([high, low]) {
            0xFDD0..=0xFDEF | 0xFFFE | 0xFFFF => None,
            unit => char::from_u32(unit.into()),
        },
        _ => None,
    };
    content.chunks(2).map(character).collect()
}

fn ascii(content: &[u8]) -> Result<&str, Malformed> {
    str::from_utf8(content)
        .ok()
        .filter(|text| text.is_ascii())
        .ok_or(Malformed("subject alternative name is malformed"))
}

fn ip_address(content: &[u8]) -> Result<IpAddr, Malformed> {
    let v4 = <[u8; 4]>::try_from(content).map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
    let v6 = <[u8; 16]>::try_from(content).map(|octets| IpAddr::V6(Ipv6Addr::from(octets)));
    v4.or(v6).map_err(|_| Malformed("cannot parse IP address: it has neither 4 nor 16 octets"))
}
