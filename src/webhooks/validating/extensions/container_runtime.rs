//! ContainerRuntime (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, immutable_text, required};
use crate::api::meta::field::{
    Errors, Opaque,
    shapes::{List, Map, Part, Text},
};

pub(super) struct ContainerRuntime;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ContainerRuntimeSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    binary_path: Text<'a>,
    worker_pool: Part<WorkerPool<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct WorkerPool<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    selector: Part<Selector<'a>>,
}

/// A label selector. Without requirements it has only one representation.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Selector<'a> {
    #[serde(borrow)]
    match_labels: Map<'a, Text<'a>>,
    match_expressions: List<Part<Requirement<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Requirement<'a> {
    #[serde(borrow)]
    key: Text<'a>,
    operator: Text<'a>,
    values: List<Text<'a>>,
}

impl Rules for ContainerRuntime {
    type Spec<'a> = ContainerRuntimeSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind {
        kind: "ContainerRuntime",
        group: super::GROUP,
        plural: "containerruntimes",
        namespaced: true,
        noun: "container runtime",
    };

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        required(&SPEC.child("type"), &spec.r#type, errors);
        required(&SPEC.child("binaryPath"), &spec.binary_path, errors);
        required(&SPEC.child("workerPool").child("name"), &spec.worker_pool.name, errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&SPEC.child("type"), &new.spec.r#type, &old.spec.r#type, errors);
        let (name, before) = (&new.spec.worker_pool.name, &old.spec.worker_pool.name);
        immutable_text(&SPEC.child("workerPool").child("name"), name, before, errors);
    }
}
