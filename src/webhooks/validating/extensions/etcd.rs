//! Etcd, of etcd-druid (spec 62 §10). The schema of its CRD checks the other fields.

use kit::quote::cut;
use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, immutable, immutable_shown, immutable_text};
use crate::api::meta::field::{
    Errors, Shown, means_the_same,
    shapes::{Part, Text},
};

const PROVIDERS: [&str; 17] = [
    "aws",
    "S3",
    "stackit",
    "azure",
    "ABS",
    "gcp",
    "GCS",
    "alicloud",
    "OSS",
    "openstack",
    "Swift",
    "dell",
    "ECS",
    "openshift",
    "OCS",
    "Local",
    "local",
];

pub(super) struct Etcd;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct EtcdSpec<'a> {
    #[serde(borrow)]
    backup: Part<Backup<'a>>,
    member_name_prefix: Option<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Backup<'a> {
    #[serde(borrow)]
    store: Option<Part<Store<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Store<'a> {
    #[serde(borrow)]
    prefix: Text<'a>,
    provider: Option<Text<'a>>,
}

impl Rules for Etcd {
    type Spec<'a> = EtcdSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind =
        ExtensionKind { group: "druid.gardener.cloud", ..ExtensionKind::new("Etcd", "etcds", "etcd") };

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let Some(store) = &object.spec.backup.store else { return };
        let (path, metadata) = (SPEC.child("backup"), &object.metadata);
        let path = path.child("store");
        if !store.prefix.contains(&*metadata.namespace) || !store.prefix.contains(&*metadata.name) {
            let shown = Shown::Text(&store.prefix);
            errors.invalid(&path.child("prefix"), shown, "must contain object name and namespace");
        }
        let provider = store.provider.as_deref().unwrap_or_default();
        if !provider.is_empty() && !PROVIDERS.contains(&provider) {
            let detail = format!("unsupported storage provider: '{}'", cut(provider));
            errors.invalid(&path.child("provider"), Shown::Text(provider), detail);
        }
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        let (new, old) = (&new.spec, &old.spec);
        if let (Some(new), Some(old)) = (&new.backup.store, &old.backup.store) {
            let path = SPEC.child("backup");
            immutable_text(&path.child("store").child("prefix"), &new.prefix, &old.prefix, errors);
        }
        immutable(&SPEC.child("memberNamePrefix"), &new.member_name_prefix, &old.member_name_prefix, errors);
    }

    /// All fields count, also those without rules.
    fn has_changed<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>) -> bool {
        !means_the_same(new.spec_as_it_came(), old.spec_as_it_came())
    }

    fn refuse_change(new: &Object<'_, Self>, _: &Object<'_, Self>, errors: &mut Errors) {
        immutable_shown(true, &SPEC, Shown::Json(new.spec_as_it_came()), errors);
    }
}
