//! How ControllerInstallations of Seeds are written: content, references, deletions, races.

use std::time::Duration;

use cluster::object as fields;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    installations::{
        PROVIDER, installation, installations, installed, installs, put_seed, referred_seed_version, register, require,
        seed, shoot,
    },
    shoots::before_first,
};
use crate::log_capture::logged;

const POD_SECURITY: &str = "security.gardener.cloud/pod-security-enforce";

fn version(garden: &Garden, kind: &cluster::Resource, namespace: &str, name: &str) -> String {
    fields::resource_version(&garden.find(kind, namespace, name).unwrap_or_default()).to_owned()
}

fn is_current(garden: &Garden, registration: &str, seed: &str) -> bool {
    let known = installation(garden, registration, seed)["spec"]["registrationRef"]["resourceVersion"].clone();
    known == version(garden, &kinds::CONTROLLER_REGISTRATION, "", registration)
}

/// Deletes an installation that gardenlet holds.
async fn delete_held(garden: &Garden, name: &str) {
    garden
        .edit(&kinds::CONTROLLER_INSTALLATION, "", name, |it| it["metadata"]["finalizers"] = json!(["example.com/x"]));
    garden.delete(&kinds::CONTROLLER_INSTALLATION, "", name).await;
}

async fn let_go(garden: &Garden, name: &str) {
    garden.patch(&kinds::CONTROLLER_INSTALLATION, "", name, json!({ "metadata": { "finalizers": null } })).await;
}

/// spec 85 scenario 24: an operator replaces a registration by hand.
#[test]
fn installation_of_a_registration_in_deletion_is_left_alone() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let before = installation(&garden, "rp", "s1");

        garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
        garden.put(seed("s2", json!({})));
        garden.settle().await;
        assert_eq!(installation(&garden, "rp", "s1")["spec"], before["spec"]);
        assert_eq!(installed(&garden, "s2"), [""; 0]);
        garden.delete(&kinds::CONTROLLER_INSTALLATION, "", fields::name(&before)).await;

        garden.gone(&kinds::CONTROLLER_REGISTRATION, "", "rp").await;
        garden.settle().await;
        assert_eq!(installed(&garden, "s1"), [""; 0]);
    });
}

/// spec 85 scenario 25, trap T-16
#[test]
fn installation_in_deletion_is_waited_for() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            garden.settled().await;
            installs(&garden, "s1", &["rp"]).await;
            let old = fields::name(&installation(&garden, "rp", "s1")).to_owned();
            delete_held(&garden, &old).await;
            register(&garden, "ra", &[], json!({ "policy": "Always" }));
            installs(&garden, "s1", &["ra", "rp"]).await;
            let_go(&garden, &old).await;

            let is_new = || ![old.as_str(), ""].contains(&fields::name(&installation(&garden, "rp", "s1")));
            garden.soon("a new installation", is_new).await;
            installs(&garden, "s1", &["ra", "rp"]).await;
        });
    });
    assert!(log.contains("because the deletion of the old ControllerInstallation is still pending"), "{log}");
}

/// spec 85 scenario 26, trap T-2
#[test]
fn installations_show_every_version_of_their_registration() {
    garden(|garden| async move {
        let names = ["s1", "s2", "s3"];
        register(&garden, "rp", &PROVIDER, Value::Null);
        names.iter().for_each(|name| garden.put(seed(name, json!({}))));
        garden.settled().await;

        garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "rp", |it| it["metadata"]["labels"] = json!({ "a": "b" }));

        garden.soon("all are current", || names.iter().all(|name| is_current(&garden, "rp", name))).await;
        let patches = garden.asked_for("controllerinstallations");
        assert!(patches.iter().all(|asked| asked.starts_with("patch")) && patches.len() == 3, "{patches:?}");
    });
}

/// spec 85 A.2 W1, "better" 4: the status of a Seed installs nothing again.
#[test]
fn installations_show_a_seed_as_it_changed_and_not_its_heartbeats() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let before = installation(&garden, "rp", "s1");
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["status"] = json!({ "beats": 1 }));
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        installs(&garden, "s1", &["ra", "rp"]).await;
        assert_eq!(installation(&garden, "rp", "s1"), before);

        garden.edit(&kinds::SEED, "", "s1", |seed| seed["spec"]["list"] = json!([1]));

        let current = || installation(&garden, "rp", "s1")["spec"]["seedRef"]["resourceVersion"].clone();
        garden.soon("the new Seed", || current() == version(&garden, &kinds::SEED, "", "s1")).await;
    });
}

/// spec 85 scenarios 27 to 29: with the label or without, the objects of the deployment count.
#[test]
fn installation_lists_what_its_deployment_refers_to() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            let labelled = |kind: &cluster::Resource, name: &str| {
                let mut object = object(kind, "garden", name, json!({}));
                object["metadata"]["labels"] = json!({ "gardener.cloud/role": "resource-reference" });
                object
            };
            let resource = |kind: &str, name: &str| json!({ "resourceRef": { "kind": kind, "name": name } });
            let resources = [resource("Secret", "creds"), resource("ConfigMap", "cfg"), resource("Secret", "plain")];
            garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "d", json!({ "resources": resources })));
            garden.put(labelled(&kinds::CONFIG_MAP, "cfg"));
            garden.put(object(&kinds::SECRET, "garden", "plain", json!({})));
            put_seed(&garden, json!({}));
            register(&garden, "ra", &[], json!({ "policy": "Always", "deploymentRefs": [{ "name": "d" }] }));
            garden.settled().await;
            installs(&garden, "s1", &["rp"]).await;
            garden.put(labelled(&kinds::SECRET, "creds"));
            installs(&garden, "s1", &["ra", "rp"]).await;

            let listed = || {
                let reference = |kind: &str, name: &str, of: &cluster::Resource| {
                    let version = version(&garden, of, "garden", name);
                    json!({ "kind": kind, "namespace": "garden", "name": name, "resourceVersion": version })
                };
                let expected = json!([
                    reference("Secret", "creds", &kinds::SECRET),
                    reference("ConfigMap", "cfg", &kinds::CONFIG_MAP),
                    reference("Secret", "plain", &kinds::SECRET),
                ]);
                installation(&garden, "ra", "s1")["spec"]["resourceRefs"] == expected
            };
            garden.soon("the references", listed).await;
            garden.edit(&kinds::SECRET, "garden", "creds", |secret| secret["data"] = json!({ "a": "Yg==" }));
            garden.soon("the new Secret", listed).await;

            let hash = || installation(&garden, "ra", "s1")["metadata"]["labels"]["deployment-hash"].clone();
            let before = hash();
            garden.edit(&kinds::CONTROLLER_DEPLOYMENT, "", "d", |it| it["helm"] = json!({ "values": { "a": "b" } }));
            let current = || installation(&garden, "ra", "s1")["spec"]["deploymentRef"]["resourceVersion"].clone();
            let is_current = || current() == version(&garden, &kinds::CONTROLLER_DEPLOYMENT, "", "d");
            garden.soon("the new deployment", is_current).await;
            assert!(before.is_string() && hash() != before);
        });
    });
    let text = "cannot deploy ControllerInstallation because the referenced Secret cannot be retrieved: ";
    assert!(log.contains(text), "{log}");
}

/// spec 85 trap T-13, scenario 33: Seeds share reads of what has no label.
#[test]
fn installations_of_many_seeds_share_the_reads_for_their_deployment() {
    garden(|garden| async move {
        let resources = json!([{ "resourceRef": { "kind": "Secret", "name": "plain" } }]);
        garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "d", json!({ "resources": resources })));
        garden.put(object(&kinds::SECRET, "garden", "plain", json!({})));
        register(&garden, "rp", &PROVIDER, json!({ "deploymentRefs": [{ "name": "d" }] }));
        for number in 0..20 {
            garden.put(seed(&format!("s{number}"), json!({})));
        }
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(installations(&garden).len(), 20);
        garden.sim.clear_requests();

        garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "rp", |it| it["metadata"]["labels"] = json!({ "a": "b" }));
        tokio::time::sleep(Duration::from_secs(30)).await;

        assert!((0..20).all(|number| is_current(&garden, "rp", &format!("s{number}"))));
        let reads = garden.asked().into_iter().filter(|asked| asked == "get secrets plain").count();
        assert!((1..=10).contains(&reads), "{reads} reads");
    });
}

/// spec 85 scenario 29, DEV-6
#[test]
fn installation_that_cannot_be_deployed_stops_no_other() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        for (name, deployment) in [("r0", json!([])), ("r1", json!([{ "name": "none" }])), ("r2", json!([]))] {
            register(&garden, name, &[], json!({ "policy": "Always", "deploymentRefs": deployment }));
        }
        garden.settled().await;

        installs(&garden, "s1", &["r0", "r2", "rp"]).await;
    });
}

/// spec 85 scenario 30, trap T-4
#[test]
fn installation_has_the_pod_security_of_its_registration() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let name = fields::name(&installation(&garden, "rp", "s1")).to_owned();
        garden.edit(&kinds::CONTROLLER_INSTALLATION, "", &name, |it| {
            it["metadata"]["annotations"] = json!({ "example.com/x": "y" });
        });
        for (value, expected) in [
            (json!({ POD_SECURITY: "baseline" }), json!({ "example.com/x": "y", POD_SECURITY: "baseline" })),
            (Value::Null, json!({ "example.com/x": "y" })),
        ] {
            garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "rp", |it| it["metadata"]["annotations"] = value);
            let annotations = || installation(&garden, "rp", "s1")["metadata"]["annotations"].clone();
            garden.soon("the annotation", || annotations() == expected).await;
        }
    });
}

/// spec 85 scenario 31, trap T-1
#[test]
fn installation_whose_creation_got_no_answer_is_not_created_again() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let mut is_lost = false;
        garden.sim.set_faults(move |info| {
            let is_meant = info.verb == "create" && info.resource == "controllerinstallations";
            if is_meant && !std::mem::replace(&mut is_lost, true) {
                Fault::FailAfterCommit(Seen::Disconnect)
            } else {
                Fault::None
            }
        });

        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        tokio::time::sleep(Duration::from_secs(300)).await;

        assert_eq!(installed(&garden, "s1"), ["ra", "rp"]);
    });
}

/// spec 85 scenario 32, DEV-5
#[test]
fn installations_that_are_duplicates_stay_while_they_are_wanted() {
    garden(|garden| async move {
        put_seed(&garden, json!({ "dns": { "provider": { "type": "d" } } }));
        register(&garden, "rd", &["DNSRecord/d"], Value::Null);
        for name in ["one", "two"] {
            let spec = json!({ "registrationRef": { "name": "rd" }, "seedRef": { "name": "s1" } });
            garden.put(object(&kinds::CONTROLLER_INSTALLATION, "", name, json!({ "spec": spec })));
        }
        garden.settled().await;
        installs(&garden, "s1", &["rd", "rd", "rp"]).await;

        garden.edit(&kinds::SEED, "", "s1", |seed| seed["spec"]["dns"] = Value::Null);
        installs(&garden, "s1", &["rp"]).await;
    });
}

/// spec 85 scenario 33
#[test]
fn installations_of_many_seeds_are_patched_without_a_list() {
    garden(|garden| async move {
        for number in 0..200 {
            garden.put(seed(&format!("s{number}"), json!({})));
        }
        register(&garden, "rp", &PROVIDER, Value::Null);
        for number in 0..4 {
            register(&garden, &format!("r{number}"), &[], json!({ "policy": "Always" }));
        }
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(installations(&garden).len(), 1000);
        garden.sim.clear_requests();

        garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "r0", |it| it["metadata"]["labels"] = json!({ "a": "b" }));
        tokio::time::sleep(Duration::from_secs(60)).await;

        let asked = garden.asked_for("controllerinstallations");
        assert_eq!(asked.len(), 200);
        assert!(asked.iter().all(|asked| asked.starts_with("patch")), "{asked:?}");
    });
}

/// Puts a deployment of this name that refers to a Secret, and a registration that is installed everywhere by it.
fn put_deployed(garden: &Garden, name: &str, labels: Value) {
    garden.put(object(&kinds::SECRET, "garden", name, json!({ "metadata": { "labels": labels } })));
    let resource = json!({ "resourceRef": { "apiVersion": "v1", "kind": "Secret", "name": name } });
    garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", name, json!({ "resources": [resource] })));
    register(garden, name, &[], json!({ "policy": "Always", "deploymentRefs": [{ "name": name }] }));
}

/// Returns the requests for installations that change them.
fn written(garden: &Garden) -> Vec<String> {
    let asked = garden.asked_for("controllerinstallations").into_iter();
    asked.filter(|asked| !asked.starts_with("list")).collect()
}

/// spec 85 scenario 33, DEV-26: also if the finalizers come late.
#[test]
fn installations_of_a_new_garden_take_one_write_each() {
    garden(|garden| async move {
        register(&garden, "rp", &PROVIDER, Value::Null);
        for number in 0..4 {
            put_deployed(&garden, &format!("r{number}"), json!({ "gardener.cloud/role": "resource-reference" }));
            put_deployed(&garden, &format!("plain{number}"), json!({}));
        }
        for number in 0..20 {
            garden.put(seed(&format!("s{number}"), json!({})));
        }
        garden.sim.set_faults(|info| {
            let is_late = ["secrets", "controllerdeployments"].contains(&&*info.resource) && info.verb == "patch";
            if is_late { Fault::Delay(Duration::from_millis(200)) } else { Fault::None }
        });
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert_eq!(installations(&garden).len(), 180);
        let written = written(&garden);
        assert!(written.len() == 180 && written.iter().all(|asked| asked.starts_with("create")), "{written:?}");
    });
}

/// spec 85 scenario 33, DEV-26
#[test]
fn installation_waits_two_seconds_for_finalizers_that_do_not_come() {
    garden(|garden| async move {
        put_deployed(&garden, "ra", json!({}));
        put_seed(&garden, json!({}));
        garden.sim.set_faults(|info| match info.resource == "controllerdeployments" && info.verb == "patch" {
            true => Fault::FailBefore(Seen::internal_error("no")),
            false => Fault::None,
        });
        garden.start().await;
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(installed(&garden, "s1"), ["rp"]);
        garden.settle().await;
        assert_eq!(installed(&garden, "s1"), ["ra", "rp"]);

        garden.sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let is_current = || {
            let known = installation(&garden, "ra", "s1")["spec"]["deploymentRef"]["resourceVersion"].clone();
            known == version(&garden, &kinds::CONTROLLER_DEPLOYMENT, "", "ra")
        };
        garden.soon("the version with the finalizers", is_current).await;
    });
}

/// spec 85 A.2 W5a, W5b, trap T-15
#[test]
fn installation_that_is_deleted_or_changed_by_hand_is_repaired() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let before = installation(&garden, "rp", "s1");
        garden.edit(&kinds::CONTROLLER_INSTALLATION, "", fields::name(&before), |it| {
            it["metadata"]["labels"]["registration-spec-hash"] = json!("x");
            it["spec"]["registrationRef"]["resourceVersion"] = json!("1");
            it["spec"]["registrationRef"]["uid"] = json!("u");
        });
        let is_repaired = || {
            let now = installation(&garden, "rp", "s1");
            // Each write also refreshes the version of the Seed.
            let mut spec = before["spec"].clone();
            spec["seedRef"]["resourceVersion"] = now["spec"]["seedRef"]["resourceVersion"].clone();
            now["spec"] == spec && now["metadata"]["labels"] == before["metadata"]["labels"]
        };
        garden.soon("it is repaired", is_repaired).await;
        let repaired = installation(&garden, "rp", "s1");
        assert!(referred_seed_version(&repaired) >= referred_seed_version(&before), "{repaired}");

        garden.delete(&kinds::CONTROLLER_INSTALLATION, "", fields::name(&before)).await;
        installs(&garden, "s1", &["rp"]).await;
    });
}

/// spec 85 A.2 W5b: another program undoes each repair.
#[test]
fn installation_that_drifts_again_and_again_is_repaired_ever_more_rarely() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;
        let name = fields::name(&installation(&garden, "rp", "s1")).to_owned();
        let hash = || installation(&garden, "rp", "s1")["metadata"]["labels"]["registration-spec-hash"].clone();

        garden
            .minute_beside(|| {
                if hash() != "x" {
                    garden.edit(&kinds::CONTROLLER_INSTALLATION, "", &name, |it| {
                        it["metadata"]["labels"]["registration-spec-hash"] = json!("x");
                    });
                }
            })
            .await;

        let patches = garden.asked_for("controllerinstallations");
        assert!((2..10).contains(&patches.len()), "{patches:?}");
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert_ne!(hash(), "x");
    });
}

/// spec 85 A.4 rule 6: an unusable selector neither installs nor uninstalls.
#[test]
fn installation_of_an_unusable_selector_stays_as_it_is() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        garden.settled().await;
        installs(&garden, "s1", &["ra", "rp"]).await;

        let odd = json!({ "matchExpressions": [{ "key": "a", "operator": "Odd" }] });
        garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "ra", |it| {
            it["spec"]["deployment"]["seedSelector"] = odd.clone()
        });
        register(&garden, "rb", &[], json!({ "policy": "Always", "seedSelector": odd }));
        installs(&garden, "s1", &["ra", "rp"]).await;
    });
}

/// spec 85 A.5 DEV-4, A.7: an installation without a registration is left alone, and stops no other.
#[test]
fn installation_without_a_registration_stays() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        let spec = json!({ "registrationRef": { "name": "none" }, "seedRef": { "name": "s1" } });
        garden.put(object(&kinds::CONTROLLER_INSTALLATION, "", "odd", json!({ "spec": spec })));
        garden.settled().await;

        installs(&garden, "s1", &["none", "rp"]).await;
    });
}

/// spec 85 A.7: gardenlet requires an installation again in the moment of its deletion.
#[test]
fn installation_that_becomes_required_before_its_deletion_stays() {
    garden(|garden| async move {
        put_seed(&garden, json!({ "dns": { "provider": { "type": "d" } } }));
        register(&garden, "rd", &["DNSRecord/d"], Value::Null);
        garden.settled().await;
        installs(&garden, "s1", &["rd", "rp"]).await;
        let name = fields::name(&installation(&garden, "rd", "s1")).to_owned();
        before_first(&garden, ("delete", "controllerinstallations"), move |sim| {
            let status = json!({ "conditions": [{ "type": "Required", "status": "True" }] });
            sim.edit("controllerinstallations.core.gardener.cloud", "", &name, |it| it["status"] = status);
        });

        garden.edit(&kinds::SEED, "", "s1", |seed| seed["spec"]["dns"] = Value::Null);
        installs(&garden, "s1", &["rd", "rp"]).await;
        require(&garden, &installation(&garden, "rd", "s1"), json!("False"));
        installs(&garden, "s1", &["rp"]).await;
    });
}

/// spec 85 A.7: a Shoot comes while other installations are created.
#[test]
fn installation_that_becomes_wanted_before_its_deletion_stays() {
    garden(|garden| async move {
        put_seed(&garden, json!({ "dns": { "provider": { "type": "d" } } }));
        register(&garden, "rd", &["DNSRecord/d", "Extension/f"], Value::Null);
        register(&garden, "re", &["Extension/e"], Value::Null);
        garden.settled().await;
        installs(&garden, "s1", &["rd", "rp"]).await;
        let before = installation(&garden, "rd", "s1");
        before_first(&garden, ("list", "controllerinstallations"), |sim| {
            let needs = json!({ "extensions": [{ "type": "f" }] });
            sim.put(shoot("sh", "s1", needs)).expect("it is valid");
        });

        garden.edit(&kinds::SEED, "", "s1", |seed| {
            seed["spec"]["dns"] = Value::Null;
            seed["spec"]["extensions"] = json!([{ "type": "e" }]);
        });

        installs(&garden, "s1", &["rd", "re", "rp"]).await;
        assert_eq!(fields::uid(&installation(&garden, "rd", "s1")), fields::uid(&before));
    });
}
