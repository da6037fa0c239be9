//! Units and files (spec 62 §7.1 rules 14 to 25, §7.2).

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::super::rules::{each_invalid, required};
use crate::api::meta::field::{
    Errors, Path, Shown,
    difference::instead_of,
    error::ToJson as _,
    formats::dns_subdomain,
    shapes::{List, Part, Text},
};

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Unit<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    command: Option<Text<'a>>,
    enable: Option<bool>,
    content: Option<Text<'a>>,
    drop_ins: List<Part<DropIn<'a>>>,
    file_paths: List<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct DropIn<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    content: Text<'a>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct File<'a> {
    #[serde(borrow)]
    path: Text<'a>,
    permissions: Option<i64>,
    content: Part<Content<'a>>,
    host_name: Option<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Content<'a> {
    #[serde(borrow)]
    secret_ref: Option<Part<SecretKey<'a>>>,
    inline: Option<Part<Inline<'a>>>,
    transmit_unencoded: Option<bool>,
    image_ref: Option<Part<Image<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct SecretKey<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    data_key: Text<'a>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
struct Inline<'a> {
    #[serde(borrow)]
    encoding: Text<'a>,
    data: Text<'a>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Image<'a> {
    #[serde(borrow)]
    image: Text<'a>,
    file_path_in_image: Text<'a>,
}

/// The hosts of a file, by the first entry of its path.
enum Scope<'a> {
    Everybody,
    Host(&'a str),
}

impl File<'_> {
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

/// Rules 14 to 17. `paths` are those of all files.
pub(super) fn check_units(path: &Path<'_>, units: &[Part<Unit<'_>>], paths: &HashSet<&str>, errors: &mut Errors) {
    for (at, unit) in units.iter().enumerate() {
        let path = path.at(at);
        required(&path.child("name"), &unit.name, errors);
        let drop_ins = path.child("dropIns");
        for (at, drop_in) in unit.drop_ins.iter().enumerate() {
            let path = drop_ins.at(at);
            required(&path.child("name"), &drop_in.name, errors);
            required(&path.child("content"), &drop_in.content, errors);
        }
        let file_paths = path.child("filePaths");
        for (at, file) in unit.file_paths.iter().enumerate().filter(|(_, file)| !paths.contains(&***file)) {
            let detail = "'filePath' requires a matching 'path' in 'spec.files'";
            errors.invalid(&file_paths.at(at), Shown::Text(file), detail);
        }
    }
}

/// Rules 18 to 25.
pub(super) fn check_files(path: &Path<'_>, files: &[Part<File<'_>>], errors: &mut Errors) {
    for (at, file) in files.iter().enumerate() {
        let path = path.at(at);
        required(&path.child("path"), &file.path, errors);
        check_content(&path.child("content"), &file.content, errors);
        if let Some(host) = &file.host_name {
            each_invalid(&path.child("hostName"), host, dns_subdomain(host), errors);
        }
    }
}

/// Rules 19 to 24. The content itself is not repeated.
fn check_content(path: &Path<'_>, content: &Content<'_>, errors: &mut Errors) {
    match (&content.secret_ref, &content.inline, &content.image_ref) {
        (None, None, None) => {
            errors.required(path, "either 'secretRef', 'inline' or 'imageRef' must be provided");
        }
        (Some(secret), None, None) => {
            let path = path.child("secretRef");
            required(&path.child("name"), &secret.name, errors);
            required(&path.child("dataKey"), &secret.data_key, errors);
        }
        (None, Some(inline), None) => {
            let path = path.child("inline");
            if !["", "b64"].contains(&&*inline.encoding) {
                errors.unsupported(&path.child("encoding"), Shown::Text(&inline.encoding), &["", "b64"]);
            }
            required(&path.child("data"), &inline.data, errors);
        }
        (None, None, Some(image)) => {
            let path = path.child("imageRef");
            required(&path.child("image"), &image.image, errors);
            required(&path.child("filePathInImage"), &image.file_path_in_image, errors);
        }
        _ => {
            let shown = instead_of(content.to_json().as_bytes());
            let detail = "either 'secretRef', 'inline' or 'imageRef' must be provided, not multiple at the same time";
            errors.invalid(path, Shown::Instead(&shown), detail);
        }
    }
}

/// Several files may share a path if their hosts differ. Only the first host is remembered, as in the original: a
/// stored object must not become invalid (spec 62 §7.2).
pub(super) fn check_duplicates(all: [(&Path<'_>, &[Part<File<'_>>]); 2], errors: &mut Errors) {
    let mut scopes: HashMap<&str, Scope<'_>> = HashMap::new();
    for (list, files) in all {
        for (at, file) in files.iter().enumerate().filter(|(_, file)| !file.path.is_empty()) {
            let host = file.host_name.as_deref();
            let is_duplicate = match (scopes.get(&*file.path), host) {
                (None, None) => scopes.insert(&file.path, Scope::Everybody).is_some(),
                (None, Some(host)) => scopes.insert(&file.path, Scope::Host(host)).is_some(),
                (Some(Scope::Everybody), _) | (Some(_), None) => true,
                (Some(Scope::Host(first)), Some(host)) => *first == host,
            };
            if is_duplicate {
                errors.duplicate(&list.at(at).child("path"), Shown::Text(&file.path));
            }
        }
    }
}
