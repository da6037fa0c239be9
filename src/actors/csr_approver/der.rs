//! Elements of DER, read exactly as Go's `encoding/asn1` does.
//!
//! No library does that: some read lengths and sets that Go refuses, others refuse what Go reads. Either would be a hole,
//! because the API server and the signer are Go: a request must not say one thing to them and another to us.

/// Why bytes are no request. The text is ours, the cases are Go's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(super) &'static str);

/// Universal tags, with the bit that says whether the content is made of elements.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0C;
pub(super) const NUMERIC_STRING: u8 = 0x12;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const T61_STRING: u8 = 0x14;
pub(super) const IA5_STRING: u8 = 0x16;
pub(super) const BMP_STRING: u8 = 0x1E;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// The five bits of a tag number that is written in the octets that follow.
const LONG_TAG: u8 = 0x1F;

const TRUNCATED: Malformed = Malformed("truncated element");

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element<'a> {
    /// The first octet: class, form and tag number.
    pub(super) identifier: u8,
    pub(super) content: &'a [u8],
}

/// Reads elements that stand one behind the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Elements<'a>(&'a [u8]);

// === impl Element ===

impl Element<'_> {
    /// Whether the tag number takes more than the first octet.
    pub(super) fn has_long_tag(&self) -> bool {
        self.identifier & LONG_TAG == LONG_TAG
    }
}

// === impl Elements ===

impl<'a> Elements<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the next element has this identifier.
    pub(super) fn is_at(&self, identifier: u8) -> bool {
        self.0.first() == Some(&identifier)
    }

    /// The next element.
    pub(super) fn read(&mut self) -> Result<Element<'a>, Malformed> {
        let identifier = self.octet()?;
        if identifier & LONG_TAG == LONG_TAG {
            self.long_tag()?;
        }
        let length = self.length()?;
        let (content, rest) = self.0.split_at_checked(length).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(Element { identifier, content })
    }

    /// The content of the next element, which must have this identifier.
    pub(super) fn expect(&mut self, identifier: u8) -> Result<&'a [u8], Malformed> {
        let element = self.read()?;
        if element.identifier != identifier {
            return Err(Malformed("unexpected tag"));
        }
        Ok(element.content)
    }

    /// All elements that are left.
    pub(super) fn read_all(mut self) -> Result<Vec<Element<'a>>, Malformed> {
        let mut elements = Vec::new();
        while !self.is_empty() {
            elements.push(self.read()?);
        }
        Ok(elements)
    }

    fn octet(&mut self) -> Result<u8, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(*first)
    }

    /// A tag number from 31 to 2³¹ - 1, seven bits an octet.
    fn long_tag(&mut self) -> Result<(), Malformed> {
        let mut number: u64 = 0;
        for position in 0..5 {
            let octet = self.octet()?;
            if position == 0 && octet == 0x80 {
                break;
            }
            number = number << 7 | u64::from(octet & 0x7F);
            if octet & 0x80 == 0 {
                let is_minimal = (u64::from(LONG_TAG)..1 << 31).contains(&number);
                return if is_minimal { Ok(()) } else { Err(Malformed("invalid tag")) };
            }
        }
        Err(Malformed("invalid tag"))
    }

    /// A length in as few octets as it takes; not the indefinite form.
    fn length(&mut self) -> Result<usize, Malformed> {
        const INVALID: Malformed = Malformed("invalid length");
        let first = self.octet()?;
        if first & 0x80 == 0 {
            return Ok(usize::from(first));
        }
        let mut length: usize = 0;
        for _ in 0..first & 0x7F {
            if length >= 1 << 23 {
                return Err(INVALID);
            }
            length = length << 8 | usize::from(self.octet()?);
            if length == 0 {
                return Err(INVALID);
            }
        }
        if length < 0x80 { Err(INVALID) } else { Ok(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_its_identifier_and_content() {
        let long: Vec<u8> = [&[0x04, 0x81, 0x80][..], &[7; 128]].concat();
        let longer: Vec<u8> = [&[0x04, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        for (bytes, identifier, content, rest) in [
            (&[0x04, 0x00][..], 0x04, 0, 0),
            (&[0x04, 0x02, 1, 2, 3], 0x04, 2, 1),
            (&long, 0x04, 128, 0),
            (&longer, 0x04, 256, 0),
            (&[0x5F, 0x1F, 0x01, 0xAA], 0x5F, 1, 0),
            (&[0x5F, 0x87, 0xFF, 0xFF, 0xFF, 0x7F, 0x01, 0xAA], 0x5F, 1, 0),
        ] {
            let mut elements = Elements::of(bytes);

            let element = elements.read().unwrap();

            assert_eq!((element.identifier, element.content.len(), elements.0.len()), (identifier, content, rest));
        }
    }

    #[test]
    fn what_go_does_not_read_is_malformed() {
        for bytes in [
            &[][..],
            &[0x04],
            &[0x04, 0x02, 0x01],
            &[0x04, 0x80, 0x00, 0x00],
            &[0x04, 0x81, 0x01, 0xAA],
            &[0x04, 0x82, 0x00, 0x80],
            &[0x04, 0x85, 0x01, 0x00, 0x00, 0x00, 0x00],
            &[0x04, 0xFF],
            &[0x5F, 0x80, 0x1F, 0x00],
            &[0x5F, 0x1E, 0x00],
            &[0x5F, 0x88, 0x80, 0x80, 0x80, 0x00, 0x00],
            &[0x5F, 0x81, 0x80, 0x80, 0x80, 0x80, 0x00, 0x00],
            &[0x5F, 0x81],
        ] {
            assert!(Elements::of(bytes).read().is_err(), "{bytes:02x?}");
        }
    }
}
