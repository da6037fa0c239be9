//! The small kinds: what is required, and what must not change, is a table (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, REGION, Rules, SECRET_NAME, SPEC, SecretReference, TYPE, TextRule};
use crate::api::meta::field::{
    Opaque, Path,
    shapes::{Bytes, List, Map, Part, Text},
};

pub(super) struct BackupBucket;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BackupBucketSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    region: Text<'a>,
    secret_ref: Part<SecretReference<'a>>,
}

impl Rules for BackupBucket {
    type Spec<'a> = BackupBucketSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind =
        ExtensionKind { namespaced: false, ..ExtensionKind::new("BackupBucket", "backupbuckets", "backup bucket") };

    fn texts<'s>(spec: &'s BackupBucketSpec<'_>) -> Vec<TextRule<'s>> {
        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::fixed(REGION, &spec.region),
            TextRule::required(SECRET_NAME, &spec.secret_ref.name),
        ]
    }
}

pub(super) struct BackupEntry;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BackupEntrySpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    backup_bucket_provider_status: Option<Opaque<'a>>,
    bucket_name: Text<'a>,
    region: Text<'a>,
    secret_ref: Part<SecretReference<'a>>,
}

impl Rules for BackupEntry {
    type Spec<'a> = BackupEntrySpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind =
        ExtensionKind { namespaced: false, ..ExtensionKind::new("BackupEntry", "backupentries", "backup entry") };

    fn texts<'s>(spec: &'s BackupEntrySpec<'_>) -> Vec<TextRule<'s>> {
        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::required(SPEC.child("bucketName"), &spec.bucket_name),
            TextRule::required(REGION, &spec.region),
            TextRule::required(SECRET_NAME, &spec.secret_ref.name),
        ]
    }
}

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

    const KIND: ExtensionKind = ExtensionKind::new("ContainerRuntime", "containerruntimes", "container runtime");

    fn texts<'s>(spec: &'s ContainerRuntimeSpec<'_>) -> Vec<TextRule<'s>> {
        const WORKER_POOL: Path<'static> = SPEC.child("workerPool");

        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::required(SPEC.child("binaryPath"), &spec.binary_path),
            TextRule::fixed(WORKER_POOL.child("name"), &spec.worker_pool.name),
        ]
    }
}

pub(super) struct ControlPlane;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ControlPlaneSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    infrastructure_provider_status: Option<Opaque<'a>>,
    region: Text<'a>,
    secret_ref: Part<SecretReference<'a>>,
}

impl Rules for ControlPlane {
    type Spec<'a> = ControlPlaneSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("ControlPlane", "controlplanes", "control plane");

    fn texts<'s>(spec: &'s ControlPlaneSpec<'_>) -> Vec<TextRule<'s>> {
        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::fixed(REGION, &spec.region),
            TextRule::required(SECRET_NAME, &spec.secret_ref.name),
        ]
    }
}

pub(super) struct Extension;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ExtensionSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
}

impl Rules for Extension {
    type Spec<'a> = ExtensionSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("Extension", "extensions", "extension");

    fn texts<'s>(spec: &'s ExtensionSpec<'_>) -> Vec<TextRule<'s>> {
        vec![TextRule::fixed(TYPE, &spec.r#type)]
    }
}

pub(super) struct Infrastructure;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct InfrastructureSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    region: Text<'a>,
    secret_ref: Part<SecretReference<'a>>,
    ssh_public_key: Bytes,
}

impl Rules for Infrastructure {
    type Spec<'a> = InfrastructureSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("Infrastructure", "infrastructures", "infrastructure");

    fn texts<'s>(spec: &'s InfrastructureSpec<'_>) -> Vec<TextRule<'s>> {
        vec![
            TextRule::fixed(TYPE, &spec.r#type),
            TextRule::fixed(REGION, &spec.region),
            TextRule::required(SECRET_NAME, &spec.secret_ref.name),
        ]
    }
}
