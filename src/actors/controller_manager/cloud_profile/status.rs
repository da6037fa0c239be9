//! The status of a CloudProfile (spec 81 C.2). Pure.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::classification::Version;
use crate::actors::controller_manager::fields::{list, text, without_empty};

/// The versions of a CloudProfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    kubernetes: Vec<Version>,
    /// Name and versions of each image.
    images: Vec<(String, Vec<Version>)>,
}

impl Versions {
    /// Reads the versions in the spec of a CloudProfile.
    pub fn of(profile: &Value) -> Self {
        let image = |image: &Value| {
            let versions = list(image, "/versions").map(Version::of);
            (text(image, "/name").to_owned(), versions.collect())
        };
        Self {
            kubernetes: list(profile, "/spec/kubernetes/versions").map(Version::of).collect(),
            images: list(profile, "/spec/machineImages").map(image).collect(),
        }
    }

    /// Returns the merge patch for `/status` that publishes the classifications of all versions at a time; `None` if
    /// the status has them. Other fields stay.
    pub fn status_patch(&self, status: &Value, now: Timestamp) -> Option<Value> {
        let published = |versions: &[Version]| -> Vec<Value> {
            let entry = |version: &Version| json!({ "version": version.version, "classification": version.classification(now) });
            versions.iter().map(entry).collect()
        };
        let kubernetes = published(&self.kubernetes);
        let kubernetes = if kubernetes.is_empty() { Value::Null } else { json!({ "versions": kubernetes }) };
        let image =
            |(name, versions): &(String, Vec<Version>)| json!({ "name": name, "versions": published(versions) });
        let images: Vec<_> = self.images.iter().map(image).collect();
        let images = if images.is_empty() { Value::Null } else { images.into() };

        let is_known = is_same(&published_part(status), &json!({ "kubernetes": kubernetes, "machineImages": images }));
        (!is_known).then(|| json!({ "status": { "kubernetes": kubernetes, "machineImages": images } }))
    }

    /// Returns when the classification of a version changes next.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let versions = self.kubernetes.iter().chain(self.images.iter().flat_map(|(_, versions)| versions));
        versions.filter_map(|version| version.next_start(now)).min()
    }
}

/// Returns the part of a status that [`Versions::status_patch`] compares.
pub fn published_part(status: &Value) -> Value {
    let mut part = Map::new();
    let field = |name: &str| status.get(name).cloned().unwrap_or_default();
    part.insert("kubernetes".to_owned(), field("kubernetes"));
    part.insert("machineImages".to_owned(), field("machineImages"));
    part.into()
}

fn is_same(one: &Value, other: &Value) -> bool {
    without_empty(one) == without_empty(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    fn profile() -> Value {
        json!({ "spec": {
            "kubernetes": { "versions": [{ "version": "1.30.2" }, { "version": "1.29.1", "classification": "deprecated" }] },
            "machineImages": [{ "name": "img", "versions": [{ "version": "4.5.6", "classification": "preview",
                "expirationDate": "2026-08-22T12:00:00Z" }] }, { "name": "bare" }],
        } })
    }

    fn patch(profile: &Value, status: &Value) -> Option<Value> {
        Versions::of(profile).status_patch(status, now())
    }

    /// spec 81 C.2, scenario 33
    #[test]
    fn profile_status_has_an_entry_for_each_version_in_the_order_of_the_spec() {
        let expected = json!({
            "kubernetes": { "versions": [{ "version": "1.30.2", "classification": "supported" },
                { "version": "1.29.1", "classification": "deprecated" }] },
            "machineImages": [{ "name": "img", "versions": [{ "version": "4.5.6", "classification": "preview" }] },
                { "name": "bare", "versions": [] }],
        });

        assert_eq!(patch(&profile(), &Value::Null), Some(json!({ "status": expected })));
        assert_eq!(patch(&profile(), &expected), None);
        assert_eq!(Versions::of(&profile()).next_change(now()), "2026-08-22T12:00:00Z".parse().ok());
    }

    /// spec 81 C.2, scenario 36; spec 80 §10 A12
    #[test]
    fn profile_status_without_versions_or_images_is_removed() {
        let mut without_images = profile();
        without_images["spec"]["machineImages"] = json!([]);
        let status = patch(&profile(), &Value::Null).unwrap()["status"].clone();

        let changed = patch(&without_images, &status).unwrap();

        assert_eq!(changed["status"]["machineImages"], Value::Null);
        assert_eq!(changed["status"]["kubernetes"], status["kubernetes"]);
        for empty in [
            json!({}),
            json!({ "kubernetes": null, "machineImages": [] }),
            json!({ "kubernetes": { "versions": null } }),
        ] {
            assert_eq!(patch(&json!({ "spec": {} }), &empty), None, "{empty}");
        }
    }

    /// spec 81 C.2
    #[test]
    fn profile_status_of_another_program_is_neither_compared_nor_written() {
        let mut status = patch(&profile(), &Value::Null).unwrap()["status"].clone();
        status["other"] = json!({ "of": "another program" });

        assert_eq!(patch(&profile(), &status), None);
    }

    #[test]
    fn profile_of_any_shape_has_a_status() {
        for spec in [json!(null), json!({ "kubernetes": [], "machineImages": {} }), json!([])] {
            assert_eq!(patch(&json!({ "spec": spec }), &Value::Null), None, "{spec}");
        }
        let odd = json!({ "spec": { "kubernetes": { "versions": [null, 5, {}] } } });
        assert_eq!(
            patch(&odd, &Value::Null).unwrap()["status"]["kubernetes"]["versions"].as_array().map(Vec::len),
            Some(3)
        );
    }
}
