//! Reads a PKCS#10 request (spec 32 §5.1) with `x509-cert`. The library may accept what Go refuses: the API server
//! stores no request that Go cannot read. But both must read every accepted request alike. So a request that another
//! reader could read differently is refused here and never decided. The API server verifies signature and key.

use std::net::IpAddr;

use x509_cert::{
    attr::AttributeValue,
    der::{
        self, Decode, Encode, Tag, Tagged,
        asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef},
        oid::{
            AssociatedOid,
            db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME},
        },
        pem,
    },
    ext::{
        Extension,
        pkix::{
            SubjectAltName,
            name::{GeneralName, GeneralNames},
        },
    },
    name::Name,
    request::{CertReq, ExtensionReq},
};

const LABEL: &str = "CERTIFICATE REQUEST";
const END: &[u8] = b"-----END CERTIFICATE REQUEST-----";

/// The content of a request that a judgement needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The last common name of the subject; empty if there is none.
    pub common_name: String,
    /// All organizations of the subject, in order.
    pub organizations: Vec<String>,
    /// The DNS names, in order.
    pub dns_names: Vec<String>,
    /// The IP addresses, in order. Four octets are IPv4, sixteen are IPv6, including IPv4-mapped addresses.
    pub ip_addresses: Vec<IpAddr>,
    /// The number of names of other types: e-mail addresses, URIs, and so on.
    pub other_names: usize,
}

/// Why a request cannot be read. This is permanent: `spec.request` is immutable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is no PEM block of a request.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Block,
    /// The block is not a PKCS#10 request.
    #[error("{0}")]
    Malformed(#[from] der::Error),
    /// It is a request that another reader could read differently.
    #[error("{0}")]
    Refused(&'static str),
}

impl Request {
    /// Reads the first PEM block of a text. Fails if it is missing or not a request.
    pub fn from_pem(text: &[u8]) -> Result<Self, Unreadable> {
        let block = first_block(text).ok_or(Unreadable::Block)?;
        let (label, content) = pem::decode_vec(block).map_err(|_| Unreadable::Block)?;
        if label != LABEL {
            return Err(Unreadable::Block);
        }
        Self::from_der(&content)
    }

    /// Reads a DER-encoded request. Fails if it is malformed or ambiguous.
    pub fn from_der(bytes: &[u8]) -> Result<Self, Unreadable> {
        let whole = CertReq::from_der(bytes)?;
        // The library sorts sets while it reads them, Go does not: they could pick different last common names.
        if whole.to_der()? != bytes {
            return Err(Unreadable::Refused("a set is not in the order of DER"));
        }
        let mut request = Self::default();
        request.read_subject(&whole.info.subject)?;
        if let Some(names) = alternative_names(&whole)? {
            request.read_names(names)?;
        }
        Ok(request)
    }

    fn read_subject(&mut self, subject: &Name) -> Result<(), Unreadable> {
        for attribute in subject.iter() {
            match attribute.oid {
                COMMON_NAME => {
                    if let Some(name) = text(&attribute.value)? {
                        self.common_name = name;
                    }
                }
                ORGANIZATION_NAME => self.organizations.extend(text(&attribute.value)?),
                _ => {}
            }
        }
        Ok(())
    }

    fn read_names(&mut self, names: GeneralNames) -> Result<(), Unreadable> {
        for name in names {
            match name {
                GeneralName::DnsName(name) => self.dns_names.push(name.as_str().to_owned()),
                GeneralName::IpAddress(octets) => self.ip_addresses.push(ip_address(octets.as_bytes())?),
                GeneralName::OtherName(_)
                | GeneralName::Rfc822Name(_)
                | GeneralName::DirectoryName(_)
                | GeneralName::EdiPartyName(_)
                | GeneralName::UniformResourceIdentifier(_)
                | GeneralName::RegisteredId(_) => self.other_names += 1,
            }
        }
        Ok(())
    }
}

/// Cuts the text behind its first block: the library refuses trailing text. `None` where Go would skip to the next
/// block: text follows END in its line, or a lone CR ends a line, which it does for the library only.
fn first_block(text: &[u8]) -> Option<&[u8]> {
    let end = text.windows(END.len()).position(|window| window == END)? + END.len();
    let (block, rest) = text.split_at(end);
    let ends_line = |rest: &[u8]| rest.is_empty() || rest.starts_with(b"\n") || rest.starts_with(b"\r\n");
    let has_lone_cr = block.split(|octet| *octet == b'\r').skip(1).any(|line| !line.starts_with(b"\n"));
    (ends_line(rest) && !has_lone_cr).then_some(block)
}

fn text(value: &AttributeValue) -> Result<Option<String>, Unreadable> {
    let text = match value.tag() {
        Tag::Utf8String => value.decode_as::<Utf8StringRef<'_>>()?.as_str(),
        Tag::PrintableString => value.decode_as::<PrintableStringRef<'_>>()?.as_str(),
        Tag::Ia5String => value.decode_as::<Ia5StringRef<'_>>()?.as_str(),
        // T61 is Latin-1 or bytes, BMP may hold surrogates and a zero, Go reads numeric strings and skips the rest.
        Tag::TeletexString
        | Tag::BmpString
        | Tag::NumericString
        | Tag::VideotexString
        | Tag::VisibleString
        | Tag::GeneralString => return Err(Unreadable::Refused("a name is neither UTF-8, printable nor IA5 string")),
        _ => return Ok(None),
    };
    Ok(Some(text.to_owned()))
}

/// Returns the requested names. Refuses duplicate requests or lists: readers take the first, the last or all.
fn alternative_names(request: &CertReq) -> Result<Option<GeneralNames>, Unreadable> {
    let several = |what| Err(Unreadable::Refused(what));
    let mut requests = request.info.attributes.iter().filter(|attribute| attribute.oid == ExtensionReq::OID);
    let values = match (requests.next(), requests.next()) {
        (None, _) => return Ok(None),
        (Some(attribute), None) => attribute.values.as_slice(),
        (Some(_), Some(_)) => return several("extensions are requested by more than one attribute"),
    };
    let [value] = values else { return several("extensions are not requested by exactly one value") };
    let extensions: Vec<Extension> = value.decode_as()?;
    let mut lists = extensions.iter().filter(|extension| extension.extn_id == SubjectAltName::OID);
    match (lists.next(), lists.next()) {
        (None, _) => Ok(None),
        (Some(list), None) => Ok(Some(GeneralNames::from_der(list.extn_value.as_bytes())?)),
        (Some(_), Some(_)) => several("certificate request contains duplicate requested extensions"),
    }
}

fn ip_address(octets: &[u8]) -> Result<IpAddr, Unreadable> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(octets).map(IpAddr::from);
    v4.or(v6).map_err(|_| Unreadable::Refused("cannot parse IP address: it has neither 4 nor 16 octets"))
}
