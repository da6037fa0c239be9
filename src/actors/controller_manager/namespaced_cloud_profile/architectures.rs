//! Architectures of images and machine types (spec 81 D.4, D.6). A parent has them in one of two formats: as capabilities,
//! or as fields of their own. Pure.

use cluster::object;
use serde_json::{Value, json};

use crate::actors::controller_manager::fields::{list, text};

const ARCHITECTURE: &str = "architecture";
const ARCHITECTURES: &str = "architectures";
const CAPABILITIES: &str = "capabilities";
const FLAVORS: &str = "capabilityFlavors";
const AMD64: &str = "amd64";

/// The capabilities that a parent defines.
pub(super) struct Capabilities {
    /// It defines any: entries are in the format of capabilities.
    is_format: bool,
    /// The values of the capability `architecture`; `None` if it is not defined.
    architectures: Option<Vec<String>>,
}

impl Capabilities {
    /// Reads the spec of a parent.
    pub(super) fn of(parent: &Value) -> Self {
        let defined = list(parent, "/machineCapabilities").find(|capability| text(capability, "/name") == ARCHITECTURE);
        Self {
            is_format: list(parent, "/machineCapabilities").next().is_some(),
            architectures: defined.map(|capability| texts(capability, "/values").map(str::to_owned).collect()),
        }
    }

    /// Returns an own image in the format of the parent.
    pub(super) fn image_in_format(&self, image: &Value) -> Value {
        let mut image = image.clone();
        if let Some(Value::Array(versions)) = image.get_mut("versions") {
            versions.iter_mut().for_each(|version| self.bring_image_version_into_format(version));
        }
        image
    }

    fn bring_image_version_into_format(&self, version: &mut Value) {
        let Value::Object(fields) = version else { return };
        let architectures = strings(fields.get(ARCHITECTURES));
        let flavors: Vec<&Value> = fields.get(FLAVORS).and_then(Value::as_array).into_iter().flatten().collect();
        if self.is_format {
            if flavors.is_empty() && !architectures.is_empty() {
                let flavors = architectures.iter().map(|name| json!({ ARCHITECTURE: [name] })).collect::<Vec<_>>();
                fields.insert(FLAVORS.to_owned(), flavors.into());
            }
            return;
        }
        if architectures.is_empty() {
            let of_flavors = distinct(flavors.iter().flat_map(|flavor| strings(flavor.get(ARCHITECTURE))));
            if !of_flavors.is_empty() {
                fields.insert(ARCHITECTURES.to_owned(), of_flavors.into());
            }
        }
        fields.remove(FLAVORS);
    }

    /// Returns an own machine type in the format of the parent.
    pub(super) fn machine_type_in_format(&self, machine_type: &Value) -> Value {
        let mut machine_type = machine_type.clone();
        let architecture = text(&machine_type, "/architecture").to_owned();
        let of_capabilities = strings(machine_type.pointer("/capabilities/architecture"));
        let has_capabilities =
            machine_type.get(CAPABILITIES).and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
        let Value::Object(fields) = &mut machine_type else { return machine_type };
        if self.is_format {
            if !has_capabilities {
                let only = only(self.architectures.as_deref().unwrap_or_default());
                let architecture = only.map_or(architecture, str::to_owned);
                fields.insert(CAPABILITIES.to_owned(), json!({ ARCHITECTURE: [or_amd64(architecture)] }));
            }
            return machine_type;
        }
        if architecture.is_empty()
            && let Some(first) = of_capabilities.into_iter().next()
        {
            fields.insert(ARCHITECTURE.to_owned(), first.into());
        }
        fields.remove(CAPABILITIES);
        machine_type
    }

    /// Adds the architecture of a merged machine type if it is missing.
    pub(super) fn complete_machine_type(&self, machine_type: &mut Value) {
        if !text(machine_type, "/architecture").is_empty() || !machine_type.is_object() {
            return;
        }
        let own = strings(machine_type.pointer("/capabilities/architecture"));
        let supported = self.architectures.as_deref().map(|defined| if own.is_empty() { defined } else { &own });
        let architecture = supported.and_then(only).unwrap_or_default().to_owned();
        *object::field_mut(machine_type, &[ARCHITECTURE]) = or_amd64(architecture).into();
    }

    /// Adds the architectures of a merged version of an image if they are missing.
    pub(super) fn complete_image_version(&self, version: &mut Value) {
        if !strings(version.get(ARCHITECTURES)).is_empty() || !version.is_object() {
            return;
        }
        let mut of_flavors: Vec<Vec<String>> = Vec::new();
        if let Some(defined) = &self.architectures {
            of_flavors.extend(list(version, "/capabilityFlavors").map(|flavor| strings(flavor.get(ARCHITECTURE))));
            if of_flavors.is_empty() {
                of_flavors.push(Vec::new());
            }
            // A flavor without architectures has all; a second one adds none.
            if let Some(first) = of_flavors.iter_mut().find(|own| own.is_empty()) {
                first.clone_from(defined);
            }
        }
        let mut architectures = distinct(of_flavors.into_iter().flatten());
        if architectures.is_empty() {
            architectures.push(AMD64.to_owned());
        }
        *object::field_mut(version, &[ARCHITECTURES]) = architectures.into();
    }
}

fn or_amd64(architecture: String) -> String {
    if architecture.is_empty() { AMD64.to_owned() } else { architecture }
}

/// Returns the value of a list with exactly one.
fn only(values: &[String]) -> Option<&str> {
    if let [only] = values { Some(only) } else { None }
}

/// Returns each value once, in the order of their first occurrence.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    values.filter(|value| seen.insert(value.clone())).collect()
}

fn texts<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    list(object, pointer).filter_map(Value::as_str)
}

fn strings(list: Option<&Value>) -> Vec<String> {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(Value::as_str).map(str::to_owned).collect()
}
