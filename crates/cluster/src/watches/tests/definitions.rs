//! Which kinds are custom, and from when on that is known.

use super::*;
use crate::Definitions;

const DEFINITIONS: &str = "customresourcedefinitions";

fn widgets() -> Resource {
    Resource::new("example.org", "v1", "Widget", "widgets", true)
}

fn roles() -> Resource {
    Resource::new("rbac.authorization.k8s.io", "v1", "Role", "roles", true)
}

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": { "kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }]
        }
    })
}

#[test]
fn definitions_are_unknown_until_they_are_listed() {
    bare(|sim, watches| async move {
        sim.put(definition()).unwrap();
        sim.set_faults(|_| Fault::FailBefore(Seen::unauthorized()));
        let definitions = Definitions::open(&watches);
        watches.start();
        let is_met = definitions.sync_requirement().ready;
        tokio::time::sleep(Duration::from_secs(10)).await;

        assert_eq!((definitions.is_custom(&widgets()), definitions.is_custom(&roles())), (None, None));
        assert_eq!(definitions.is_custom(&config_maps()), Some(false), "its group has no dot");
        assert!(!is_met());
        let moment = definitions.signal().moment();
        sim.clear_faults();
        eventually("the definitions are listed", Duration::from_secs(60), || is_met()).await;

        assert!(moment.has_passed());
        assert_eq!((definitions.is_custom(&widgets()), definitions.is_custom(&roles())), (Some(true), Some(false)));
    });
}

/// spec 70, trap 6
#[test]
fn definitions_that_may_not_be_listed_count_as_none() {
    bare(|sim, watches| async move {
        sim.put(definition()).unwrap();
        sim.set_faults(|info| match info.resource.as_str() {
            DEFINITIONS => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        let definitions = Definitions::open(&watches);
        watches.start();
        let moment = definitions.signal().moment();
        let is_met = definitions.sync_requirement().ready;

        eventually("the denial is known", Duration::from_secs(60), || is_met()).await;

        assert!(moment.has_passed());
        assert_eq!(definitions.is_custom(&widgets()), Some(false));
    });
}
