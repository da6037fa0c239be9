//! The bundles of `config/examples`, and the changes of the story to them. Pure.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

pub(super) const NAMESPACE: &str = "default";

#[derive(Debug, Clone, Copy)]
pub(super) struct Example {
    pub(super) name: &'static str,
    pub(super) secret: &'static str,
    files: &'static [(&'static str, &'static str)],
}

pub(super) const WEBAPP: Example = Example {
    name: "webapp",
    secret: "example-webapp",
    files: &[
        ("10-settings.yaml", include_str!("../../config/examples/webapp/10-settings.yaml")),
        ("20-access.yaml", include_str!("../../config/examples/webapp/20-access.yaml")),
        ("30-application.yaml", include_str!("../../config/examples/webapp/30-application.yaml")),
    ],
};

pub(super) const MONITORING: Example = Example {
    name: "monitoring",
    secret: "example-monitoring",
    files: &[("alerting.yaml", include_str!("../../config/examples/monitoring/alerting.yaml"))],
};

/// Three ConfigMaps; the second does not decode.
pub(super) const BROKEN: Example =
    Example { name: "broken", secret: "example-broken", files: &[("colours.yaml", BROKEN_COLOURS)] };

const BROKEN_COLOURS: &str = include_str!("../../config/examples/broken/colours.yaml");

impl Example {
    pub(super) fn secret(&self) -> Value {
        secret(self.secret, self.files.iter().map(|(file, text)| (*file, (*text).to_owned())))
    }

    pub(super) fn managed_resource(&self) -> Value {
        json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"secretRefs": [{"name": self.secret}]},
        })
    }
}

pub(super) fn colours(text: String) -> Value {
    secret(BROKEN.secret, [("colours.yaml", text)].into_iter())
}

pub(super) fn mended() -> String {
    BROKEN_COLOURS.replace("\n data:", "\ndata:")
}

pub(super) fn before_the_mistake() -> String {
    mended().replace("colour: red", "colour: orange")
}

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
