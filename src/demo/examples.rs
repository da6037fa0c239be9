//! The bundles of `config/examples`, and what the story does to them. Pure.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

/// Namespace of the ManagedResources and their Secrets.
pub(super) const NAMESPACE: &str = "default";

/// A bundle: a ManagedResource, and the files in its Secret.
#[derive(Debug, Clone, Copy)]
pub(super) struct Example {
    /// Name of the ManagedResource.
    pub(super) name: &'static str,
    /// Name of its Secret.
    pub(super) secret: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// An application with all that it needs.
pub(super) const WEBAPP: Example = Example {
    name: "webapp",
    secret: "example-webapp",
    files: &[
        ("10-settings.yaml", include_str!("../../config/examples/webapp/10-settings.yaml")),
        ("20-access.yaml", include_str!("../../config/examples/webapp/20-access.yaml")),
        ("30-application.yaml", include_str!("../../config/examples/webapp/30-application.yaml")),
    ],
};

/// A definition and an object of it.
pub(super) const MONITORING: Example = Example {
    name: "monitoring",
    secret: "example-monitoring",
    files: &[("alerting.yaml", include_str!("../../config/examples/monitoring/alerting.yaml"))],
};

/// Three ConfigMaps, the second of which does not decode.
pub(super) const BROKEN: Example =
    Example { name: "broken", secret: "example-broken", files: &[("colours.yaml", BROKEN_COLOURS)] };

const BROKEN_COLOURS: &str = include_str!("../../config/examples/broken/colours.yaml");

impl Example {
    /// Its Secret.
    pub(super) fn secret(&self) -> Value {
        secret(self.secret, self.files.iter().map(|(file, text)| (*file, (*text).to_owned())))
    }

    /// Its ManagedResource.
    pub(super) fn managed_resource(&self) -> Value {
        json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"secretRefs": [{"name": self.secret}]},
        })
    }
}

/// The Secret of [`BROKEN`] with another text.
pub(super) fn colours(text: String) -> Value {
    secret(BROKEN.secret, [("colours.yaml", text)].into_iter())
}

/// The colours of [`BROKEN`] without the mistake.
pub(super) fn mended() -> String {
    BROKEN_COLOURS.replace("\n data:", "\ndata:")
}

/// The mended colours as they were before somebody made the mistake: the evening had another colour.
pub(super) fn before_the_mistake() -> String {
    mended().replace("colour: red", "colour: orange")
}

/// The mended colours without the last document.
pub(super) fn without_the_evening() -> String {
    let mended = mended();
    mended.rsplit_once("---\n").map_or(mended.clone(), |(rest, _)| rest.to_owned())
}

fn secret<'a>(name: &str, files: impl Iterator<Item = (&'a str, String)>) -> Value {
    let data: Map<_, _> = files.map(|(file, text)| (file.to_owned(), BASE64_STANDARD.encode(text).into())).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE}, "data": data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_managed_resources_of_the_files() {
        let text = include_str!("../../config/examples/managedresources.yaml");
        let documents: Vec<Value> =
            text.split("---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect();

        let ours = [WEBAPP, MONITORING, BROKEN].map(|example| example.managed_resource());

        assert_eq!(documents, ours);
    }

    #[test]
    fn colours_differ_as_the_story_needs_it() {
        let decodes =
            |text: &str| text.split("---\n").map(|one| serde_saphyr::from_str::<Value>(one).is_ok()).collect();
        let all: [(String, Vec<bool>); 4] =
            [BROKEN_COLOURS.to_owned(), mended(), before_the_mistake(), without_the_evening()]
                .map(|text| (text.clone(), decodes(&text)));

        assert_eq!(
            all.each_ref().map(|(_, decodes)| decodes.as_slice()),
            [&[true, false, true][..], &[true, true, true], &[true, true, true], &[true, true]]
        );
        assert!(all[1].0.contains("red") && all[2].0.contains("orange") && !all[3].0.contains("evening"));
    }
}
