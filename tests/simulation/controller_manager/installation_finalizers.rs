//! The finalizer of ControllerRegistrations, Seeds and Shoots.

use std::time::Duration;

use cluster::{Resource, object as fields};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, INSTALLATIONS, garden, object},
    installations::{PROVIDER, installation, installations, installed, installs, put_seed, register, seed, shoot},
    shoots::before_first,
};
use crate::log_capture::logged;

pub(super) const KINDS: [(&Resource, &str); 3] =
    [(&kinds::CONTROLLER_REGISTRATION, ""), (&kinds::SEED, ""), (&kinds::SHOOT, "a")];

/// Returns an object with other finalizers only.
pub(super) fn foreign(kind: &Resource, namespace: &str) -> Value {
    let mut object = object(kind, namespace, "o", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/b", "example.com/a"]);
    object
}

async fn is_held(garden: &Garden, kind: &Resource, namespace: &str) {
    let expected = ["example.com/b", "example.com/a", INSTALLATIONS];
    garden.soon("it is held", || garden.finalizers(kind, namespace, "o") == expected).await;
}

/// spec 85 scenarios 49 and 53: also if somebody removes it.
#[test]
fn installation_finalizer_is_behind_others_and_comes_back() {
    for (kind, namespace) in KINDS {
        garden(|garden| async move {
            garden.settled().await;
            garden.put(foreign(kind, namespace));
            is_held(&garden, kind, namespace).await;

            let without = json!({ "metadata": { "finalizers": ["example.com/b", "example.com/a"] } });
            garden.patch(kind, namespace, "o", without).await;
            is_held(&garden, kind, namespace).await;
        });
    }
}

/// spec 85 scenario 52
#[test]
fn installation_finalizer_survives_a_conflict() {
    for (kind, namespace) in KINDS {
        garden(|garden| async move {
            garden.settled().await;
            let (resource, namespace_name) = (super::garden::resource(kind), namespace.to_owned());
            let plural: &'static str = Box::leak(kind.plural.to_string().into_boxed_str());
            before_first(&garden, ("patch", plural), move |sim| {
                sim.edit(&resource, &namespace_name, "o", |it| it["metadata"]["finalizers"] = json!(["example.com/c"]));
            });
            garden.put(foreign(kind, namespace));

            let expected = ["example.com/c", INSTALLATIONS];
            garden.soon("it is held", || garden.finalizers(kind, namespace, "o") == expected).await;
        });
    }
}

/// spec 85 scenario 50, DEV-12
#[test]
fn registration_stays_until_its_installations_are_gone() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            garden.settled().await;
            installs(&garden, "s1", &["rp"]).await;
            let name = fields::name(&installation(&garden, "rp", "s1")).to_owned();

            garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
            garden.settle().await;
            assert!(garden.find(&kinds::CONTROLLER_REGISTRATION, "", "rp").is_some());
            garden.delete(&kinds::CONTROLLER_INSTALLATION, "", &name).await;

            garden.gone(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
        });
    });
    let text = "because still found ControllerInstallations: [rp-";
    assert_eq!(log.matches(text).count(), 1, "{log}");
}

/// spec 85 scenario 51
#[test]
fn seed_stays_until_its_installations_are_gone() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let name = fields::name(&installation(&garden, "rp", "s1")).to_owned();
        garden.edit(&kinds::CONTROLLER_INSTALLATION, "", &name, |it| it["metadata"]["finalizers"] = json!(["x/y"]));

        garden.delete(&kinds::SEED, "", "s1").await;
        garden.settle().await;
        let live = garden.find(&kinds::CONTROLLER_INSTALLATION, "", &name).expect("it is held");
        assert!(fields::deletion_timestamp(&live).is_some() && garden.find(&kinds::SEED, "", "s1").is_some());
        garden.patch(&kinds::CONTROLLER_INSTALLATION, "", &name, json!({ "metadata": { "finalizers": null } })).await;

        garden.gone(&kinds::SEED, "", "s1").await;
    });
}

/// spec 85 scenario 51: without a list.
#[test]
fn hosted_shoot_is_released_at_once() {
    garden(|garden| async move {
        garden.put(shoot("sh", "s1", json!({})));
        garden.settled().await;

        garden.delete(&kinds::SHOOT, "a", "sh").await;

        garden.gone(&kinds::SHOOT, "a", "sh").await;
        assert_eq!(garden.asked_for("controllerinstallations"), Vec::<String>::new());
    });
}

/// spec 85 D.3 DEV-13: the cache has not seen an installation yet.
#[test]
fn seed_is_not_released_while_an_unseen_installation_refers_to_it() {
    garden(|garden| async move {
        garden.put(object(&kinds::SEED, "", "o", json!({})));
        garden.settled().await;
        super::shoots::miss_events(&garden, "controllerinstallations");
        let spec = json!({ "registrationRef": { "name": "none" }, "seedRef": { "name": "o" } });
        garden.put(object(&kinds::CONTROLLER_INSTALLATION, "", "i", json!({ "spec": spec })));

        garden.delete(&kinds::SEED, "", "o").await;
        garden.settle().await;

        assert_eq!(garden.finalizers(&kinds::SEED, "", "o"), [INSTALLATIONS]);
    });
}

/// spec 85 A.6.3 DEV-22: creation and release share a list, which takes long.
#[test]
fn installation_is_not_created_for_what_is_released_meanwhile() {
    for kind in [&kinds::SEED, &kinds::CONTROLLER_REGISTRATION] {
        garden(|garden| async move {
            garden.put(seed("o", json!({})));
            garden.settled().await;
            garden.sim.set_faults(|info| {
                let is_meant = info.verb == "list" && info.resource == "controllerinstallations" && info.user == "gcm";
                if is_meant { Fault::DelayAnswer(Duration::from_secs(5)) } else { Fault::None }
            });

            register(&garden, "o", &[], json!({ "policy": "Always" }));
            tokio::time::sleep(Duration::from_millis(20)).await;
            garden.delete(kind, "", "o").await;
            tokio::time::sleep(Duration::from_secs(60)).await;

            assert_eq!(garden.find(kind, "", "o"), None);
            assert_eq!(installations(&garden), Vec::<Value>::new());
        });
    }
}

/// spec 85 A.2 W1: the finalizer of this program is the last one, and its answer comes before the event.
#[test]
fn installation_row_of_a_seed_goes_with_it() {
    garden(|garden| async move {
        garden.put(seed("o", json!({})));
        register(&garden, "rp", &PROVIDER, Value::Null);
        garden.settled().await;
        installs(&garden, "o", &["rp"]).await;
        assert!(garden.row("controllerinstallation-seed/o").is_some());

        garden.delete(&kinds::SEED, "", "o").await;

        garden.gone(&kinds::SEED, "", "o").await;
        garden.settle().await;
        assert!(garden.row("controllerinstallation-seed/o").is_none());
    });
}

/// Takes the finalizers of an object away. The API server refuses those that the program writes to its kind.
pub(super) fn refuse_finalizers(garden: &Garden, kind: &Resource, namespace: &str, name: &str) {
    garden.edit(kind, namespace, name, |object| object["metadata"]["finalizers"] = Value::Null);
    let plural = kind.plural.to_string();
    garden.sim.set_faults(move |info| {
        let is_meant = info.verb == "patch" && info.user == "gcm" && info.resource == plural;
        if is_meant { Fault::FailBefore(Seen::Disconnect) } else { Fault::None }
    });
}

/// spec 85 DEV-22, DEV-25: without the finalizer, the object goes at once.
#[test]
fn installation_is_not_created_before_the_finalizer_of_what_it_refers_to() {
    for (kind, name) in [(&kinds::CONTROLLER_REGISTRATION, "rp"), (&kinds::SEED, "s1")] {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            refuse_finalizers(&garden, kind, "", name);
            garden.settled().await;
            assert_eq!(installations(&garden), Vec::<Value>::new(), "{kind}");

            garden.delete(kind, "", name).await;
            garden.gone(kind, "", name).await;
            garden.sim.clear_faults();
            garden.settle().await;
            assert_eq!(installations(&garden), Vec::<Value>::new(), "{kind}");
        });
    }
}

/// Starts the controllers, and waits until an installation is being created. That takes two seconds.
async fn begin_creation(garden: &Garden) {
    garden.sim.set_faults(|info| {
        let is_meant = info.verb == "create" && info.resource == "controllerinstallations";
        if is_meant { Fault::Delay(Duration::from_secs(2)) } else { Fault::None }
    });
    garden.start().await;
    let asked = || garden.asked_for("controllerinstallations");
    let has_begun = || asked().iter().any(|request| request == "create controllerinstallations");
    garden.soon("an installation is being created", has_begun).await;
}

/// spec 85 scenario 65, D.3 DEV-24
#[test]
fn seed_is_not_released_while_an_installation_is_being_created() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        begin_creation(&garden).await;

        garden.delete(&kinds::SEED, "", "s1").await;

        garden.gone(&kinds::SEED, "", "s1").await;
        garden.settle().await;
        assert_eq!(installations(&garden), Vec::<Value>::new());
    });
}

/// spec 85 scenario 65, D.3 DEV-24: the installation stays, because it is wanted.
#[test]
fn registration_is_not_released_while_an_installation_is_being_created() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        begin_creation(&garden).await;

        garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
        garden.settle().await;

        assert_eq!(installed(&garden, "s1"), ["rp"]);
        assert!(garden.find(&kinds::CONTROLLER_REGISTRATION, "", "rp").is_some());
    });
}
