//! Bastion (spec 62 §4).

use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, TYPE, TextRule, immutable_shown, required_if};
use crate::api::meta::field::{
    Errors, Opaque, Shown,
    difference::instead_of,
    shapes::{Bytes, List, Part, Text},
};

pub(super) struct Bastion;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BastionSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    user_data: Bytes,
    ingress: List<Part<Ingress<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ingress<'a> {
    #[serde(borrow)]
    ip_block: Part<IpBlock<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct IpBlock<'a> {
    #[serde(borrow)]
    cidr: Text<'a>,
    except: List<Text<'a>>,
}

impl Rules for Bastion {
    type Spec<'a> = BastionSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("Bastion", "bastions", "bastion");

    fn texts<'s>(spec: &'s BastionSpec<'_>) -> Vec<TextRule<'s>> {
        vec![TextRule::fixed(TYPE, &spec.r#type)]
    }

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        required_if(spec.user_data.0.is_empty(), &SPEC.child("userData"), errors);
        required_if(spec.ingress.is_empty(), &SPEC.child("ingress"), errors);
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        // The user data may contain secrets.
        let shown = instead_of(&new.spec.user_data.0);
        let changed = new.spec.user_data != old.spec.user_data;
        immutable_shown(changed, &SPEC.child("userData"), Shown::Instead(&shown), errors);
    }
}
