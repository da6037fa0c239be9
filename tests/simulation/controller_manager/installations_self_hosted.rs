//! ControllerInstallations of self-hosted Shoots, and of Seeds that are self-hosted Shoots.

use std::time::Duration;

use cluster::object as fields;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{
    garden::{Garden, garden, object},
    installation_finalizers::refuse_finalizers,
    installations::{installations, register, require},
    shoots::before_first,
};

const MARK: &str = "seed-ref-name";
const SELF_HOSTED: &str = "seed.gardener.cloud/self-hosted-shoot-cluster";

/// Returns the self-hosted Shoot `garden/h`, which needs what `rh` serves.
fn own_shoot(extensions: Value) -> Value {
    let pool = json!({ "controlPlane": {}, "machine": { "image": { "name": "h" } } });
    let spec = json!({
        "provider": { "type": "h", "workers": [pool] }, "networking": { "type": "h" }, "extensions": extensions,
    });
    object(&kinds::SHOOT, "garden", "h", json!({ "spec": spec }))
}

/// Puts the Shoot, and the registrations `rh` for itself and `rs` for its Seed.
fn put_shoot(garden: &Garden) {
    let own = ["ControlPlane/h", "Infrastructure/h", "Worker/h", "Network/h", "OperatingSystemConfig/h"];
    register(garden, "rh", &own, Value::Null);
    register(garden, "rs", &["ControlPlane/s", "Infrastructure/s", "Worker/s"], Value::Null);
    garden.put(own_shoot(json!([])));
}

/// Puts the Seed of the Shoot, whose provider only the Seed needs.
fn put_seed(garden: &Garden, dns: Value) {
    let spec = json!({ "provider": { "type": "s" }, "dns": dns });
    let mut seed = object(&kinds::SEED, "", "h", json!({ "spec": spec }));
    seed["metadata"]["labels"] = json!({ SELF_HOSTED: "true" });
    garden.put(seed);
}

fn of_shoot(garden: &Garden, registration: &str) -> Value {
    let is_meant =
        |it: &Value| it["spec"]["registrationRef"]["name"] == registration && it["spec"]["shootRef"]["name"] == "h";
    installations(garden).into_iter().find(is_meant).unwrap_or_default()
}

fn registrations(garden: &Garden) -> Vec<String> {
    let name = |it: Value| it["spec"]["registrationRef"]["name"].as_str().unwrap_or_default().to_owned();
    let mut names: Vec<_> = installations(garden).into_iter().map(name).collect();
    names.sort();
    names
}

async fn installs(garden: &Garden, expected: &[&str]) {
    garden.soon(&format!("{expected:?}"), || registrations(garden) == expected).await;
    garden.settle().await;
    assert_eq!(registrations(garden), expected);
}

fn is_marked(garden: &Garden, registration: &str) -> bool {
    of_shoot(garden, registration)["metadata"]["labels"][MARK] == "h"
}

fn seed_of(garden: &Garden, registration: &str) -> Value {
    of_shoot(garden, registration)["spec"]["seedRef"]["name"].clone()
}

/// spec 85 B.1, DEV-25: without the finalizer, the Shoot goes at once.
#[test]
fn self_hosted_shoot_has_no_installations_before_its_finalizer() {
    garden(|garden| async move {
        put_shoot(&garden);
        refuse_finalizers(&garden, &kinds::SHOOT, "garden", "h");
        garden.settled().await;
        assert_eq!(installations(&garden), Vec::<Value>::new());

        garden.delete(&kinds::SHOOT, "garden", "h").await;
        garden.gone(&kinds::SHOOT, "garden", "h").await;
        garden.sim.clear_faults();
        garden.settle().await;
        assert_eq!(installations(&garden), Vec::<Value>::new());
    });
}

/// spec 85 scenarios 36 and 37
#[test]
fn self_hosted_shoot_has_installations_of_its_own() {
    garden(|garden| async move {
        put_shoot(&garden);
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        garden.put(object(&kinds::SHOOT, "garden", "hosted", json!({ "spec": { "provider": { "type": "h" } } })));
        garden.settled().await;
        installs(&garden, &["ra", "rh"]).await;

        let own = of_shoot(&garden, "rh");
        let labels = own["metadata"]["labels"].as_object().expect("it has labels");
        assert_eq!(labels.keys().collect::<Vec<_>>(), ["registration-spec-hash", "shoot-spec-hash"]);
        assert_eq!(own["spec"]["shootRef"]["namespace"], "garden");
        assert_eq!(own["spec"].as_object().map(|spec| spec.contains_key("seedRef")), Some(false));
    });
}

/// spec 85 scenarios 38, 40, 41 and 43
#[test]
fn installations_of_a_self_hosted_seed_are_marked_unless_its_shoot_needs_them() {
    garden(|garden| async move {
        put_shoot(&garden);
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        register(&garden, "rd", &["DNSRecord/d"], Value::Null);
        put_seed(&garden, json!({ "provider": { "type": "d" } }));
        garden.settled().await;
        installs(&garden, &["ra", "rd", "rh", "rs"]).await;
        assert!(is_marked(&garden, "rs") && is_marked(&garden, "rd"));
        assert_eq!((seed_of(&garden, "rs"), seed_of(&garden, "rh")), (json!("h"), Value::Null));
        assert_eq!(seed_of(&garden, "ra"), Value::Null);

        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["dns"] = Value::Null);
        installs(&garden, &["ra", "rh", "rs"]).await;

        let dns = json!({ "domain": "x.y", "providers": [{ "type": "d", "primary": true }] });
        garden.edit(&kinds::SHOOT, "garden", "h", |shoot| shoot["spec"]["dns"] = dns);
        installs(&garden, &["ra", "rd", "rh", "rs"]).await;
        assert_eq!((seed_of(&garden, "rd"), is_marked(&garden, "rd")), (Value::Null, false));
        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["dns"] = json!({ "provider": { "type": "d" } }));
        garden.soon("the Seed joins", || seed_of(&garden, "rd") == "h").await;
        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["dns"] = Value::Null);
        garden.soon("the Seed leaves", || seed_of(&garden, "rd").is_null()).await;
        installs(&garden, &["ra", "rd", "rh", "rs"]).await;
    });
}

/// spec 85 scenario 43, DEV-18: Seed and Shoot learn of the registration in the same moment.
#[test]
fn installation_by_policy_is_created_by_the_shoot_alone() {
    for policy in ["Always", "AlwaysExceptNoShoots"] {
        garden(|garden| async move {
            put_shoot(&garden);
            put_seed(&garden, json!({ "provider": { "type": "d" } }));
            garden.settled().await;
            installs(&garden, &["rh", "rs"]).await;

            register(&garden, "ra", &["DNSRecord/d"], json!({ "policy": policy }));

            installs(&garden, &["ra", "rh", "rs"]).await;
            assert!(!is_marked(&garden, "ra"));
            garden.soon("the Seed joins", || seed_of(&garden, "ra") == "h").await;
        });
    }
}

/// spec 85 scenarios 39 and 44: by a need, or because gardenlet requires it.
#[test]
fn installation_of_a_self_hosted_seed_is_handed_over_to_its_shoot() {
    for is_required in [false, true] {
        garden(|garden| async move {
            put_shoot(&garden);
            register(&garden, "rd", &["DNSRecord/d", "Extension/e"], Value::Null);
            put_seed(&garden, json!({ "provider": { "type": "d" } }));
            garden.settled().await;
            installs(&garden, &["rd", "rh", "rs"]).await;
            let before = of_shoot(&garden, "rd");
            match is_required {
                true => require(&garden, &before, json!("True")),
                false => garden.edit(&kinds::SHOOT, "garden", "h", |shoot| {
                    shoot["spec"]["extensions"] = json!([{ "type": "e" }]);
                }),
            }
            garden.soon("it is handed over", || !is_marked(&garden, "rd")).await;
            assert_eq!(fields::uid(&of_shoot(&garden, "rd")), fields::uid(&before));
            assert_eq!(seed_of(&garden, "rd"), "h");

            garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["dns"] = Value::Null);
            installs(&garden, &["rd", "rh", "rs"]).await;
            assert_eq!(seed_of(&garden, "rd"), Value::Null);
            match is_required {
                true => require(&garden, &of_shoot(&garden, "rd"), json!("False")),
                false => garden.edit(&kinds::SHOOT, "garden", "h", |shoot| shoot["spec"]["extensions"] = json!([])),
            }
            installs(&garden, &["rh", "rs"]).await;
        });
    }
}

/// spec 85 scenario 44, DEV-19: the Shoot cannot adopt what gardenlet requires.
#[test]
fn installation_that_gardenlet_requires_stays_although_its_shoot_cannot_adopt_it() {
    for is_registration_deleted in [false, true] {
        garden(|garden| async move {
            put_shoot(&garden);
            garden.put(object(&kinds::CONTROLLER_DEPLOYMENT, "", "d", json!({ "helm": {} })));
            register(&garden, "rd", &["DNSRecord/d"], json!({ "deploymentRefs": [{ "name": "d" }] }));
            put_seed(&garden, json!({ "provider": { "type": "d" } }));
            garden.settled().await;
            installs(&garden, &["rd", "rh", "rs"]).await;
            if is_registration_deleted {
                garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "rd").await;
            } else {
                garden.delete(&kinds::CONTROLLER_DEPLOYMENT, "", "d").await;
            }
            require(&garden, &of_shoot(&garden, "rd"), json!("True"));
            garden.settle().await;

            garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["dns"] = Value::Null);
            installs(&garden, &["rd", "rh", "rs"]).await;
            require(&garden, &of_shoot(&garden, "rd"), json!("False"));
            installs(&garden, &["rh", "rs"]).await;
        });
    }
}

/// spec 85 A.8 step 7, trap T-12: the Shoot adopts an installation while its Seed is about to update it.
#[test]
fn installation_that_the_shoot_adopts_is_not_marked_again() {
    garden(|garden| async move {
        put_shoot(&garden);
        register(&garden, "rd", &["DNSRecord/d"], Value::Null);
        put_seed(&garden, json!({ "provider": { "type": "d" } }));
        garden.settled().await;
        installs(&garden, &["rd", "rh", "rs"]).await;
        let name = fields::name(&of_shoot(&garden, "rd")).to_owned();
        before_first(&garden, ("patch", "controllerinstallations"), move |sim| {
            sim.edit("controllerinstallations.core.gardener.cloud", "", &name, |it| {
                it["metadata"]["labels"] = json!({ "shoot-spec-hash": "x" });
                it["status"]["conditions"] = json!([{ "type": "Required", "status": "True" }]);
            });
        });
        garden.sim.clear_requests();

        garden.edit(&kinds::CONTROLLER_REGISTRATION, "", "rd", |it| it["metadata"]["labels"] = json!({ "a": "b" }));
        garden.settle().await;

        assert!(!is_marked(&garden, "rd"));
        let mut patches = garden.asked_for("controllerinstallations");
        patches.retain(|request| request.starts_with("patch"));
        assert!(patches.len() <= 2, "a conflict, and the adoption: {patches:?}");
    });
}

/// spec 85 scenario 63, DEV-20: nobody else would install what both need.
#[test]
fn installations_of_a_labelled_seed_whose_shoot_is_hosted_are_its_own() {
    garden(|garden| async move {
        register(&garden, "rs", &["ControlPlane/s", "Infrastructure/s", "Worker/s"], Value::Null);
        let spec = json!({ "provider": { "type": "s", "workers": [{}] }, "seedName": "other" });
        garden.put(object(&kinds::SHOOT, "garden", "h", json!({ "spec": spec })));
        put_seed(&garden, Value::Null);
        garden.settled().await;
        installs(&garden, &["rs"]).await;
        assert!(is_marked(&garden, "rs"));

        require(&garden, &of_shoot(&garden, "rs"), json!("True"));
        installs(&garden, &["rs"]).await;
        assert!(is_marked(&garden, "rs"));
    });
}

/// spec 85 scenario 42
#[test]
fn installation_of_a_self_hosted_shoot_is_shared_with_shoots_on_its_seed() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        garden.settled().await;
        installs(&garden, &["rh", "rs"]).await;
        assert_eq!(seed_of(&garden, "rh"), Value::Null);

        let spec = json!({ "seedName": "h", "provider": { "type": "h", "workers": [{}] } });
        garden.put(object(&kinds::SHOOT, "a", "hosted", json!({ "spec": spec })));

        garden.soon("the Seed joins", || seed_of(&garden, "rh") == "h").await;
        installs(&garden, &["rh", "rs"]).await;
    });
}

/// spec 85 scenario 45, DEV-9
#[test]
fn self_hosted_shoot_in_deletion_loses_its_installations_and_is_released() {
    garden(|garden| async move {
        put_shoot(&garden);
        register(&garden, "rn", &[], json!({ "policy": "AlwaysExceptNoShoots" }));
        garden.settled().await;
        installs(&garden, &["rh", "rn"]).await;
        let name = fields::name(&of_shoot(&garden, "rh")).to_owned();
        garden.edit(&kinds::CONTROLLER_INSTALLATION, "", &name, |it| it["metadata"]["finalizers"] = json!(["x/y"]));

        garden.delete(&kinds::SHOOT, "garden", "h").await;
        installs(&garden, &["rh"]).await;
        assert!(garden.find(&kinds::SHOOT, "garden", "h").is_some());
        let free = json!({ "metadata": { "finalizers": null } });
        garden.patch(&kinds::CONTROLLER_INSTALLATION, "", &name, free).await;

        garden.gone(&kinds::SHOOT, "garden", "h").await;
    });
}

/// spec 85 scenario 46
#[test]
fn self_hosted_seed_in_deletion_leaves_the_shoot_its_installations() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["provider"]["type"] = json!("h"));
        garden.settled().await;
        installs(&garden, &["rh"]).await;
        assert_eq!(seed_of(&garden, "rh"), "h");

        garden.delete(&kinds::SEED, "", "h").await;

        garden.gone(&kinds::SEED, "", "h").await;
        installs(&garden, &["rh"]).await;
        assert_eq!(seed_of(&garden, "rh"), Value::Null);
    });
}

/// spec 85 A.8 step 1, DEV-7
#[test]
fn self_hosted_seed_without_its_shoot_is_cleaned_up_in_its_deletion() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        garden.settled().await;
        installs(&garden, &["rh", "rs"]).await;
        assert!(garden.sim.remove("shoots.core.gardener.cloud", "garden", "h").is_some());
        garden.settle().await;
        assert!(is_marked(&garden, "rs"), "nothing is deleted on doubt");

        garden.delete(&kinds::SEED, "", "h").await;

        garden.gone(&kinds::SEED, "", "h").await;
        installs(&garden, &["rh"]).await;
    });
}

/// spec 85 scenario 47, DEV-10
#[test]
fn self_hosted_shoot_gets_what_is_registered_later() {
    garden(|garden| async move {
        garden.put(own_shoot(json!([{ "type": "e" }])));
        garden.settled().await;
        installs(&garden, &[]).await;

        register(&garden, "re", &["Extension/e"], Value::Null);

        installs(&garden, &["re"]).await;
    });
}

/// spec 85 scenarios 48 and 62: a Shoot that is self-hosted by its label has backups by its objects only.
#[test]
fn self_hosted_shoot_gets_what_its_backups_need() {
    garden(|garden| async move {
        let shoot_ref = json!({ "namespace": "garden", "name": "h" });
        let mut labelled = object(&kinds::SHOOT, "garden", "h", json!({ "spec": { "provider": { "type": "h" } } }));
        labelled["metadata"]["labels"] = json!({ "shoot.gardener.cloud/self-hosted": "true" });
        garden.put(labelled);
        register(&garden, "rb", &["BackupBucket/b"], Value::Null);
        register(&garden, "re", &["BackupEntry/s"], Value::Null);
        garden.settled().await;
        installs(&garden, &[]).await;

        let spec = json!({ "provider": { "type": "b" }, "shootRef": shoot_ref });
        garden.put(object(&kinds::BACKUP_BUCKET, "", "b", json!({ "spec": spec })));
        let of_seed = json!({ "provider": { "type": "s" }, "seedName": "other" });
        garden.put(object(&kinds::BACKUP_BUCKET, "", "of-seed", json!({ "spec": of_seed })));
        let spec = json!({ "bucketName": "of-seed", "shootRef": shoot_ref });
        garden.put(object(&kinds::BACKUP_ENTRY, "garden", "e", json!({ "spec": spec })));
        installs(&garden, &["rb"]).await;
        garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
        installs(&garden, &[]).await;
    });
}

/// spec 85 A.8 step 4, W3: the Seed had left to its Shoot what the bucket needed.
#[test]
fn installation_that_the_shoot_no_longer_needs_is_created_by_its_seed() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["backup"] = json!({ "provider": "b" }));
        garden.put(object(&kinds::SHOOT, "a", "hosted", json!({ "spec": { "seedName": "h" } })));
        garden.settled().await;
        installs(&garden, &["rh", "rs"]).await;
        garden.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("controllerinstallations", "create") => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        let spec = json!({ "provider": { "type": "b" }, "shootRef": { "namespace": "garden", "name": "h" } });
        garden.put(object(&kinds::BACKUP_BUCKET, "", "b", json!({ "spec": spec })));
        register(&garden, "rb", &["BackupBucket/b", "BackupEntry/b"], Value::Null);
        installs(&garden, &["rh", "rs"]).await;

        garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
        garden.settle().await;
        garden.sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(120)).await;

        assert_eq!(registrations(&garden), ["rb", "rh", "rs"]);
        assert!(is_marked(&garden, "rb"));
    });
}

/// spec 85 A.6.3, trap T-1: the Shoot needs what its Seed is about to create.
#[test]
fn installation_is_not_created_by_seed_and_shoot_at_the_same_time() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        register(&garden, "re", &["Extension/e"], Value::Null);
        garden.settled().await;
        installs(&garden, &["rh", "rs"]).await;
        let (sim, mut is_late) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_meant = info.verb == "create" && info.resource == "controllerinstallations";
            if !is_meant || std::mem::replace(&mut is_late, true) {
                return Fault::None;
            }
            sim.edit("shoots.core.gardener.cloud", "garden", "h", |shoot| {
                shoot["spec"]["extensions"] = json!([{ "type": "e" }]);
            });
            Fault::Delay(Duration::from_secs(3))
        });

        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["extensions"] = json!([{ "type": "e" }]));
        garden.settle().await;
        garden.settle().await;

        installs(&garden, &["re", "rh", "rs"]).await;
        assert!(!is_marked(&garden, "re"));
    });
}

/// spec 85 scenario 60, DEV-17
#[test]
fn installation_of_a_shoot_survives_that_its_seed_is_not_self_hosted_any_more() {
    garden(|garden| async move {
        put_shoot(&garden);
        put_seed(&garden, Value::Null);
        garden.edit(&kinds::SEED, "", "h", |seed| seed["spec"]["provider"]["type"] = json!("h"));
        garden.settled().await;
        installs(&garden, &["rh"]).await;

        garden.edit(&kinds::SEED, "", "h", |seed| {
            seed["metadata"]["labels"] = json!({});
            seed["spec"]["provider"]["type"] = json!("s");
        });

        garden.soon("the Seed leaves", || seed_of(&garden, "rh").is_null()).await;
        installs(&garden, &["rh", "rs"]).await;
        assert_eq!(of_shoot(&garden, "rh")["spec"]["shootRef"]["name"], "h");
    });
}
