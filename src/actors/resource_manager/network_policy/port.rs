//! Ports in policies, and the annotations that list ports (spec 40 §11).

use std::fmt;

use kit::quote::{cut_after, quoted};
use serde_json::{Map, Value};

use crate::api::meta::{
    field::Json,
    record::{Record, last},
};

/// A port of a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// `None` means TCP.
    pub protocol: Option<Protocol>,
    /// `None` means all ports of the protocol.
    pub port: Option<PortRef>,
    /// The last port of a range.
    pub end: Option<u16>,
}

/// A container port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortRef {
    /// A number.
    Number(u16),
    /// A name defined by the pods.
    Name(Box<str>),
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// `TCP`.
    Tcp,
    /// `UDP`.
    Udp,
    /// `SCTP`.
    Sctp,
}

/// Reads the ports listed in an annotation; `null` lists none (P3, P8). Fails with a text that names the bad index.
pub fn ports(annotation: &str) -> Result<Vec<Port>, String> {
    let entries: Option<Vec<Record<'_>>> = serde_json::from_str(annotation).map_err(|error| error.to_string())?;
    let port = |(index, entry)| Port::read(entry).map_err(|text| format!("port [{index}]: {text}"));
    entries.into_iter().flatten().enumerate().map(port).collect()
}

const SHOWN: usize = 60;

/// A port of a Service as named by an Ingress.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// A number.
    Number(u16),
    /// A name.
    Name(Box<str>),
}

impl Port {
    fn read(entry: Record<'_>) -> Result<Self, String> {
        let [protocol, port, end] = entry.fields(["protocol", "port", "endPort"])?;
        let port = match last(port) {
            None => None,
            Some(Json::Text(text)) => Some(PortRef::read(&text)?),
            Some(number) => Some(PortRef::Number(number_of(&number, "port")?)),
        };
        let end = last(end).map(|number| number_of(&number, "endPort")).transpose()?;
        if let Some(end) = end {
            match &port {
                Some(PortRef::Number(first)) if *first <= end => {}
                _ => return Err(format!("endPort {end} requires a numeric port that is not higher")),
            }
        }
        Ok(Self { protocol: last(protocol).map(|text| Protocol::read(&text)).transpose()?, port, end })
    }

    /// Returns the port as in a policy.
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        if let Some(protocol) = self.protocol {
            json.insert("protocol".into(), protocol.as_str().into());
        }
        if let Some(port) = &self.port {
            json.insert("port".into(), port.to_json());
        }
        if let Some(end) = self.end {
            json.insert("endPort".into(), end.into());
        }
        json.into()
    }
}

fn number_of(value: &Json<'_>, name: &str) -> Result<u16, String> {
    let number = if let Json::Number(number) = value { number.as_u64().and_then(port_number) } else { None };
    number.ok_or_else(|| format!("{name} {} is not a number from 1 to 65535", as_text(value)))
}

fn cut(text: &str) -> String {
    quoted(&cut_after(SHOWN, text))
}

fn port_number(number: u64) -> Option<u16> {
    u16::try_from(number).ok().filter(|number| *number > 0)
}

fn as_text(value: &Json<'_>) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    cut_after(SHOWN, &text).into_owned()
}

impl PortRef {
    /// Reads a number in digits or a name (D-5).
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse().ok().and_then(port_number);
            return number
                .map(Self::Number)
                .ok_or_else(|| format!("port {} is not a number from 1 to 65535", cut(text)));
        }
        let is_name = text.len() <= 15
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            && text.bytes().any(|byte| byte.is_ascii_lowercase());
        if !is_name || text.starts_with('-') || text.ends_with('-') || text.contains("--") {
            return Err(format!("port {} is neither a number nor the name of a port", cut(text)));
        }
        Ok(Self::Name(text.into()))
    }

    /// Reads an integer or string as the API server stores it; `None` for a missing value and 0.
    pub fn stored(value: Option<&Value>) -> Option<Self> {
        match value? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(Self::Name(text.as_str().into())),
            number => number.as_u64().and_then(port_number).map(Self::Number),
        }
    }

    /// Returns the port as in a policy.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Name(name) => (**name).into(),
        }
    }
}

impl fmt::Display for PortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    fn read(value: &Json<'_>) -> Result<Self, String> {
        let protocol = value.as_text().and_then(Self::of);
        protocol.ok_or_else(|| format!("protocol {} is none of TCP, UDP, SCTP", as_text(value)))
    }

    /// Reads a protocol in upper case.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }

    /// Returns the name in objects and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// Returns the name in policy names.
    pub fn in_names(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}
