use std::collections::BTreeMap;

use cluster::object::{self, GroupVersionKind, ObjectKey};
use serde_json::{Value, json};

use super::{
    DIFFERENT, OK, Said,
    bundles::{LIST_REMEDY, called, is_list},
    input::{self, InputDocument, InputLocation, Source},
};
use crate::{
    actors::resource_manager::bundle::identity,
    cli::{DataFormat, PackOptions},
    producer::{
        Parts, Registry,
        decode::{Decoder, Limits, SecretData},
        yaml,
    },
};

const PLAIN_DATA_KEY: &str = "data.yaml";
const LARGEST_SECRET: usize = 1 << 20;
/// `kubectl apply` puts the whole object, as JSON, into an annotation. All annotations of an object may have 256 KiB.
const LARGEST_ANNOTATION: usize = 256 << 10;
const SEVERAL: &str = "pack the manifests into several bundles";

pub(super) fn pack(options: &PackOptions, sources: &[Source]) -> Said {
    pack_within(options, sources, Limits::default())
}

/// `limits` are those of the controller.
pub(super) fn pack_within(options: &PackOptions, sources: &[Source], limits: Limits) -> Said {
    match data(options.plain, sources, limits) {
        Ok(data) => packed(options, data),
        Err(refused) => Said { remarks: refused, code: DIFFERENT, ..Said::default() },
    }
}

/// Returns the data of the Secret, or what must be corrected first. Compression takes most of the time, so it comes last.
fn data(plain: bool, sources: &[Source], limits: Limits) -> Result<BTreeMap<String, Vec<u8>>, Vec<String>> {
    let registry = registry(sources, limits.decompressed)?;
    let yaml = BTreeMap::from([(PLAIN_DATA_KEY.to_owned(), registry.yaml().into_bytes())]);
    decodable(&yaml, limits).map_err(|text| vec![text])?;
    let data = if plain { yaml } else { registry.data() };
    let size: usize = data.values().map(Vec::len).sum();
    if size > LARGEST_SECRET {
        return Err(vec![format!(
            "the Secret would hold {size} bytes, more than the {LARGEST_SECRET} that API servers accept — {SEVERAL}"
        )]);
    }
    Ok(data)
}

/// Stops at the document with which the YAML has more than `most` bytes.
fn registry(sources: &[Source], most: usize) -> Result<Registry, Vec<String>> {
    let mut refused = Vec::new();
    let mut seen = BTreeMap::new();
    let mut registry = Registry::default();
    let mut count = 0;
    for document in input::documents(sources) {
        count += 1;
        if let Err(text) = add(&mut registry, &mut seen, &document) {
            refused.push(format!("{}: {text}", document.location));
        }
        let size = registry.size();
        if size > most {
            refused.push(format!(
                "{}: with this document the bundle has {size} bytes of YAML, more than the {most} that the controller \
                 decompresses — {SEVERAL}",
                document.location
            ));
            break;
        }
    }
    if count == 0 {
        refused.push("there is no manifest in the input — name files that have some".to_owned());
    }
    if refused.is_empty() { Ok(registry) } else { Err(refused) }
}

/// Fails if the controller cannot decode all documents within its bounds.
fn decodable(data: &BTreeMap<String, Vec<u8>>, limits: Limits) -> Result<(), String> {
    let mut documents = Decoder::new([SecretData { namespace: "", name: "", data }], limits);
    match documents.find_map(Result::err) {
        Some(error) => Err(format!("the controller could not decode the bundle: {} — {SEVERAL}", error.text)),
        None => Ok(()),
    }
}

fn packed(options: &PackOptions, data: BTreeMap<String, Vec<u8>>) -> Said {
    let objects = objects(options, data);
    let remarks = objects.iter().filter_map(too_large_to_apply).collect();
    let out = match (options.output, objects.as_slice()) {
        (None | Some(DataFormat::Yaml), objects) => yaml::stream(objects),
        (Some(DataFormat::Json), [object]) => format!("{object:#}\n"),
        (Some(DataFormat::Json), objects) => {
            format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": objects}))
        }
    };
    Said { out, remarks, code: OK, ..Said::default() }
}

fn too_large_to_apply(object: &Value) -> Option<String> {
    let size = object.to_string().len();
    (size > LARGEST_ANNOTATION).then(|| {
        let display = called(object);
        format!(
            "warning: {display} has {size} bytes: apply it with kubectl apply --server-side, because without that flag \
             kubectl repeats it in an annotation, of at most {LARGEST_ANNOTATION} bytes"
        )
    })
}

fn add(
    registry: &mut Registry,
    seen: &mut BTreeMap<ObjectKey, InputLocation>,
    document: &InputDocument,
) -> Result<(), String> {
    let manifest = document.content.as_ref().map_err(|text| format!("{text} — {}", text.remedy()))?;
    if GroupVersionKind::of(manifest).is_none() {
        return Err("the object has no apiVersion or no kind — add it".to_owned());
    }
    let display = called(manifest);
    if is_list(manifest) {
        return Err(format!("{display} is a list that cannot be taken apart — {LIST_REMEDY}"));
    }
    if object::name(manifest).is_empty() {
        return Err(format!("{display} has no metadata.name — add it; generateName is not enough"));
    }
    if manifest.pointer("/metadata/namespace").is_some_and(|namespace| !namespace.is_string() && !namespace.is_null()) {
        return Err(format!("{display}: metadata.namespace is no string — quote it"));
    }
    if let Some(warning) = document.warnings.first() {
        let (field, key) = (warning.field, &warning.key);
        return Err(format!(
            "{display}: a value in metadata.{field} is no string (key {key:?}), so the controller would ignore all of \
             them — quote it"
        ));
    }
    let key = identity::key_of_object(manifest);
    if let Some(first) = seen.get(&key) {
        return Err(format!("{display} is in {first} already — remove one of them"));
    }
    seen.insert(key, document.location.clone());
    registry.add(manifest).map_err(|error| error.to_string())
}

fn objects(options: &PackOptions, data: BTreeMap<String, Vec<u8>>) -> Vec<Value> {
    let parts = Parts {
        namespace: options.namespace.clone().unwrap_or_default(),
        name: options.name.clone(),
        secret_name_with_prefix: true,
        class: options.class.clone().unwrap_or_default(),
        data,
        ..Parts::default()
    };
    let mut secret = parts.secret().build();
    if options.plain
        && let Some(fields) = secret.as_object_mut()
    {
        fields.remove("data");
        let text = parts.data.get(PLAIN_DATA_KEY).map(|data| String::from_utf8_lossy(data).into_owned());
        fields.insert("stringData".to_owned(), json!({PLAIN_DATA_KEY: text}));
    }
    let mut objects = vec![secret];
    if !options.secret_only {
        objects.push(parts.managed_resource().build());
    }
    objects.iter_mut().for_each(without_empty_namespace);
    objects
}

fn without_empty_namespace(object: &mut Value) {
    if object::namespace(object).is_empty()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("namespace");
    }
}
