//! What the kinds have in common: their traits, and their order of rules (spec 62 §2.4, §2.5).

use serde::Deserialize;

pub(super) use super::checks::{
    REQUIRED, each_invalid, immutable, immutable_shown, immutable_text, required, required_if,
};
use super::{
    VERSION,
    metadata::{self, Metadata},
};
use crate::api::field::{
    Errors, Json, Path,
    difference::difference,
    shapes::{Part, Text},
};
use crate::api::quote::cut;

pub(super) const SPEC: Path<'static> = Path::root("spec");
pub(super) const STATUS: Path<'static> = Path::root("status");

/// A kind and its rules.
pub(super) trait Rules {
    /// What is read of `spec`. Two are equal if they mean the same.
    type Spec<'a>: Deserialize<'a> + Default + PartialEq;
    /// What is read of `status`.
    type Status<'a>: Deserialize<'a> + Default;

    /// Its names.
    const KIND: ExtensionKind;
    /// Whether `status` has rules. Without any it is passed over.
    const READS_STATUS: bool = false;

    /// The rules of an object by itself.
    fn check(object: &Object<'_, Self>, errors: &mut Errors);

    /// The rules of a change.
    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors);

    /// Whether the spec means something else.
    fn has_changed<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>) -> bool {
        new.spec != old.spec
    }

    /// The spec of an object that is being deleted has changed.
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
    /// Its name in paths of the API.
    pub plural: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What messages call it.
    pub noun: &'static str,
}

/// An object of a kind.
pub(super) struct Object<'a, R: Rules + ?Sized> {
    pub(super) metadata: Metadata<'a>,
    pub(super) spec: R::Spec<'a>,
    pub(super) status: R::Status<'a>,
    json: &'a Json<'a>,
}

/// A spec that is absent.
static NO_SPEC: Json<'static> = Json::Map(Vec::new());

/// For kinds whose status is not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Nothing {}

/// `secretRef`.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct SecretReference<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) namespace: Text<'a>,
}

/// Rules of an object that is about to be created.
pub(super) fn create<R: Rules>(object: &Object<'_, R>, errors: &mut Errors) {
    metadata::check(&object.metadata, R::KIND.namespaced, errors);
    R::check(object, errors);
}

/// Rules of an object that is about to be changed.
pub(super) fn update<'a, R: Rules>(new: &Object<'a, R>, old: &Object<'a, R>, errors: &mut Errors) {
    metadata::check_update(&new.metadata, &old.metadata, errors);
    let is_deleting = new.metadata.deletion_timestamp.is_some();
    let has_changed = R::has_changed(new, old);
    if is_deleting && has_changed {
        R::refuse_change(new, old, errors);
    } else {
        R::check_update(new, old, errors);
    }
    metadata::check(&new.metadata, R::KIND.namespaced, errors);
    // An object that has only to lose its finalizers must not be held by a rule that is younger than it is.
    if !is_deleting || has_changed {
        R::check(new, errors);
    }
}

impl<'a, R: Rules> Object<'a, R> {
    /// Reads an object.
    ///
    /// # Errors
    /// Why it is none of this kind; without anything of its content.
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
    /// `spec`, with the fields that are not read, too.
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
        // Only now is the way to the fault worth its price. What stands there is nobody's business.
        serde_path_to_error::deserialize(json).map_err(|error| {
            format!("couldn't decode the {kind}: {} has the wrong type", cut(&error.path().to_string()))
        })
    })
}
