use std::sync::Arc;

use cluster::object::{self, NamespacedName};
use serde_json::{Value, json};

use super::{
    DIFFERENT, Said,
    bundles::{Bundles, called, is_secret},
    columns::{lines, plain},
    decoding::Decoding,
    input::Source,
    report,
};
use crate::{
    cli::ReportFormat,
    jsonpath::TooMuch,
    producer::{
        decode::{Limits, SecretData},
        unique, yaml,
    },
};

const HEADINGS: [&str; 5] = ["KIND", "NAMESPACE", "NAME", "KEY", "BYTES"];

/// The documents of Secrets.
#[derive(Default)]
pub(super) struct Unpacked {
    /// Each with its data key.
    manifests: Vec<(Value, Arc<str>)>,
    remarks: Vec<String>,
    /// Warnings do not count: what they name is dropped by the controller, too.
    code: i32,
}

/// Unpacks the Secrets of files; ignores ManagedResources beside them.
pub(super) fn from_files(sources: &[Source]) -> Unpacked {
    let Bundles { secrets, manifests, broken, .. } = Bundles::of(sources);
    let mut remarks: Vec<String> =
        broken.into_iter().map(|(location, text)| format!("{location}: {text} — correct the document")).collect();
    let (plain, others): (Vec<_>, Vec<_>) = manifests.into_iter().partition(|it| is_secret(&it.object));
    remarks.extend(others.iter().map(|other| {
        format!("{}: {} is no Secret — give the Secret of a bundle", other.location, called(&other.object))
    }));
    let mut all: Vec<_> = secrets.into_iter().chain(plain).collect();
    all.sort_by(|a, b| a.location.cmp(&b.location));
    if all.is_empty() && remarks.is_empty() {
        remarks.push("there is no Secret in the input — give the Secret of a bundle".to_owned());
    }
    let objects: Vec<Value> = all.into_iter().map(|located| located.object).collect();
    let unpacked = self::secrets(&objects);
    let code = if remarks.is_empty() { unpacked.code } else { DIFFERENT };
    remarks.extend(unpacked.remarks);
    Unpacked { remarks, code, ..unpacked }
}

pub(super) fn secrets(secrets: &[Value]) -> Unpacked {
    secrets_within(secrets, Limits::default())
}

pub(super) fn secrets_within(secrets: &[Value], limits: Limits) -> Unpacked {
    let mut unpacked = Unpacked::default();
    let mut decoding = Decoding::within(limits);
    for secret in secrets {
        let name = NamespacedName::of(secret);
        let data = match unique::content(secret) {
            Ok(data) => data,
            Err(error) => {
                unpacked.code = DIFFERENT;
                unpacked.remarks.push(format!("Secret {name}: {error} — give it as the API server prints it"));
                continue;
            }
        };
        let (namespace, name) = (object::namespace(secret), object::name(secret));
        decoding.decode(SecretData { namespace, name, data: &data }, |read| match read {
            Ok(document) => {
                unpacked.remarks.extend(document.warnings.iter().map(|warning| format!("warning: {warning}")));
                unpacked.manifests.push((document.manifest, document.data_key));
            }
            Err(error) => {
                unpacked.code = DIFFERENT;
                unpacked.remarks.push(error.to_string());
            }
        });
    }
    unpacked
}

impl Unpacked {
    /// Prints the manifests, or with `list` a table of them. Fails if a template takes too long.
    pub(super) fn said(self, list: bool, format: Option<&ReportFormat>) -> Result<Said, TooMuch> {
        let Self { manifests, remarks, code } = self;
        let rows = manifests.iter().map(|(manifest, data_key)| row(manifest, data_key));
        let out = match (list, format) {
            (true, None) => table(rows),
            (true, Some(format)) => report::list(rows.map(json_row), format)?,
            (false, None) => yaml::stream(manifests.iter().map(|(manifest, _)| manifest)),
            (false, Some(format)) => {
                let items: Vec<Value> = manifests.into_iter().map(|(manifest, _)| manifest).collect();
                report::whole(&json!({"apiVersion": "v1", "kind": "List", "items": items}), format)?
            }
        };
        Ok(Said { out, remarks, code, ..Said::default() })
    }
}

fn json_row([kind, namespace, name, data_key, bytes]: [String; 5]) -> Value {
    let bytes: Option<usize> = bytes.parse().ok();
    json!({"kind": kind, "namespace": namespace, "name": name, "dataKey": data_key, "bytes": bytes})
}

fn row(manifest: &Value, data_key: &str) -> [String; 5] {
    let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
    let bytes = yaml::document(manifest).len().to_string();
    let (namespace, name) = (object::namespace(manifest), object::name(manifest));
    [kind, namespace.to_owned(), name.to_owned(), data_key.to_owned(), bytes]
}

fn table(rows: impl Iterator<Item = [String; 5]>) -> String {
    let all = std::iter::once(HEADINGS.map(str::to_owned)).chain(rows);
    lines(&all.map(|row| row.map(plain).to_vec()).collect::<Vec<_>>(), "", false)
}
