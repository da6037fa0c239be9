//! ResourceQuotas for the namespaces of Projects (`controllers.project.quotas`).

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{ResourceQuotaStatus, ScopeSelector},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{LabelSelector, ObjectMeta},
    },
};
use kit::quote::shown;
use process::config_blocks;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::{Value, json};

use crate::api::meta::quantity::Amount;

config_blocks! {
    /// A ResourceQuota for the Projects that a selector matches.
    pub struct ProjectQuota {
        /// The ResourceQuota.
        pub config: QuotaTemplate,
        /// Labels of the Projects; without conditions it matches all.
        pub project_selector: LabelSelector,
    }

    /// A ResourceQuota as in the file. Its status is accepted and ignored.
    pub struct QuotaTemplate {
        /// Accepted, without effect.
        #[serde(skip_serializing)]
        pub api_version: String,
        /// Accepted, without effect.
        #[serde(skip_serializing)]
        pub kind: String,
        /// Labels and annotations.
        pub metadata: ObjectMeta,
        /// The limits.
        pub spec: QuotaSpec,
        /// Accepted, without effect.
        #[serde(skip_serializing)]
        pub status: ResourceQuotaStatus,
    }

    /// `spec` of a ResourceQuota.
    pub struct QuotaSpec {
        /// Limits by resource.
        pub hard: BTreeMap<String, HardLimit>,
        /// What is counted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scope_selector: Option<ScopeSelector>,
        /// What is counted.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub scopes: Vec<String>,
    }
}

/// A limit: the text of a quantity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HardLimit(String);

impl<'de> Deserialize<'de> for HardLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Quantity(text) = Quantity::deserialize(deserializer)?;
        if Amount::parse(&text).is_none() {
            return Err(D::Error::custom(format_args!("{} is no quantity", shown(&text))));
        }
        Ok(Self(text))
    }
}

impl QuotaTemplate {
    /// Returns the ResourceQuota, without its status.
    pub fn to_object(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": self.metadata, "spec": self.spec})
    }
}
