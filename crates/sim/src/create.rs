//! POST: order of the checks, names and system fields (facts §1).

use std::sync::Arc;

use serde_json::Value;

use super::{
    body, defaults,
    kinds::{Generation, ServedKind},
    managed_fields,
    render::Form,
    request::Request,
    state::{Answer, ApiState, Reviewed, single_form},
    status::{Cause, Failure},
    storage::{Key, Object},
    update, validate,
};

/// Letters of generated names: no vowels, so that no words appear.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

const LONGEST_PREFIX: usize = 58;

pub(super) enum Created {
    Stored(Arc<Object>),
    DryRun(Value),
}

impl ApiState {
    pub(super) fn create(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<Answer, Failure> {
        let form = single_form(&request.info.accept, self.clock.now())?;
        let (mut value, warnings) = body::decode(kind, request)?;
        body::settle_namespace(kind, &mut value, &request.info.namespace)?;
        self.check_namespace(kind, &value, &request.info.namespace)?;
        if value["metadata"].get("resourceVersion").is_some() {
            return Err(Failure::version_on_create());
        }
        let created = self.insert(kind, request, value)?;
        Ok(self.answer_created(kind, &created, form)?.with_warnings(&warnings))
    }

    pub(super) fn answer_created(&self, kind: &ServedKind, created: &Created, form: Form) -> Result<Answer, Failure> {
        match created {
            Created::Stored(object) => self.answer_object(kind, 201, object, form),
            Created::DryRun(value) => self.answer_value(kind, 201, value, form),
        }
    }

    /// Fails if the namespace or the definition of the new object is missing or terminating.
    pub(super) fn check_namespace(&self, kind: &ServedKind, value: &Value, namespace: &str) -> Result<(), Failure> {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        if kind.namespaced {
            let Some(found) = self.storage.get(&Key::new("", "namespaces", "", namespace)) else {
                return Err(Failure::namespace_not_found(namespace));
            };
            if found.value["metadata"].get("deletionTimestamp").is_some() {
                return Err(Failure::namespace_terminating(kind, name, namespace));
            }
        }
        if kind.custom && self.is_definition_terminating(kind) {
            let text = "create not allowed while custom resource definition is terminating";
            return Err(Failure::forbidden(kind, name, text));
        }
        Ok(())
    }

    pub(super) fn insert(
        &mut self,
        kind: &Arc<ServedKind>,
        request: &Request,
        mut value: Value,
    ) -> Result<Created, Failure> {
        let uid = self.new_uid();
        let now = self.clock.text();
        let generated = self.name_object(&mut value);
        let metadata = body::metadata(&mut value);
        for field in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
            metadata.remove(field);
        }
        metadata.insert("uid".into(), uid.into());
        metadata.insert("creationTimestamp".into(), now.clone().into());
        if kind.generation != Generation::None {
            metadata.insert("generation".into(), 1.into());
        }
        if kind.has_status
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("status");
        }
        update::complete_status(kind, &mut value);
        if !generated {
            let text = "name or generateName is required";
            return Err(Failure::invalid(kind, "", vec![Cause::required("metadata.name", text)]));
        }
        if kind.plural == "certificatesigningrequests" && value["spec"].is_object() {
            value["spec"]["username"] = request.info.user.clone().into();
            value["spec"]["groups"] = request.groups.clone().into();
        }
        let sent = value.clone();
        defaults::apply(kind, &mut value, None, &mut self.allocations)?;
        self.mutate("CREATE", kind, &request.info.namespace, &mut value);
        let name = value["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = self.key(kind, &request.info.namespace, &name);
        let checked = validate::create(kind, &value).and_then(|()| self.check_free(kind, &key));
        if let Err(failure) = checked {
            self.allocations.release(&kind.plural, &value);
            return Err(failure);
        }
        let mut owned = without_allocated(kind, &sent, &value);
        managed_fields::record(None, &mut owned, request.field_manager(), "", &now);
        let metadata = body::metadata(&mut value);
        metadata.remove("managedFields");
        metadata.extend(body::metadata(&mut owned).remove("managedFields").map(|list| ("managedFields".into(), list)));
        if request.is_dry_run() {
            self.allocations.release(&kind.plural, &value);
            return Ok(Created::DryRun(value));
        }
        if !value["spec"]["clusterIP"].is_null() && kind.plural == "services" {
            // The real server stores the address before the Service, which takes a revision.
            self.storage.take_revision();
        }
        if self.changes_once(kind) {
            self.unsettled.insert(key.clone());
        }
        Ok(Created::Stored(self.store(key, value)))
    }

    pub(super) fn mutate(&mut self, operation: &'static str, kind: &ServedKind, namespace: &str, value: &mut Value) {
        let namespace = self.storage.get(&Key::new("", "namespaces", "", namespace)).filter(|_| kind.namespaced);
        if let Some(mutation) = &mut self.mutation {
            let namespace = namespace.map(|namespace| &namespace.value);
            mutation(&Reviewed { operation, resource: &kind.plural, namespace }, value);
        }
    }

    /// Kinds whose first write takes a new version even if it changes nothing (facts §4).
    fn changes_once(&self, kind: &ServedKind) -> bool {
        matches!((kind.group.as_str(), kind.plural.as_str()), ("", "persistentvolumeclaims") | ("batch", "jobs"))
    }

    fn check_free(&self, kind: &ServedKind, key: &Key) -> Result<(), Failure> {
        match self.storage.get(key) {
            None => Ok(()),
            Some(object) if object.value["metadata"].get("deletionTimestamp").is_some() => {
                Err(Failure::already_exists_deleting(kind, &key.name))
            }
            Some(_) => Err(Failure::already_exists(kind, &key.name)),
        }
    }

    /// Makes a name from `generateName` if there is no name; returns `false` if both are missing.
    fn name_object(&mut self, value: &mut Value) -> bool {
        let metadata = body::metadata(value);
        if metadata.contains_key("name") {
            return true;
        }
        let Some(prefix) = metadata.get("generateName").and_then(Value::as_str) else { return false };
        let mut name: String = prefix.chars().take(LONGEST_PREFIX).collect();
        for _ in 0..5 {
            name.push(NAME_LETTERS[self.random.usize(..NAME_LETTERS.len())].into());
        }
        metadata.insert("name".into(), name.into());
        true
    }
}

/// Returns the object without the values that the server allocated: they have no field owner (architecture §6).
fn without_allocated(kind: &ServedKind, sent: &Value, value: &Value) -> Value {
    let pointers: &[&str] = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => &[
            "/spec/clusterIP",
            "/spec/clusterIPs",
            "/spec/ipFamilies",
            "/spec/ipFamilyPolicy",
            "/spec/healthCheckNodePort",
        ],
        ("batch", "jobs") => &["/spec/selector", "/metadata/labels", "/spec/template/metadata/labels"],
        _ => &[],
    };
    let mut owned = value.clone();
    for pointer in pointers {
        let Some((parent, field)) = pointer.rsplit_once('/') else { continue };
        let Some(fields) = owned.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
        match sent.pointer(pointer) {
            Some(content) => fields.insert(field.into(), content.clone()),
            None => fields.remove(field),
        };
    }
    let ports = owned.pointer_mut("/spec/ports").and_then(Value::as_array_mut).filter(|_| kind.plural == "services");
    for (index, port) in ports.into_iter().flatten().enumerate() {
        if sent.pointer(&format!("/spec/ports/{index}/nodePort")).is_none()
            && let Some(port) = port.as_object_mut()
        {
            port.remove("nodePort");
        }
    }
    owned
}
