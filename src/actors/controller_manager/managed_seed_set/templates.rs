//! The Shoot and the ManagedSeed of a replica, made of the templates of a ManagedSeedSet (spec 86 §6.3, §6.4). Pure: the
//! templates themselves never change (trap T-11).

use cluster::{Resource, object};
use serde_json::{Map, Value, json};

use crate::{
    actors::controller_manager::owner_references::controller_reference,
    api::{
        kinds,
        meta::selector::{Labels, labels_in},
    },
};

/// Stands for the name of a replica in domains.
const PLACEHOLDER: &str = "replica-name";

/// Returns the labels that the Shoots of a ManagedSeedSet get.
pub fn labels_of_shoots(set: &Value) -> Labels {
    labels_in(set.pointer("/spec/shootTemplate/metadata/labels").unwrap_or(&Value::Null))
}

/// Returns the Shoot of a replica.
pub fn shoot(set: &Value, name: &str) -> Value {
    let template = set.pointer("/spec/shootTemplate").unwrap_or(&Value::Null);
    let mut spec = template.get("spec").cloned().unwrap_or_default();
    name_domain(&mut spec, "/dns/domain", name);
    object_of(&kinds::SHOOT, set, template, (name, spec))
}

/// Returns the ManagedSeed of a replica. Fails if a part that must be an object is none.
pub fn managed_seed(set: &Value, name: &str) -> Result<Value, String> {
    let template = set.pointer("/spec/template").unwrap_or(&Value::Null);
    let mut spec = Map::new();
    spec.insert("shoot".to_owned(), json!({ "name": name }));
    if let Some(gardenlet) = template.pointer("/spec/gardenlet").filter(|gardenlet| !gardenlet.is_null()) {
        for field in ["/config", "/config/seedConfig"] {
            if gardenlet.pointer(field).is_some_and(|part| !part.is_null() && !part.is_object()) {
                return Err(format!("spec.template.spec.gardenlet{} is not an object", field.replace('/', ".")));
            }
        }
        let mut gardenlet = gardenlet.clone();
        name_domain(&mut gardenlet, "/config/seedConfig/spec/ingress/domain", name); // DEV-3
        spec.insert("gardenlet".to_owned(), gardenlet);
    }
    Ok(object_of(&kinds::MANAGED_SEED, set, template, (name, spec.into())))
}

/// Returns an object with name and spec, and with labels and annotations of a template. The ManagedSeedSet controls it.
fn object_of(kind: &Resource, set: &Value, template: &Value, (name, spec): (&str, Value)) -> Value {
    let owner = controller_reference(&kinds::MANAGED_SEED_SET, object::name(set), object::uid(set), true);
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("namespace".to_owned(), object::namespace(set).into());
    for field in ["labels", "annotations"] {
        let pairs = template.get("metadata").and_then(|metadata| metadata.get(field)?.as_object());
        if let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) {
            metadata.insert(field.to_owned(), pairs.clone().into());
        }
    }
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), kind.api_version().into());
    object.insert("kind".to_owned(), (&*kind.kind).into());
    object.insert("metadata".to_owned(), metadata.into());
    if !spec.is_null() {
        object.insert("spec".to_owned(), spec);
    }
    object.into()
}

/// Replaces the placeholder in the domain at a JSON pointer, if there is one.
fn name_domain(object: &mut Value, pointer: &str, name: &str) {
    if let Some(Value::String(domain)) = object.pointer_mut(pointer) {
        *domain = domain.replace(PLACEHOLDER, name);
    }
}
