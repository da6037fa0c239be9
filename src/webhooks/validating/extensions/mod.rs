//! Refuses extension objects that no controller could work with (spec 62).
//! ```text
//! Review ─► Extension::judge ─► Object<R>::read ─► rules.rs: create or update ─► Errors ─► an API status
//! ```
//! `rules.rs` has the trait of a kind ([`Rules`]) and the order of rules, `checks.rs` and `metadata.rs` the shared
//! rules. `small_kinds.rs` has the kinds whose rules are a table. Each other kind has one file or folder. A new kind is
//! one file and a line in [`all`].

mod bastion;
mod checks;
mod dns_record;
mod etcd;
mod metadata;
mod network;
mod operating_system_config;
mod rules;
mod self_hosted_shoot_exposure;
mod small_kinds;
mod worker;

#[cfg(test)]
mod tests;

use cluster::{Cause, Status, object::GroupVersionKind};
use kit::quote::{cut, shown};
pub use rules::ExtensionKind;
use serde_json::Value;

use self::rules::{Object, Rules, create, update};
use super::{Extent, Judgement, Review, Validated, Validator, review};
use crate::{
    api::meta::field::{Errors, Json},
    webhooks::{
        review::ReviewVerdict,
        view::{Failure, View},
    },
};

const GROUP: &str = "extensions.gardener.cloud";
/// The version of all kinds, also of those in other groups; no other version is registered.
const VERSION: &str = "v1alpha1";
/// The path to which a chart sends Etcds by mistake (spec 60 §4.1).
const OTHER_PATH_OF_ETCD: &str = "/validate-extensions-gardener-cloud-v1alpha1-etcd";

/// Checks the objects of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Extension {
    /// Its names.
    pub kind: ExtensionKind,
    /// Path of its webhook.
    pub path: &'static str,
    extent: Extent,
    create: for<'a> fn(&'a Json<'a>) -> Result<Checked, String>,
    update: for<'a> fn(&'a Json<'a>, &'a Json<'a>) -> Result<Checked, String>,
    decode: for<'a> fn(&'a Json<'a>) -> Result<(), String>,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// `metadata.name`.
    pub name: String,
    /// The violated rules.
    pub errors: Errors,
}

/// Returns all kinds, in the order of their names; Etcd has two paths.
#[rustfmt::skip]
pub fn all() -> [Extension; 14] {
    [
        of::<small_kinds::BackupBucket>("/validate-extensions-gardener-cloud-v1alpha1-backupbucket"),
        of::<small_kinds::BackupEntry>("/validate-extensions-gardener-cloud-v1alpha1-backupentry"),
        of::<bastion::Bastion>("/validate-extensions-gardener-cloud-v1alpha1-bastion"),
        of::<small_kinds::ContainerRuntime>("/validate-extensions-gardener-cloud-v1alpha1-containerruntime"),
        of::<small_kinds::ControlPlane>("/validate-extensions-gardener-cloud-v1alpha1-controlplane"),
        of::<dns_record::DnsRecord>("/validate-extensions-gardener-cloud-v1alpha1-dnsrecord"),
        of::<etcd::Etcd>("/validate-druid-gardener-cloud-v1alpha1-etcd"),
        of::<etcd::Etcd>(OTHER_PATH_OF_ETCD),
        of::<small_kinds::Extension>("/validate-extensions-gardener-cloud-v1alpha1-extension"),
        of::<small_kinds::Infrastructure>("/validate-extensions-gardener-cloud-v1alpha1-infrastructure"),
        of::<network::Network>("/validate-extensions-gardener-cloud-v1alpha1-network"),
        of::<operating_system_config::OperatingSystemConfig>("/validate-extensions-gardener-cloud-v1alpha1-operatingsystemconfig"),
        of::<self_hosted_shoot_exposure::SelfHostedShootExposure>("/validate-extensions-gardener-cloud-v1alpha1-selfhostedshootexposure"),
        of::<worker::Worker>("/validate-extensions-gardener-cloud-v1alpha1-worker"),
    ]
}

fn of<R: Rules>(path: &'static str) -> Extension {
    let extent = if R::READS_STATUS { Extent::Whole } else { Extent::WithoutStatus };
    Extension { kind: R::KIND, path, extent, create: created::<R>, update: updated::<R>, decode: decoded::<R> }
}

fn created<'a, R: Rules>(object: &'a Json<'a>) -> Result<Checked, String> {
    let object = Object::<R>::read(object)?;
    Ok(object.checked(|errors| create(&object, errors)))
}

fn updated<'a, R: Rules>(new: &'a Json<'a>, old: &'a Json<'a>) -> Result<Checked, String> {
    let (new, old) = (Object::<R>::read(new)?, Object::<R>::read(old)?);
    Ok(new.checked(|errors| update(&new, &old, errors)))
}

fn decoded<'a, R: Rules>(object: &'a Json<'a>) -> Result<(), String> {
    Object::<R>::read(object).map(drop)
}

impl<R: Rules> Object<'_, R> {
    fn checked(&self, check: impl FnOnce(&mut Errors)) -> Checked {
        let mut errors = Errors::default();
        check(&mut errors);
        Checked { name: self.metadata.name.to_string(), errors }
    }
}

impl Extension {
    /// Returns the extension that checks a kind, or `None` if the kind has no rules.
    pub fn find(kind: &GroupVersionKind) -> Option<Self> {
        let GroupVersionKind { group, version, kind } = kind;
        let is_meant = |its: &ExtensionKind| (its.group, VERSION, its.kind) == (&**group, &**version, &**kind);
        all().into_iter().find(|extension| is_meant(&extension.kind))
    }

    /// Checks a manifest as its webhook checks a CREATE. Fails if the manifest cannot be decoded.
    pub fn check(&self, manifest: &Value) -> Result<Checked, String> {
        let review = format!(r#"{{"request":{{"object":{manifest}}}}}"#);
        let object = review::object(review.as_bytes(), self.extent);
        let object = object.map_err(|reason| format!("couldn't decode the {}: {reason}", self.kind.kind))?;
        (self.create)(&object)
    }

    /// Spec 62 §2.3.
    fn decide(&self, review: &Review<'_>) -> Result<Checked, String> {
        let needed = |object: &Json<'_>| if object.is_null() { Err(NO_CONTENT.to_owned()) } else { Ok(()) };
        match &*review.operation {
            "CREATE" => {
                needed(&review.object)?;
                (self.create)(&review.object)
            }
            "UPDATE" => {
                needed(&review.object)?;
                if review.old_object.is_null() {
                    // Errors of the new object are reported first.
                    (self.decode)(&review.object)?;
                }
                needed(&review.old_object)?;
                (self.update)(&review.object, &review.old_object)
            }
            "DELETE" => {
                needed(&review.old_object)?;
                (self.decode)(&review.old_object).map(|()| Checked::default())
            }
            "CONNECT" => Ok(Checked::default()),
            other => Err(format!("unknown operation {}", shown(other))),
        }
    }
}

const NO_CONTENT: &str = "there is no content to decode";

impl Validator for Extension {
    fn extent(&self) -> Extent {
        self.extent
    }

    fn judge(&self, review: &Review<'_>, _: &dyn View) -> Result<Judgement, Failure> {
        let verdict = match self.decide(review) {
            Ok(checked) if checked.errors.is_empty() => ReviewVerdict::Allowed,
            Ok(checked) => {
                let errors = checked.errors.len();
                ReviewVerdict::Invalid { status: Box::new(self.refusal(&checked)), errors }
            }
            Err(message) => ReviewVerdict::Errored { code: 400, message },
        };
        Ok(verdict.into())
    }

    fn account(&self, _: &Review<'_>, judgement: &Judgement) -> Validated {
        let is_denied = matches!(judgement.verdict, ReviewVerdict::Invalid { .. });
        Validated { resource: self.kind.plural, deletion: None, is_denied }
    }
}

impl Extension {
    /// Spec 62 §2.2. Its size is bounded, because that of the errors is.
    fn refusal(&self, Checked { name, errors }: &Checked) -> Status {
        let ExtensionKind { kind, group, .. } = self.kind;
        let causes = errors.iter().map(|error| Cause {
            reason: error.kind.reason().to_owned(),
            message: error.message.clone(),
            field: error.field.clone(),
        });
        let rest = errors.rest().map(|message| Cause { message, ..Cause::default() });
        Status {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{kind}.{group} {} is invalid: {errors}", shown(name)),
            name: cut(name).into_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            causes: causes.chain(rest).collect(),
            ..Status::default()
        }
    }
}
