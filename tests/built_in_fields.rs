//! The table of the fields of built-in kinds, which the command `validate` checks manifests with. It is generated from
//! the types of `k8s-openapi`: a probe answers their deserializers, and writes down what these ask for. So the program
//! carries a table of some ten kilobytes, and not the deserializers of all kinds.

use std::{
    any::{TypeId, type_name},
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use apis::*;
use k8s_openapi::{ClusterResourceScope, Resource};
use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, Expected, IntoDeserializer as _, MapAccess, SeqAccess, Visitor,
        value::{Error, MapDeserializer},
    },
};

const TABLE: &str = "src/commands/validate/built_in_fields.txt";

macro_rules! add_kinds {
    ($table:expr, $($module:ident { $($kind:ident)* })*) => {
        $($(add::<$module::$kind>($table);)*)*
    };
}

/// The stable APIs.
mod apis {
    pub(super) use k8s_openapi::{
        api::{
            admissionregistration::v1 as admissionregistration, apps::v1 as apps, autoscaling::v1 as autoscaling_v1,
            autoscaling::v2 as autoscaling_v2, batch::v1 as batch, certificates::v1 as certificates,
            coordination::v1 as coordination, core::v1 as core_v1, discovery::v1 as discovery, events::v1 as events,
            flowcontrol::v1 as flowcontrol, networking::v1 as networking, node::v1 as node, policy::v1 as policy,
            rbac::v1 as rbac, resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
        kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration,
    };
}

/// The kinds of stable versions that a bundle may contain.
fn generated() -> String {
    let mut table = Table::default();
    add_kinds! { &mut table,
        admissionregistration {
            MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
            ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration
        }
        apiextensions { CustomResourceDefinition }
        apiregistration { APIService }
        apps { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
        autoscaling_v1 { HorizontalPodAutoscaler }
        autoscaling_v2 { HorizontalPodAutoscaler }
        batch { CronJob Job }
        certificates { CertificateSigningRequest ClusterTrustBundle }
        coordination { Lease }
        core_v1 {
            ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate
            ReplicationController ResourceQuota Secret Service ServiceAccount
        }
        discovery { EndpointSlice }
        events { Event }
        flowcontrol { FlowSchema PriorityLevelConfiguration }
        networking { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
        node { RuntimeClass }
        policy { PodDisruptionBudget }
        rbac { ClusterRole ClusterRoleBinding Role RoleBinding }
        resource { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
        scheduling { PriorityClass }
        storage {
            CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass
        }
    }
    table.text()
}

#[derive(Default)]
struct Table {
    /// API version, kind, scope and type of each kind.
    kinds: BTreeSet<[&'static str; 4]>,
    /// Fields of each type, by its path.
    types: RefCell<BTreeMap<&'static str, Vec<(&'static str, FieldType)>>>,
}

#[derive(Clone, Default)]
struct FieldType {
    /// `[]` for a list, `{}` for a map, `?` for a type or a list of it.
    shape: String,
    /// Path of a type, or the name of a scalar.
    name: &'static str,
}

fn add<T: Resource + for<'de> Deserialize<'de>>(table: &mut Table)
where
    T::Scope: 'static,
{
    let is_of_the_cluster = TypeId::of::<T::Scope>() == TypeId::of::<ClusterResourceScope>();
    let scope = if is_of_the_cluster { "cluster" } else { "namespace" };
    table.kinds.insert([T::API_VERSION, T::KIND, scope, type_name::<T>()]);
    let probe = Probe { types: &table.types, asked: &RefCell::default() };
    T::deserialize(probe).map(drop).unwrap_or_else(|error| panic!("{}: {error}", T::KIND));
}

impl Table {
    fn text(&self) -> String {
        let types = self.types.borrow();
        let mut paths_of: BTreeMap<&str, usize> = BTreeMap::new();
        for path in types.keys() {
            *paths_of.entry(last(path)).or_default() += 1;
        }
        // `k8s_openapi::v1_37::api::core::v1::event::Event` is `core.v1.Event`, because there is another Event.
        let short = |path: &'static str| {
            let segments: Vec<&str> = path.rsplit("::").collect();
            match segments.as_slice() {
                [name, _, version, group, ..] if paths_of.get(name).is_some_and(|count| *count > 1) => {
                    format!("{group}.{version}.{name}")
                }
                [name, ..] => (*name).to_owned(),
                [] => String::new(),
            }
        };
        let version = types.keys().next().and_then(|path| path.split("::").nth(1)).unwrap_or_default();
        let version = version.trim_start_matches('v').replace('_', ".");
        let mut text = format!("version {version}\n");
        for [api_version, kind, scope, path] in &self.kinds {
            writeln!(text, "kind {api_version} {kind} {scope} {}", short(path)).expect("it is a string");
        }
        let mut lines = BTreeSet::new();
        for (path, fields) in types.iter() {
            let fields =
                fields.iter().map(|(field, FieldType { shape, name })| format!(" {field}:{shape}{}", short(name)));
            lines.insert(format!("type {}{}\n", short(path), fields.collect::<String>()));
        }
        text.extend(lines);
        text
    }
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or_default()
}

/// Answers a deserializer with the smallest value of what it asks for, and writes down what that was.
#[derive(Clone, Copy)]
struct Probe<'a> {
    types: &'a RefCell<BTreeMap<&'static str, Vec<(&'static str, FieldType)>>>,
    asked: &'a RefCell<FieldType>,
}

impl Probe<'_> {
    fn is(self, name: &'static str) {
        self.asked.borrow_mut().name = name;
    }

    fn is_in(self, shape: &str) -> Self {
        self.asked.borrow_mut().shape.push_str(shape);
        self
    }
}

macro_rules! scalars {
    ($($method:ident $visit:ident($value:expr) $name:literal)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.is($name);
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    scalars! {
        deserialize_bool visit_bool(false) "boolean"
        deserialize_i32 visit_i32(0) "int32"
        deserialize_i64 visit_i64(0) "int64"
        deserialize_f64 visit_f64(0.0) "number"
        deserialize_str visit_str("") "string"
        deserialize_string visit_str("") "string"
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (&visitor as &dyn Expected).to_string().as_str() {
            "IntOrString" => {
                self.is("int-or-string");
                visitor.visit_i64(0)
            }
            "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
                self.is_in("?").is(type_name::<apiextensions::JSONSchemaProps>());
                visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>()))
            }
            other => panic!("a value that may be anything: {other}"),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(One(Some(self.is_in("[]"))))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_map(One(Some(self.is_in("{}"))))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.is(match name {
            "Quantity" => "quantity",
            "Time" | "MicroTime" => "string",
            _ => "any",
        });
        visitor.visit_newtype_struct("1970-01-01T00:00:00Z".into_deserializer())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let path = type_name::<V::Value>();
        self.is(path);
        // A type may contain itself.
        let is_known = self.types.borrow().contains_key(path);
        let (left, mut found) = if is_known { (&[][..], Vec::new()) } else { (fields, Vec::new()) };
        if !is_known {
            self.types.borrow_mut().insert(path, Vec::new());
        }
        let is_object = fields.contains(&"metadata");
        let value = visitor.visit_map(Fields { types: self.types, left, is_object, current: "", found: &mut found })?;
        if !is_known {
            self.types.borrow_mut().insert(path, found);
        }
        Ok(value)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
        ignored_any
    }
}

/// A list or a map with one value.
struct One<'a>(Option<Probe<'a>>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.0.map(|_| seed.deserialize("key".into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.0.take().expect("the key was asked for"))
    }
}

/// The fields of a type, one after the other.
struct Fields<'a> {
    types: &'a RefCell<BTreeMap<&'static str, Vec<(&'static str, FieldType)>>>,
    left: &'static [&'static str],
    is_object: bool,
    current: &'static str,
    found: &'a mut Vec<(&'static str, FieldType)>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        while let Some((field, left)) = self.left.split_first() {
            self.left = left;
            let known = match *field {
                // Types of objects accept only their own ones.
                "apiVersion" | "kind" => Some("string"),
                // `validate` warns of any status: nothing in it is applied.
                "status" if self.is_object => Some("any"),
                _ => None,
            };
            match known {
                Some(name) => self.found.push((field, FieldType { shape: String::new(), name })),
                None => {
                    self.current = field;
                    return seed.deserialize((*field).into_deserializer()).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let asked = RefCell::default();
        let value = seed.deserialize(Probe { types: self.types, asked: &asked })?;
        self.found.push((self.current, asked.into_inner()));
        Ok(value)
    }
}

#[test]
fn table_of_built_in_fields_is_that_of_the_types() {
    let expected = generated();
    let at = format!("{}/{TABLE}", env!("CARGO_MANIFEST_DIR"));
    let actual = std::fs::read_to_string(at).unwrap_or_default();
    if actual == expected {
        return;
    }
    let written = format!("{}/built_in_fields.txt", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&written, &expected).expect("the folder of the tests can be written");

    panic!("{TABLE} must be as {written}: copy it");
}

#[test]
fn table_of_built_in_fields_has_lists_maps_and_recursive_types() {
    let table = generated();
    let fields = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(&format!("type {name} "))).expect("the type is known");
        line.split(' ').skip(2).collect::<Vec<_>>()
    };

    assert!(table.contains("kind apps/v1 Deployment namespace Deployment\n"), "{table}");
    assert!(table.contains("kind rbac.authorization.k8s.io/v1 ClusterRole cluster ClusterRole\n"), "{table}");
    for (name, field) in [
        ("PodSpec", "containers:[]Container"),
        ("PodSpec", "nodeSelector:{}string"),
        ("ResourceRequirements", "limits:{}quantity"),
        ("ContainerPort", "containerPort:int32"),
        ("Secret", "data:{}string"),
        ("HTTPGetAction", "port:int-or-string"),
        ("JSONSchemaProps", "properties:{}JSONSchemaProps"),
        ("JSONSchemaProps", "items:?JSONSchemaProps"),
        ("JSONSchemaProps", "default:any"),
        ("StatefulSetSpec", "volumeClaimTemplates:[]PersistentVolumeClaim"),
        ("Deployment", "status:any"),
    ] {
        assert!(fields(name).contains(&field), "{name}: {:?}", fields(name));
    }
}
