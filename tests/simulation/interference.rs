//! Autoscalers and other controllers, a second leader for a moment, and bad data from users interfere with the program.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Fault, RequestInfo};

use crate::world::{NAMESPACE, World, brief, config, config_map, world};

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn is_read(info: &RequestInfo) -> bool {
    matches!(info.verb.as_str(), "get" | "list" | "watch")
}

fn all_writes(world: &World) -> Vec<String> {
    let requests = world.sim.requests();
    let ours = requests.iter().filter(|request| request.info.user.starts_with("grm") && !is_read(&request.info));
    ours.map(|request| format!("{}: {}", request.info.user, brief(request))).collect()
}

fn deployment() -> Value {
    let template = json!({
        "metadata": { "labels": { "a": "b" } },
        "spec": { "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1" } } }] }
    });
    let selector = json!({ "matchLabels": { "a": "b" } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": NAMESPACE, "name": "web",
            "annotations": { "resources.gardener.cloud/preserve-resources": "true" }
        },
        "spec": { "replicas": 1, "selector": selector, "template": template }
    })
}

fn autoscaler() -> Value {
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": { "namespace": NAMESPACE, "name": "web" },
        "spec": { "minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": target }
    })
}

/// faults row 24
#[test]
fn fields_of_other_controllers_are_not_written_back() {
    world(1, |world| async move {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": NAMESPACE, "name": "web" },
            "spec": { "type": "LoadBalancer", "selector": { "a": "b" }, "ports": [{ "port": 80 }] }
        });
        world.start().await;
        world.bundle("one", &[deployment(), autoscaler(), service]);
        world.applied("one").await;
        seconds(120).await;
        world.sim.clear_requests();
        for replicas in 2..6 {
            world.sim.edit("deployments.apps", NAMESPACE, "web", |live| {
                live["spec"]["replicas"] = json!(replicas);
                let container = &mut live["spec"]["template"]["spec"]["containers"][0];
                container["resources"]["requests"]["cpu"] = json!(format!("{replicas}00m"));
                live["status"] = json!({ "replicas": replicas });
            });
            world.sim.edit("services", NAMESPACE, "web", |live| {
                live["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "10.0.0.1" }] } });
                live["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
            });
            seconds(150).await;
        }

        // The Service is healthy with its address. The next unhealthy object is another reason.
        assert_eq!(world.writes(), ["update managedresources/status one", "create events"]);
        let live = world.sim.object("deployments.apps", NAMESPACE, "web").unwrap();
        assert_eq!(live["spec"]["replicas"], 5);
        world.sim.clear_requests();
        // Each restart compares everything again.
        world.stop().await;
        world.start().await;
        seconds(120).await;
        assert_eq!(world.writes(), [""; 0]);
    });
}

/// faults row 16: preconditions catch what two leaders do at once.
#[test]
fn leader_election_overlap_loses_and_leaks_nothing() {
    world(1, |world| async move {
        let kept = |name: &str| config_map(name, "v");
        world.start().await;
        world.bundle("one", &[kept("a"), kept("b"), kept("c")]);
        world.bundle("two", &[kept("x")]);
        world.applied("one").await;
        world.applied("two").await;
        let uid = |name: &str| world.config_map(name).unwrap()["metadata"]["uid"].clone();
        let before = uid("a");
        world.start_as("grm-2", config()).await;
        for round in 0..20 {
            // `x` moves between the two, `a` stays.
            let value = format!("w{round}");
            let mut released = config_map("x", &value);
            released["metadata"]["annotations"] = json!({ "resources.gardener.cloud/mode": "Ignore" });
            let (mut with, without) = (vec![config_map("x", &value)], vec![released]);
            with.push(config_map(&format!("of-{round}"), &value));
            let (mut one, two) = if round % 2 == 0 { (with, without) } else { (without, with) };
            one.push(config_map("a", &value));
            world.secret("one", &one);
            world.secret("two", &two);
            seconds(round % 5).await;
        }
        world.secret("one", &[config_map("a", "end")]);
        world.secret("two", &[config_map("x", "end")]);
        seconds(10).await;
        world.depose("grm");
        let writes = all_writes(&world).into_iter().filter(|write| write.starts_with("grm: ")).count();
        seconds(200).await;

        let after = all_writes(&world).into_iter().filter(|write| write.starts_with("grm: ")).count();
        assert_eq!(after, writes, "no write without the lease");
        assert_eq!(uid("a"), before, "it was wanted all the time");
        assert_eq!((world.refs("one"), world.refs("two")), (vec!["a".to_owned()], vec!["x".to_owned()]));
        let names: Vec<_> = world.sim.look_at_all("configmaps", |object| object["metadata"]["name"].clone());
        assert_eq!(names, ["a", "x"]);
        world.sim.clear_requests();
        seconds(200).await;
        assert_eq!(all_writes(&world), [""; 0]);
    });
}

/// faults row 20
#[test]
fn unreadable_data_is_reported_and_prunes_nothing() {
    let laughs: String = (1..12)
        .map(|level| format!("l{level}: &l{level} [{}]\n", vec![format!("*l{}", level - 1); 10].join(",")))
        .collect();
    let laughs = format!("l0: &l0 aaaaaaaaaaaaaaaa\n{laughs}");
    let deep = format!("a: {}", "[".repeat(100_000));
    let good = config_map("a", "w").to_string();
    let table: [(&str, &str, Vec<u8>); 8] = [
        ("no YAML", "objects.yaml", b"a: [1\n---\n: : :".to_vec()),
        ("truncated JSON", "objects.yaml", good.as_bytes()[..good.len() / 2].to_vec()),
        ("garbage behind good objects", "objects.yaml", format!("{good}{good}{{{{").into_bytes()),
        ("corrupt Brotli", "objects.yaml.br", vec![0xff, 0x13, 0x37, 0x42]),
        ("truncated Brotli", "objects.yaml.br", vec![0x8b, 0x0f, 0x80]),
        ("empty Brotli", "objects.yaml.br", vec![]),
        ("aliases of aliases", "objects.yaml", laughs.into_bytes()),
        ("deep nesting", "objects.yaml", deep.into_bytes()),
    ];
    for (what, key, data) in table {
        world(1, |world| async move {
            world.start().await;
            world.bundle("one", &[config_map("a", "v"), config_map("b", "v")]);
            world.applied("one").await;
            seconds(5).await;
            let uid = |name: &str| world.config_map(name).map(|live| live["metadata"]["uid"].clone());
            let before = ["a", "b"].map(uid);
            world.sim.clear_requests();
            world.secret_data("one", &[(key, &data)]);
            seconds(180).await;

            assert_eq!(["a", "b"].map(uid), before, "{what}");
            let (_, reason, message) = world.condition("one", "ResourcesApplied").unwrap();
            assert_eq!(reason, "DecodingFailed", "{what}: {message}");
            assert!(message.len() < 10_000, "{what}: {} bytes of message", message.len());
            let asked = world.requests().len();
            assert!(asked < 40, "{what}: {asked} requests in three minutes");
            world.secret("one", &[config_map("b", "w")]);
            world.eventually("it is rolled out", || world.is_applied("one") && world.refs("one") == ["b"]).await;
        });
    }
}

/// faults row 20: empty data is no error, and both manifests of one object are applied.
#[test]
fn empty_data_prunes_all_objects_and_duplicate_manifests_keep_one() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v"), config_map("a", "w")]);
        world.applied("one").await;
        assert_eq!(world.refs("one"), ["a", "a"]);
        assert!(world.value("a").is_some());
        world.secret_data("one", &[("objects.yaml", b"# nothing\n---\n")]);
        world.eventually("it is empty", || world.is_applied("one") && world.refs("one").is_empty()).await;

        assert_eq!(world.config_map("a"), None);
    });
}

/// faults row 21
#[test]
fn missing_secret_prunes_nothing() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "v")]);
        world.applied("one").await;
        // The Secret is deleted while it is read.
        let sim = world.sim.clone();
        world.sim.set_faults(move |info| {
            if info.user == "grm" && info.resource == "secrets" && info.verb == "get" {
                sim.remove("secrets", NAMESPACE, "one");
            }
            Fault::None
        });
        world.secret("one", &[config_map("b", "v")]);
        seconds(120).await;
        world.sim.clear_faults();
        assert_eq!((world.value("a").as_deref(), world.config_map("b")), (Some("v"), None));
        let (_, reason, _) = world.condition("one", "ResourcesApplied").unwrap();
        assert_eq!(reason, "CannotReadSecret");

        world.secret("one", &[config_map("b", "v")]);
        world.eventually("it is rolled out", || world.is_applied("one") && world.refs("one") == ["b"]).await;
        assert_eq!(world.config_map("a"), None);
    });
}

/// faults row 22: the last writer stays the owner until the other one's period is over.
#[test]
fn shared_object_stays_with_its_last_writer_for_a_period() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[config_map("a", "one")]);
        world.applied("one").await;
        world.bundle("two", &[config_map("a", "two")]);
        world.applied("two").await;
        let mut changes = 0;
        let mut last = world.value("a");
        for _ in 0..600 {
            seconds(1).await;
            let now = world.value("a");
            assert!(now.is_some(), "it is never deleted");
            changes += usize::from(now != last);
            last = now;
        }
        assert!(changes <= 2 * 10, "{changes} changes in ten minutes");
        let events = world.sim.objects("events");
        assert!(events.iter().any(|event| event["reason"] == "ConflictingOwner"), "{events:#?}");
        world.secret("two", &[]);
        seconds(70).await;
        assert_eq!(world.value("a").as_deref(), Some("one"));
    });
}
