use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::{
    DIFFERENT, OK, Said,
    bundles::{Bundles, is_secret},
    columns::{lines, plain},
    input::Source,
};
use crate::{
    actors::resource_manager::bundle::identity,
    producer::{
        decode::{Decoder, Limits, SecretData},
        unique, yaml,
    },
};

const HEADINGS: [&str; 5] = ["KIND", "NAMESPACE", "NAME", "KEY", "BYTES"];

/// Unpacks the Secrets of files; ignores ManagedResources beside them.
pub(super) fn from_files(sources: &[Source], list: bool) -> Said {
    let Bundles { secrets, manifests, broken, .. } = Bundles::of(sources);
    let mut remarks: Vec<String> =
        broken.into_iter().map(|(location, text)| format!("{location}: {text} — correct the document")).collect();
    let (plain, others): (Vec<_>, Vec<_>) = manifests.into_iter().partition(|it| is_secret(&it.object));
    remarks.extend(others.iter().map(|other| {
        let display = identity::display_of_object(&other.object);
        format!("{}: {display} is no Secret — give the Secret of a bundle", other.location)
    }));
    let mut all: Vec<_> = secrets.into_iter().chain(plain).collect();
    all.sort_by(|a, b| a.location.cmp(&b.location));
    if all.is_empty() && remarks.is_empty() {
        remarks.push("there is no Secret in the input — give the Secret of a bundle".to_owned());
    }
    let objects: Vec<Value> = all.into_iter().map(|located| located.object).collect();
    let said = self::secrets(&objects, list);
    remarks.extend(said.remarks);
    let code = if remarks.is_empty() { OK } else { said.code.max(DIFFERENT) };
    Said { remarks, code, ..said }
}

pub(super) fn secrets(secrets: &[Value], list: bool) -> Said {
    secrets_within(secrets, list, Limits::default())
}

pub(super) fn secrets_within(secrets: &[Value], list: bool, limits: Limits) -> Said {
    let mut said = Said::default();
    let mut manifests = Vec::new();
    let mut rows = Vec::new();
    for secret in secrets {
        let name = NamespacedName::of(secret);
        let data = match unique::content(secret) {
            Ok(data) => data,
            Err(error) => {
                said.remarks.push(format!("Secret {name}: {error} — give it as the API server prints it"));
                continue;
            }
        };
        let (namespace, name) = (object::namespace(secret), object::name(secret));
        for read in Decoder::new([SecretData { namespace, name, data: &data }], limits) {
            match read {
                Ok(document) => {
                    rows.push(row(&document.manifest, &document.data_key));
                    said.remarks.extend(document.warnings.iter().map(|warning| format!("warning: {warning}")));
                    manifests.push(document.manifest);
                }
                Err(error) => {
                    said.code = DIFFERENT;
                    said.remarks.push(error.to_string());
                }
            }
        }
    }
    if said.remarks.iter().any(|remark| !remark.starts_with("warning: ")) {
        said.code = DIFFERENT;
    }
    said.out = if list { table(rows) } else { yaml::stream(&manifests) };
    said
}

fn row(manifest: &Value, data_key: &str) -> [String; 5] {
    let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
    let bytes = yaml::document(manifest).len().to_string();
    let (namespace, name) = (object::namespace(manifest), object::name(manifest));
    [kind, namespace.to_owned(), name.to_owned(), data_key.to_owned(), bytes]
}

fn table(rows: Vec<[String; 5]>) -> String {
    let all = std::iter::once(HEADINGS.map(str::to_owned)).chain(rows);
    lines(&all.map(|row| row.map(plain).to_vec()).collect::<Vec<_>>(), "", false)
}
