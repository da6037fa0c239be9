//! ControllerInstallations of Seeds: what is needed, and what is installed for it.

use cluster::object as fields;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::log_capture::logged;

const ROLE: &str = "gardener.cloud/role";

/// The pairs that the provider `p` of a Seed serves.
pub(super) const PROVIDER: [&str; 3] = ["ControlPlane/p", "Infrastructure/p", "Worker/p"];

/// Returns entries of `spec.resources` of a registration.
pub(super) fn pairs(pairs: &[&str], more: &Value) -> Value {
    let pair = |pair: &&str| {
        let (kind, of_type) = pair.split_once('/').expect("a pair");
        let mut resource = json!({ "kind": kind, "type": of_type });
        for (field, value) in more.as_object().into_iter().flatten() {
            resource[field] = value.clone();
        }
        resource
    };
    pairs.iter().map(pair).collect()
}

/// Puts a registration that serves these pairs.
pub(super) fn register(garden: &Garden, name: &str, served: &[&str], deployment: Value) {
    let spec = json!({ "resources": pairs(served, &json!({})), "deployment": deployment });
    garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", name, json!({ "spec": spec })));
}

pub(super) fn seed(name: &str, spec: Value) -> Value {
    let mut seed = object(&kinds::SEED, "", name, json!({ "spec": spec }));
    seed["metadata"]["labels"] = json!({ "env": "a" });
    seed["spec"]["provider"] = json!({ "type": "p" });
    seed
}

/// Puts the Seed `s1`, and the registration `rp` for its provider.
pub(super) fn put_seed(garden: &Garden, spec: Value) {
    register(garden, "rp", &PROVIDER, Value::Null);
    garden.put(seed("s1", spec));
}

/// Returns a Shoot without workers on a Seed.
pub(super) fn shoot(name: &str, on: &str, spec: Value) -> Value {
    let mut shoot = object(&kinds::SHOOT, "a", name, json!({ "spec": spec }));
    shoot["spec"]["seedName"] = on.into();
    shoot
}

pub(super) fn installations(garden: &Garden) -> Vec<Value> {
    garden.sim.objects("controllerinstallations.core.gardener.cloud")
}

fn of(installation: &Value, reference: &str) -> String {
    installation["spec"][reference]["name"].as_str().unwrap_or_default().to_owned()
}

/// Returns the registrations that are installed on a Seed. A registration that is installed twice counts twice.
pub(super) fn installed(garden: &Garden, seed: &str) -> Vec<String> {
    let all = installations(garden).into_iter().filter(|it| of(it, "seedRef") == seed);
    let mut names: Vec<_> = all.map(|it| of(&it, "registrationRef")).collect();
    names.sort();
    names
}

/// Waits until exactly these registrations are installed on a Seed, and stay so.
pub(super) async fn installs(garden: &Garden, seed: &str, expected: &[&str]) {
    garden.soon(&format!("{expected:?} on {seed}"), || installed(garden, seed) == expected).await;
    garden.settle().await;
    assert_eq!(installed(garden, seed), expected, "{seed}");
}

/// Returns the installation of a registration on a Seed.
pub(super) fn installation(garden: &Garden, registration: &str, seed: &str) -> Value {
    let is_meant = |it: &Value| of(it, "registrationRef") == registration && of(it, "seedRef") == seed;
    installations(garden).into_iter().find(is_meant).unwrap_or_default()
}

/// Returns the version of the Seed to which an installation refers.
pub(super) fn referred_seed_version(installation: &Value) -> u64 {
    let version = installation["spec"]["seedRef"]["resourceVersion"].as_str();
    version.and_then(|version| version.parse().ok()).expect("it refers to a version of a Seed")
}

/// gardenlet reports whether an installation is required.
pub(super) fn require(garden: &Garden, installation: &Value, status: Value) {
    let conditions = if status.is_null() { json!([]) } else { json!([{ "type": "Required", "status": status }]) };
    garden.edit(&kinds::CONTROLLER_INSTALLATION, "", fields::name(installation), |it| {
        it["status"]["conditions"] = conditions;
    });
}

fn bucket(name: &str, of_type: &str, seed: &str) -> Value {
    let spec = json!({ "provider": { "type": of_type }, "seedName": seed });
    object(&kinds::BACKUP_BUCKET, "", name, json!({ "spec": spec }))
}

fn entry(name: &str, bucket: &str, seed: &str) -> Value {
    object(&kinds::BACKUP_ENTRY, "a", name, json!({ "spec": { "bucketName": bucket, "seedName": seed } }))
}

/// spec 85 scenarios 1 and 2, trap T-15
#[test]
fn installation_is_created_once_and_rests() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        let seed_version = || -> u64 {
            let seed = garden.find(&kinds::SEED, "", "s1").expect("it exists");
            fields::resource_version(&seed).parse().expect("a number")
        };
        let first_version = seed_version();
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;

        let installation = installation(&garden, "rp", "s1");
        let registration = garden.find(&kinds::CONTROLLER_REGISTRATION, "", "rp").expect("it exists");
        assert!(fields::name(&installation).starts_with("rp-"), "{installation}");
        // The version at its creation. Later writes of other controllers to the status of the Seed do not count.
        let version = referred_seed_version(&installation);
        assert!((first_version..=seed_version()).contains(&version), "{installation}");
        assert_eq!(
            installation["spec"],
            json!({
                "registrationRef": { "name": "rp", "resourceVersion": fields::resource_version(&registration) },
                "seedRef": { "name": "s1", "resourceVersion": version.to_string() },
            })
        );
        let labels = installation["metadata"]["labels"].as_object().expect("it has labels");
        assert_eq!(labels.keys().collect::<Vec<_>>(), ["registration-spec-hash", "seed-spec-hash"]);
        tokio::time::sleep(std::time::Duration::from_secs(600)).await;
        assert_eq!(garden.asked_for("controllerinstallations"), Vec::<String>::new(), "nothing at rest");
    });
}

/// spec 85 scenarios 3 and 4, DEV-3, decision 27
#[test]
fn installations_of_a_seed_with_an_unknown_need_are_made_and_not_deleted() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            register(&garden, "ra", &[], json!({ "policy": "Always" }));
            register(&garden, "rb", &["BackupBucket/x"], Value::Null);
            garden.put(bucket("b", "x", "s1"));
            garden.put(seed("s1", json!({})));
            garden.settled().await;
            installs(&garden, "s1", &["ra", "rb"]).await;

            garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
            installs(&garden, "s1", &["ra", "rb"]).await;
            register(&garden, "rp", &PROVIDER, Value::Null);
            installs(&garden, "s1", &["ra", "rp"]).await;
        });
    });
    let text =
        "need to install an extension controller for \\\"Worker/p\\\" but no appropriate ControllerRegistration found";
    assert!(log.contains(text) || log.contains(&text.replace('\\', "")), "{log}");
}

/// spec 85 A.3.2 DEV-23: a Shoot with more needs than are counted.
#[test]
fn installations_of_a_seed_stay_while_not_all_needs_of_a_shoot_are_known() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            register(&garden, "rb", &["BackupBucket/x"], Value::Null);
            let types: Vec<String> = (0..1100).map(|number| format!("e{number}")).collect();
            let served: Vec<String> = types.iter().map(|it| format!("Extension/{it}")).collect();
            register(&garden, "re", &served.iter().map(String::as_str).collect::<Vec<_>>(), Value::Null);
            let extensions: Vec<_> = types.iter().map(|it| json!({ "type": it })).collect();
            garden.put(shoot("sh", "s1", json!({ "extensions": extensions })));
            garden.put(bucket("b", "x", "s1"));
            put_seed(&garden, json!({}));
            garden.settled().await;
            installs(&garden, "s1", &["rb", "re", "rp"]).await;

            garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
            installs(&garden, "s1", &["rb", "re", "rp"]).await;
            garden.edit(&kinds::SHOOT, "a", "sh", |shoot| shoot["spec"]["extensions"] = json!([]));
            installs(&garden, "s1", &["rp"]).await;
        });
    });
    assert!(log.contains("needs or disables more than 1000 extensions"), "{log}");
}

/// spec 85 A.4 DEV-3: one unknown type must not hold a registration in deletion for ever.
#[test]
fn installation_of_a_registration_in_deletion_goes_beside_an_unknown_need() {
    garden(|garden| async move {
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        garden.put(seed("s1", json!({})));
        garden.settled().await;
        installs(&garden, "s1", &["ra"]).await;

        garden.delete(&kinds::CONTROLLER_REGISTRATION, "", "ra").await;

        garden.gone(&kinds::CONTROLLER_REGISTRATION, "", "ra").await;
        assert_eq!(installed(&garden, "s1"), [""; 0]);
    });
}

/// spec 85 scenarios 5 and 6
#[test]
fn installation_for_a_backup_bucket_goes_with_it_unless_it_is_required() {
    for is_required in [false, true] {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            register(&garden, "rb", &["BackupBucket/x"], Value::Null);
            garden.settled().await;
            installs(&garden, "s1", &["rp"]).await;
            garden.put(bucket("b", "x", "s1"));
            installs(&garden, "s1", &["rb", "rp"]).await;
            if is_required {
                require(&garden, &installation(&garden, "rb", "s1"), json!("True"));
            }
            garden.settle().await;
            garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
            if is_required {
                installs(&garden, "s1", &["rb", "rp"]).await;
                require(&garden, &installation(&garden, "rb", "s1"), Value::Null);
            }
            installs(&garden, "s1", &["rp"]).await;
        });
    }
}

/// spec 85 scenarios 7 and 8, trap T-5: also if the bucket comes later.
#[test]
fn installation_for_a_backup_entry_has_the_type_of_its_bucket() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            register(&garden, "re", &["BackupEntry/y"], Value::Null);
            register(&garden, "rb", &["BackupBucket/y"], Value::Null);
            garden.put(entry("lost", "none", "s1"));
            garden.put(entry("e", "b", "s1"));
            garden.settled().await;
            installs(&garden, "s1", &["rp"]).await;

            garden.put(bucket("b", "y", "s2"));
            installs(&garden, "s1", &["re", "rp"]).await;
            garden.delete(&kinds::BACKUP_ENTRY, "a", "e").await;
            installs(&garden, "s1", &["rp"]).await;
        });
    });
    assert!(log.contains("Couldn't find referenced BackupBucket for BackupEntry"), "{log}");
}

/// spec 85 scenarios 9 and 10
#[test]
fn installation_serves_all_that_a_shoot_needs() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        let all = ["OperatingSystemConfig/os1", "ContainerRuntime/cr1", "Network/n1", "Extension/e1", "DNSRecord/d1"];
        register(&garden, "rs", &all, Value::Null);
        register(&garden, "rd", &["DNSRecord/unmanaged", "DNSRecord/d2"], Value::Null);
        let pool =
            json!({ "machine": { "image": { "name": "os1" } }, "cri": { "containerRuntimes": [{ "type": "cr1" }] } });
        let spec = json!({
            "provider": { "type": "p", "workers": [pool] }, "networking": { "type": "n1" },
            "extensions": [{ "type": "e1" }],
            "dns": { "domain": "x.y", "providers": [
                { "type": "d1", "primary": true }, { "type": "d2" }, { "type": "unmanaged", "primary": true },
            ] },
        });
        garden.settled().await;
        garden.put(shoot("sh", "s1", spec));
        installs(&garden, "s1", &["rp", "rs"]).await;

        garden.delete(&kinds::SHOOT, "a", "sh").await;
        installs(&garden, "s1", &["rp"]).await;
    });
}

/// spec 85 scenarios 11 to 13
#[test]
fn installations_of_extensions_that_are_enabled_by_default_follow_shoots_and_seeds() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        for (name, more) in [
            ("w", json!({ "autoEnable": ["shoot"] })),
            ("l", json!({ "autoEnable": ["shoot"], "workerlessSupported": true })),
            ("s", json!({ "autoEnable": ["seed"] })),
        ] {
            let spec = json!({ "resources": pairs(&[&format!("Extension/{name}")], &more) });
            garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", name, json!({ "spec": spec })));
        }
        register(&garden, "e1", &["Extension/e1"], Value::Null);
        garden.settled().await;
        installs(&garden, "s1", &["rp", "s"]).await;

        garden.put(shoot("workerless", "s1", json!({ "extensions": [{ "type": "e1" }] })));
        installs(&garden, "s1", &["e1", "l", "rp", "s"]).await;
        let workers = json!({ "provider": { "type": "p", "workers": [{}] } });
        let mut disabling = workers.clone();
        disabling["extensions"] = json!([{ "type": "w", "disabled": true }]);
        garden.put(shoot("disabling", "s1", disabling));
        installs(&garden, "s1", &["e1", "l", "rp", "s"]).await;
        garden.put(shoot("workers", "s1", workers));
        installs(&garden, "s1", &["e1", "l", "rp", "s", "w"]).await;
        garden.edit(&kinds::SEED, "", "s1", |seed| {
            seed["spec"]["extensions"] = json!([{ "type": "s", "disabled": true }])
        });
        installs(&garden, "s1", &["e1", "l", "rp", "w"]).await;
    });
}

/// spec 85 scenarios 14 to 16
#[test]
fn installations_for_backups_and_domains_of_a_seed_follow_its_shoots() {
    garden(|garden| async move {
        let domain = |of_type: &str, domain: &str| json!({ "type": of_type, "domain": domain });
        put_seed(
            &garden,
            json!({ "backup": { "provider": "b" }, "dns": {
                "internal": domain("i", "int.ex.com"), "defaults": [domain("t", "ex.com")],
            } }),
        );
        register(&garden, "rb", &["BackupBucket/b", "BackupEntry/b"], Value::Null);
        register(&garden, "ri", &["DNSRecord/i"], Value::Null);
        register(&garden, "rt", &["DNSRecord/t"], Value::Null);
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;

        garden.put(shoot("sh", "s1", json!({ "dns": { "domain": "aex.com" } })));
        installs(&garden, "s1", &["rb", "ri", "rp"]).await;
        garden.edit(&kinds::SHOOT, "a", "sh", |shoot| shoot["spec"]["dns"]["domain"] = json!("a.ex.com"));
        installs(&garden, "s1", &["rb", "ri", "rp", "rt"]).await;
        garden.edit(&kinds::SHOOT, "a", "sh", |shoot| shoot["spec"]["dns"]["domain"] = json!("ex.com"));
        installs(&garden, "s1", &["rb", "ri", "rp"]).await;
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["spec"]["dns"]["internal"]["type"] = json!("unmanaged"));
        installs(&garden, "s1", &["rb", "rp"]).await;
    });
}

fn domain_secret(name: &str, role: &str, provider: &str, priority: &str) -> Value {
    let mut secret = object(&kinds::SECRET, "garden", name, json!({}));
    secret["metadata"]["labels"] = json!({ ROLE: role });
    secret["metadata"]["annotations"] = json!({
        "dns.gardener.cloud/domain": "ex.com", "dns.gardener.cloud/provider": provider,
        "dns.gardener.cloud/domain-default-priority": priority,
    });
    secret
}

/// spec 85 scenarios 17 and 19: also Secrets that come later.
#[test]
fn installations_for_domains_follow_the_secrets_of_the_seed() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        for name in ["i2", "t1", "t10"] {
            register(&garden, name, &[&format!("DNSRecord/{name}")], Value::Null);
        }
        garden.settled().await;
        garden.put(shoot("sh", "s1", json!({ "dns": { "domain": "a.ex.com" } })));
        installs(&garden, "s1", &["rp"]).await;

        garden.put(domain_secret("i", "internal-domain", "i2", "0"));
        garden.put(domain_secret("a", "default-domain", "t1", "1"));
        installs(&garden, "s1", &["i2", "rp", "t1"]).await;
        garden.put(domain_secret("b", "default-domain", "t10", "10"));
        installs(&garden, "s1", &["i2", "rp", "t10"]).await;
    });
}

/// spec 85 scenario 18
#[test]
fn installations_are_not_deleted_while_the_internal_domain_is_unclear() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_seed(&garden, json!({}));
            register(&garden, "ri", &["DNSRecord/i"], Value::Null);
            register(&garden, "rb", &["BackupBucket/x"], Value::Null);
            garden.put(bucket("b", "x", "s1"));
            garden.put(domain_secret("i", "internal-domain", "i", "0"));
            garden.put(shoot("sh", "s1", json!({})));
            garden.settled().await;
            installs(&garden, "s1", &["rb", "ri", "rp"]).await;

            garden.put(domain_secret("j", "internal-domain", "i", "0"));
            garden.settle().await;
            garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
            installs(&garden, "s1", &["rb", "ri", "rp"]).await;
            garden.delete(&kinds::SECRET, "garden", "j").await;
            installs(&garden, "s1", &["ri", "rp"]).await;
        });
    });
    assert!(log.contains("found more than one internal domain secret"), "{log}");
}

/// spec 85 scenario 20, DEV-1
#[test]
fn installations_need_no_credentials_of_domains() {
    garden(|garden| async move {
        let internal = json!({ "type": "i", "domain": "x.y", "credentialsRef": { "kind": "Secret", "name": "none" } });
        put_seed(&garden, json!({ "dns": { "internal": internal } }));
        register(&garden, "ri", &["DNSRecord/i"], Value::Null);
        garden.put(shoot("sh", "s1", json!({})));
        garden.settled().await;

        installs(&garden, "s1", &["ri", "rp"]).await;
    });
}

/// spec 85 scenario 21
#[test]
fn installations_by_policy_last_as_long_as_the_seed_or_its_shoots() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        register(&garden, "ra", &[], json!({ "policy": "Always" }));
        register(&garden, "rn", &[], json!({ "policy": "AlwaysExceptNoShoots" }));
        register(&garden, "rb", &["BackupBucket/x"], Value::Null);
        garden.put(bucket("b", "x", "s1"));
        garden.settled().await;
        installs(&garden, "s1", &["ra", "rb", "rp"]).await;

        let mut migrating = shoot("sh", "other", json!({}));
        migrating["status"] = json!({ "seedName": "s1" });
        garden.put(migrating);
        installs(&garden, "s1", &["ra", "rb", "rn", "rp"]).await;
        garden.delete(&kinds::SHOOT, "a", "sh").await;
        installs(&garden, "s1", &["ra", "rb", "rp"]).await;
        garden.delete(&kinds::SEED, "", "s1").await;
        installs(&garden, "s1", &["rb"]).await;
        garden.delete(&kinds::BACKUP_BUCKET, "", "b").await;
        garden.gone(&kinds::SEED, "", "s1").await;
    });
}

/// spec 85 scenario 22: the selector beats all other rules.
#[test]
fn installation_follows_the_seed_selector() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        let selector = json!({ "policy": "Always", "seedSelector": { "matchLabels": { "env": "b" } } });
        register(&garden, "ra", &[], selector);
        garden.settled().await;
        installs(&garden, "s1", &["rp"]).await;

        garden.edit(&kinds::SEED, "", "s1", |seed| seed["metadata"]["labels"]["env"] = json!("b"));
        installs(&garden, "s1", &["ra", "rp"]).await;
        require(&garden, &installation(&garden, "ra", "s1"), json!("True"));
        garden.settle().await;
        garden.edit(&kinds::SEED, "", "s1", |seed| seed["metadata"]["labels"] = json!({}));
        installs(&garden, "s1", &["rp"]).await;
    });
}

/// spec 85 scenario 23, trap T-6
#[test]
fn installations_for_a_moving_shoot_are_on_both_seeds() {
    garden(|garden| async move {
        put_seed(&garden, json!({}));
        garden.put(seed("s2", json!({})));
        register(&garden, "re", &["Extension/e"], Value::Null);
        let mut moving = shoot("sh", "s2", json!({ "extensions": [{ "type": "e" }] }));
        moving["status"] = json!({ "seedName": "s1" });
        garden.put(moving);
        garden.settled().await;
        installs(&garden, "s1", &["re", "rp"]).await;
        installs(&garden, "s2", &["re", "rp"]).await;

        garden.edit(&kinds::SHOOT, "a", "sh", |shoot| shoot["status"]["seedName"] = json!("s2"));
        installs(&garden, "s1", &["rp"]).await;
        installs(&garden, "s2", &["re", "rp"]).await;
    });
}

/// spec 85 scenario 34, trap T-9
#[test]
fn installations_of_a_seed_in_deletion_are_those_of_its_shoots() {
    garden(|garden| async move {
        register(&garden, "rc", &["ControlPlane/p"], Value::Null);
        register(&garden, "ri", &["Infrastructure/p", "Worker/p"], Value::Null);
        register(&garden, "rd", &["DNSRecord/d"], Value::Null);
        register(&garden, "re", &["Extension/e"], Value::Null);
        garden.put(seed("s1", json!({ "dns": { "provider": { "type": "d" } } })));
        garden.put(shoot("sh", "s1", json!({ "extensions": [{ "type": "e" }] })));
        garden.settled().await;
        installs(&garden, "s1", &["rc", "rd", "re", "ri"]).await;

        garden.delete(&kinds::SEED, "", "s1").await;
        installs(&garden, "s1", &["rc", "re"]).await;
        garden.delete(&kinds::SHOOT, "a", "sh").await;
        garden.gone(&kinds::SEED, "", "s1").await;
    });
}
