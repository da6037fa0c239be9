use cluster::object::NamespacedName;

use super::*;
use crate::{
    cli::PoliciesFormat,
    commands::{
        DIFFERENT, OK,
        policies::{Shown, from_files, meant, rules, show},
    },
};

const OFFLINE: Shown = Shown { format: None, compared: false };
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata:
  namespace: ns
  name: web
  annotations:
    networking.resources.gardener.cloud/from-world-to-ports: '[{\"port\":8080,\"protocol\":\"TCP\"}]'
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
";

fn said(texts: &[&str], service: Option<&str>) -> Said {
    let sources: Vec<Source> = texts.iter().map(|text| source("a.yaml", text)).collect();
    let (snapshot, remarks) = from_files(&sources, &rules(None).unwrap(), None).unwrap();
    let mut said = show(&snapshot, &meant(&snapshot, service, None), &rules(None).unwrap(), OFFLINE);
    said.remarks.extend(remarks);
    said
}

fn names(said: &Said) -> Vec<Vec<&str>> {
    let rows = said.out.lines().filter(|line| !line.starts_with(' '));
    rows.map(|line| line.split_whitespace().collect()).collect()
}

/// spec 40 §7.5 A and W
#[test]
fn policies_of_a_file_are_shown_with_their_reasons() {
    let said = said(&[SERVICE], None);

    assert_eq!(
        names(&said),
        [
            ["WAY", "NAMESPACE", "NAME"],
            ["out", "ns", "egress-to-web-tcp-8080"],
            ["in", "ns", "ingress-to-web-from-world"],
            ["in", "ns", "ingress-to-web-tcp-8080"],
        ]
    );
    assert!(said.out.contains("     Allows ingress traffic from everywhere to ports [TCP/8080]"), "{}", said.out);
    assert_eq!(said.code, OK);
    let assumed = "warning: not among the files: namespace ns — assumed to exist without labels of its own";
    assert_eq!(said.remarks, [assumed]);
}

#[test]
fn policies_print_rows_with_their_policies_as_json() {
    let rules = rules(None).unwrap();
    let (snapshot, _) = from_files(&[source("a.yaml", SERVICE)], &rules, None).unwrap();
    let json = Shown { format: Some(PoliciesFormat::Json), compared: false };

    let said = show(&snapshot, &meant(&snapshot, None, None), &rules, json);

    let rows: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((rows[0]["service"].as_str(), rows[0]["way"].as_str()), (Some("ns/web"), Some("out")));
    assert_eq!(rows[0]["policy"]["metadata"]["name"], rows[0]["name"]);
    assert!(rows[0]["state"].is_null(), "{rows}");
}

#[test]
fn policies_name_an_annotation_that_cannot_be_read() {
    let said = said(&[&SERVICE.replace("'[{", "'{[")], Some("ns/web"));

    assert_eq!(said.code, DIFFERENT);
    let text =
        "warning: ns/web: annotation networking.resources.gardener.cloud/from-world-to-ports: failed unmarshalling ";
    assert!(said.remarks.iter().any(|remark| remark.starts_with(text)), "{:?}", said.remarks);
}

#[test]
fn policies_missing_for_a_service_are_explained() {
    let said = said(&[&SERVICE.replace("  selector: {app: web}\n", "")], None);

    assert_eq!((said.out.as_str(), said.code), ("", OK));
    assert!(said.remarks.contains(&"ns/web: no policies: it has no selector, so it selects no pods".to_owned()));
}

#[test]
fn policies_select_a_service_by_name_with_or_without_a_namespace() {
    let other = SERVICE.replace("namespace: ns", "namespace: other");
    let sources = [source("a.yaml", SERVICE), source("b.yaml", &other)];
    let (snapshot, _) = from_files(&sources, &rules(None).unwrap(), None).unwrap();
    let table = [
        (None, None, "ns/web other/web"),
        (Some("web"), None, "ns/web other/web"),
        (Some("web"), Some("ns"), "ns/web"),
        (Some("other/web"), Some("ns"), "other/web"),
        (Some("db"), None, ""),
    ];

    for (service, namespace, expected) in table {
        let found: Vec<String> = meant(&snapshot, service, namespace).iter().map(NamespacedName::to_string).collect();
        assert_eq!(found.join(" "), expected, "{service:?} {namespace:?}");
    }
}

/// spec 40 §7.11
#[test]
fn policies_report_a_name_that_another_service_uses() {
    let other = "apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  namespace: ns
  name: NAME
  labels: {networking.resources.gardener.cloud/service-name: OWNER, networking.resources.gardener.cloud/service-namespace: ns}
spec: {podSelector: {}}
";
    let policy = |name: &str, owner: &str| other.replace("NAME", name).replace("OWNER", owner);
    let all = Shown { format: None, compared: true };
    let shown = |policies: &[String]| {
        let texts = std::iter::once(SERVICE).chain(policies.iter().map(String::as_str));
        let sources: Vec<Source> = texts.map(|text| source("a.yaml", text)).collect();
        let rules = rules(None).unwrap();
        let (snapshot, _) = from_files(&sources, &rules, None).unwrap();
        show(&snapshot, &meant(&snapshot, None, None), &rules, all).out
    };
    let name = "ingress-to-web-tcp-8080";
    let taken = shown(&[policy(name, "other")]);
    assert!(taken.contains("taken     in   ns         ingress-to-web-tcp-8080\n"), "{taken}");
    assert!(
        taken.contains("(Service ns/other uses this name. While it does, the name of this policy ends with a hash.)")
    );

    let evading =
        crate::actors::resource_manager::network_policy::name::evading(name, &NamespacedName::new("ns", "web"));
    let both = shown(&[policy(name, "other"), policy(&evading, "web")]);
    assert!(both.contains(&format!("differs   in   ns         {evading}\n")) && !both.contains("obsolete"), "{both}");
}

#[test]
fn policies_give_objects_without_a_namespace_the_given_one() {
    let sources = [source("a.yaml", &SERVICE.replace("  namespace: ns\n", ""))];
    for (given, expected) in [(Some("ns"), "ns/web"), (None, "default/web")] {
        let (snapshot, _) = from_files(&sources, &rules(None).unwrap(), given).unwrap();
        let names: Vec<String> = snapshot.services().map(ToString::to_string).collect();
        assert_eq!(names, [expected]);
    }
}

#[test]
fn policies_refuse_a_configuration_without_the_controller() {
    let text = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1
kind: ResourceManagerConfiguration
leaderElection: {leaderElect: false}
";
    let error = rules(Some(&source("config.yaml", text))).unwrap_err();

    let expected = "config.yaml: controllers.networkPolicy.enabled is not true — no policies are written";
    assert_eq!(error.to_string(), expected);
}

#[cfg(feature = "sim")]
mod in_a_cluster {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        api::resources::side::Side,
        commands::{connect::read_only, policies::gather},
    };

    async fn compared(sim: &Sim, clock: Clock) -> Said {
        let (rules, name) = (rules(None).unwrap(), NamespacedName::new("ns", "web"));
        let cluster = read_only(sim.client(), Side::Target, clock, Random::seeded(1));
        let snapshot = gather(&cluster, &name, &rules).await.unwrap().expect("the Service is there");
        show(&snapshot, &[name], &rules, Shown { format: None, compared: true })
    }

    fn put_yaml(sim: &Sim, text: &str) {
        sim.put(serde_saphyr::from_str::<Value>(text).unwrap()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn policies_are_compared_and_nothing_is_written() {
        let (sim, clock) = cluster_and_clock();
        put_yaml(&sim, SERVICE);
        let yaml = Shown { format: Some(PoliciesFormat::Yaml), compared: false };
        let (snapshot, _) = from_files(&[source("a.yaml", SERVICE)], &rules(None).unwrap(), None).unwrap();
        let wanted = show(&snapshot, &meant(&snapshot, None, None), &rules(None).unwrap(), yaml).out;
        for document in wanted.split("---\n").filter(|document| document.contains("from-world")) {
            put_yaml(&sim, document);
        }
        let labels = json!({
            "networking.resources.gardener.cloud/service-name": "web",
            "networking.resources.gardener.cloud/service-namespace": "ns",
        });
        let policy = |name: &str, labels: &Value| {
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "spec": { "podSelector": {} },
                "metadata": { "namespace": "ns", "name": name, "labels": labels },
            })
        };
        sim.put(policy("ingress-to-web-tcp-9090", &labels)).unwrap();
        sim.put(policy("ingress-to-web-tcp-8080", &json!({}))).unwrap();
        sim.clear_requests();

        let said = compared(&sim, clock).await;

        assert_eq!(
            names(&said),
            [
                vec!["STATE", "WAY", "NAMESPACE", "NAME"],
                vec!["missing", "out", "ns", "egress-to-web-tcp-8080"],
                vec!["right", "in", "ns", "ingress-to-web-from-world"],
                vec!["differs", "in", "ns", "ingress-to-web-tcp-8080"],
                vec!["obsolete", "ns", "ingress-to-web-tcp-9090"],
            ]
        );
        assert_eq!(said.code, DIFFERENT);
        assert!(sim.requests().iter().all(|request| ["list", "get"].contains(&request.info.verb.as_str())));
    }

    #[tokio::test(start_paused = true)]
    async fn policies_of_a_missing_service_are_none() {
        let (sim, clock) = cluster_and_clock();
        let cluster = read_only(sim.client(), Side::Target, clock, Random::seeded(1));

        let found = gather(&cluster, &NamespacedName::new("ns", "web"), &rules(None).unwrap()).await.unwrap();

        assert!(found.is_none());
    }
}
