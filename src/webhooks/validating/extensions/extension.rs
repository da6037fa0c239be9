//! Extension (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, immutable_text, required};
use crate::api::meta::field::{Errors, Opaque, shapes::Text};

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

    const KIND: ExtensionKind = ExtensionKind {
        kind: "Extension",
        group: super::GROUP,
        plural: "extensions",
        namespaced: true,
        noun: "extension",
    };

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        required(&SPEC.child("type"), &object.spec.r#type, errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&SPEC.child("type"), &new.spec.r#type, &old.spec.r#type, errors);
    }
}
