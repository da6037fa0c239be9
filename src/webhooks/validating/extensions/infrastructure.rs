//! Infrastructure (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, SecretReference, immutable_text, required};
use crate::api::meta::field::{
    Errors, Opaque,
    shapes::{Bytes, Part, Text},
};

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

    const KIND: ExtensionKind = ExtensionKind {
        kind: "Infrastructure",
        group: super::GROUP,
        plural: "infrastructures",
        namespaced: true,
        noun: "infrastructure",
    };

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        required(&SPEC.child("type"), &spec.r#type, errors);
        required(&SPEC.child("region"), &spec.region, errors);
        required(&SPEC.child("secretRef").child("name"), &spec.secret_ref.name, errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&SPEC.child("type"), &new.spec.r#type, &old.spec.r#type, errors);
        immutable_text(&SPEC.child("region"), &new.spec.region, &old.spec.region, errors);
    }
}
