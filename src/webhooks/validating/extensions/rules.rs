//! The trait of a kind, and the order of rules (spec 62 §2.4, §2.5).

use kit::quote::cut;
use serde::Deserialize;

pub(super) use super::checks::{
    REQUIRED, each_invalid, immutable, immutable_shown, immutable_text, one_of, required, required_if,
};
use super::{
    GROUP, VERSION,
    metadata::{self, Metadata},
};
use crate::api::meta::field::{
    Errors, Json, Path,
    difference::difference,
    shapes::{Part, Text},
};

pub(super) const SPEC: Path<'static> = Path::root("spec");
pub(super) const TYPE: Path<'static> = SPEC.child("type");
pub(super) const REGION: Path<'static> = SPEC.child("region");
const SECRET: Path<'static> = SPEC.child("secretRef");
pub(super) const SECRET_NAME: Path<'static> = SECRET.child("name");
pub(super) const STATUS: Path<'static> = Path::root("status");

pub(super) trait Rules {
    /// The fields of `spec`. Two values are equal if they mean the same.
    type Spec<'a>: Deserialize<'a> + Default + PartialEq;
    type Status<'a>: Deserialize<'a> + Default;

    const KIND: ExtensionKind;
    /// Whether `status` has rules. Otherwise it is skipped.
    const READS_STATUS: bool = false;

    /// The texts that are required, in the order of their errors. These errors come first.
    fn texts<'s>(_: &'s Self::Spec<'_>) -> Vec<TextRule<'s>> {
        Vec::new()
    }

    /// Checks the other rules.
    fn check(_: &Object<'_, Self>, _: &mut Errors) {}

    /// Checks the other rules of an update.
    fn check_update<'a>(_: &Object<'a, Self>, _: &Object<'a, Self>, _: &mut Errors) {}

    /// Whether the meaning of the spec changed.
    fn has_changed<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>) -> bool {
        new.spec != old.spec
    }

    /// Reports a changed spec of an object that is being deleted.
    fn refuse_change(new: &Object<'_, Self>, old: &Object<'_, Self>, errors: &mut Errors) {
        let (noun, changes) = (Self::KIND.noun, difference(new.spec_as_it_came(), old.spec_as_it_came()));
        let detail = format!("cannot update {noun} spec if deletion timestamp is set. Requested changes: {changes}");
        errors.forbidden(&SPEC, detail);
    }
}

/// Names of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionKind {
    /// Kind in upper camel case.
    pub kind: &'static str,
    /// API group; the version is `v1alpha1` for all.
    pub group: &'static str,
    /// Plural name, as in paths.
    pub plural: &'static str,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// The name in messages.
    pub noun: &'static str,
}

impl ExtensionKind {
    /// Returns a namespaced kind of the usual group.
    pub(super) const fn new(kind: &'static str, plural: &'static str, noun: &'static str) -> Self {
        Self { kind, group: GROUP, plural, namespaced: true, noun }
    }
}

/// A text that is required.
pub(super) struct TextRule<'a> {
    path: Path<'static>,
    value: &'a str,
    /// Whether it must not change.
    is_fixed: bool,
}

impl<'a> TextRule<'a> {
    pub(super) fn required(path: Path<'static>, value: &'a str) -> Self {
        Self { path, value, is_fixed: false }
    }

    pub(super) fn fixed(path: Path<'static>, value: &'a str) -> Self {
        Self { path, value, is_fixed: true }
    }
}

pub(super) struct Object<'a, R: Rules + ?Sized> {
    pub(super) metadata: Metadata<'a>,
    pub(super) spec: R::Spec<'a>,
    pub(super) status: R::Status<'a>,
    json: &'a Json<'a>,
}

static NO_SPEC: Json<'static> = Json::Map(Vec::new());

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Nothing {}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct SecretReference<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) namespace: Text<'a>,
}

pub(super) fn create<R: Rules>(object: &Object<'_, R>, errors: &mut Errors) {
    metadata::check(&object.metadata, R::KIND.namespaced, errors);
    check(object, errors);
}

fn check<R: Rules>(object: &Object<'_, R>, errors: &mut Errors) {
    R::texts(&object.spec).iter().for_each(|text| required(&text.path, text.value, errors));
    R::check(object, errors);
}

pub(super) fn update<'a, R: Rules>(new: &Object<'a, R>, old: &Object<'a, R>, errors: &mut Errors) {
    metadata::check_update(&new.metadata, &old.metadata, errors);
    let is_deleting = new.metadata.deletion_timestamp.is_some();
    let has_changed = R::has_changed(new, old);
    if is_deleting && has_changed {
        R::refuse_change(new, old, errors);
    } else {
        for (new, old) in R::texts(&new.spec).iter().zip(R::texts(&old.spec)).filter(|(new, _)| new.is_fixed) {
            immutable_text(&new.path, new.value, old.value, errors);
        }
        R::check_update(new, old, errors);
    }
    metadata::check(&new.metadata, R::KIND.namespaced, errors);
    // An object that only has to lose its finalizers must not be held by a rule that is newer than the object.
    if !is_deleting || has_changed {
        check(new, errors);
    }
}

impl<'a, R: Rules> Object<'a, R> {
    /// Reads an object. Fails if it is not of this kind; the error contains nothing of its content.
    pub(super) fn read(json: &'a Json<'a>) -> Result<Self, String> {
        let ExtensionKind { kind, group, .. } = R::KIND;
        let Json::Map(_) = json else { return Err(format!("couldn't decode the {kind}: it is not a map")) };
        let head: Head<'a> = read(json, kind)?;
        let is_of_version = head.api_version.is_empty() || head.api_version.split_once('/') == Some((group, VERSION));
        if !is_of_version || !(head.kind.is_empty() || *head.kind == *kind) {
            return Err(format!("couldn't decode the {kind}: the object names another kind or version"));
        }
        let body: Body<R::Spec<'a>, R::Status<'a>> = read(json, kind)?;
        Ok(Self { metadata: head.metadata.0, spec: body.spec.0, status: body.status.0, json })
    }
}

impl<R: Rules + ?Sized> Object<'_, R> {
    /// Returns `spec` with all fields, also those that are not read.
    pub(super) fn spec_as_it_came(&self) -> &Json<'_> {
        self.json.get("spec").unwrap_or(&NO_SPEC)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    metadata: Part<Metadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
#[serde(bound(deserialize = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default"))]
struct Body<S, T> {
    spec: Part<S>,
    status: Part<T>,
}

fn read<'a, T: Deserialize<'a>>(json: &'a Json<'a>, kind: &str) -> Result<T, String> {
    T::deserialize(json).or_else(|_| {
        // Only an error is worth the cost of tracking the path. The value there may be confidential.
        serde_path_to_error::deserialize(json).map_err(|error| {
            format!("couldn't decode the {kind}: {} has the wrong type", cut(&error.path().to_string()))
        })
    })
}
