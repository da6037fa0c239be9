//! BackupEntry (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, SecretReference, immutable_text, required};
use crate::api::meta::field::{
    Errors, Opaque,
    shapes::{Part, Text},
};

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

    const KIND: ExtensionKind = ExtensionKind {
        kind: "BackupEntry",
        group: super::GROUP,
        plural: "backupentries",
        namespaced: false,
        noun: "backup entry",
    };

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        required(&SPEC.child("type"), &spec.r#type, errors);
        required(&SPEC.child("bucketName"), &spec.bucket_name, errors);
        required(&SPEC.child("region"), &spec.region, errors);
        required(&SPEC.child("secretRef").child("name"), &spec.secret_ref.name, errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&SPEC.child("type"), &new.spec.r#type, &old.spec.r#type, errors);
    }
}
