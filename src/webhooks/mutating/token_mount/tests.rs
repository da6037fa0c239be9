use cluster::Status;

use super::*;
use crate::webhooks::{
    testing::{TestView, changes, failure, leaves, object, request},
    view::Lookup,
};

const SECONDS: i64 = 43200;

const POD: &str = "spec: {serviceAccountName: dns, containers: [{name: a}]}";

fn webhook() -> TokenMount {
    TokenMount(ProjectedTokenMount { expiration_seconds: SECONDS })
}

fn view() -> TestView {
    TestView::new().service_account("kube-system/dns", Some(false))
}

/// spec 50 §5.2, scenario 15
#[test]
fn token_is_mounted_into_containers_and_init_containers() {
    let view = view();

    changes(
        &webhook(),
        &view,
        "
metadata: {generateName: dns-, annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: '3600'}}
spec:
  serviceAccountName: dns
  initContainers: [{name: prep, image: r/prep}]
  containers:
  - name: dns
    image: r/dns
    volumeMounts: [{name: cfg, mountPath: /etc/dns}]
  volumes: [{name: cfg, configMap: {name: dns}}]
---
metadata: {generateName: dns-, annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: '3600'}}
spec:
  serviceAccountName: dns
  initContainers:
  - name: prep
    image: r/prep
    volumeMounts:
    - {name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  containers:
  - name: dns
    image: r/dns
    volumeMounts:
    - {name: cfg, mountPath: /etc/dns}
    - {name: kube-api-access-gardener, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true}
  volumes:
  - {name: cfg, configMap: {name: dns}}
  - name: kube-api-access-gardener
    projected:
      defaultMode: 420
      sources:
      - serviceAccountToken: {expirationSeconds: 3600, path: token}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI:
          items:
          - {path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}
",
    );
    assert_eq!(view.reads(), ["ServiceAccount kube-system/dns"]);
}

/// spec 50 scenarios 14 and 19
#[test]
fn token_volume_and_three_mounts_are_added_once() {
    let mut pod = object(
        "
spec:
  serviceAccountName: dns
  containers: [{name: a}, {name: b}]
  initContainers: [{name: c}]
  ephemeralContainers: [{name: d}]
",
    );
    let request = request(&webhook(), &pod);

    webhook().mutate(&mut pod, &request, &view()).unwrap();
    let once = pod.clone();
    webhook().mutate(&mut pod, &request, &view()).unwrap();

    let seconds = once.pointer("/spec/volumes/0/projected/sources/0/serviceAccountToken/expirationSeconds");
    assert_eq!(seconds, Some(&json!(SECONDS)));
    assert_eq!(once.to_string().matches(r#""mountPath""#).count(), 3);
    assert_eq!(once["spec"]["ephemeralContainers"], json!([{ "name": "d" }]));
    assert_eq!(pod, once);
}

/// spec 50 §5.1 rule 1, scenario 16
#[test]
fn default_service_account_is_not_read() {
    let view = view().service_account("kube-system/default", Some(false));

    for name in ["default", "''", "null"] {
        leaves(&webhook(), &view, &format!("spec: {{serviceAccountName: {name}, containers: [{{name: a}}]}}"));
    }
    leaves(&webhook(), &view, "{}");

    assert!(view.reads().is_empty());
}

/// spec 50 §5.1 rule 2, §5.3, scenario 17
#[test]
fn missing_service_account_denies_any_pod() {
    for pod in [
        "spec: {serviceAccountName: x}",
        "spec: {serviceAccountName: x, automountServiceAccountToken: false}",
        "spec: {serviceAccountName: x, volumes: [{name: kube-api-access-zzz}]}",
    ] {
        let Failure::Status(status) = failure(&webhook(), &view(), pod) else { panic!("no status for {pod}") };

        let expected = Status {
            code: 404,
            reason: "NotFound".into(),
            message: "ServiceAccount \"x\" not found".into(),
            name: "x".into(),
            kind: "ServiceAccount".into(),
            ..Status::default()
        };
        assert_eq!(*status, expected);
    }
}

/// spec 50 §5.1 rule 2, §2.7
#[test]
fn failed_read_and_request_for_a_live_read_are_passed_on() {
    let read = "ServiceAccount kube-system/dns";
    let look = Lookup::missing(&SERVICE_ACCOUNTS, NamespacedName::new("kube-system", "dns"));
    for expected in [Failure::Denied("the cache is not started".into()), Failure::ReadLive(look)] {
        let view = view().failing(read, expected.clone());

        assert_eq!(failure(&webhook(), &view, POD), expected);
    }
}

/// spec 50 §5.1 rules 3 to 5, scenario 18
#[test]
fn pod_with_a_token_or_an_opt_out_stays() {
    let view = view().service_account("kube-system/on", Some(true)).service_account("kube-system/unset", None);

    for spec in [
        "{serviceAccountName: on, containers: [{name: a}]}",
        "{serviceAccountName: unset, containers: [{name: a}]}",
        "{serviceAccountName: dns, containers: [{name: a}], automountServiceAccountToken: false}",
        "{serviceAccountName: dns, containers: [{name: a}], volumes: [{name: b}, {name: kube-api-access-zzz}]}",
        "{serviceAccountName: dns, containers: [{name: a}], volumes: [{name: kube-api-access-}]}",
    ] {
        leaves(&webhook(), &view, &format!("spec: {spec}"));
    }
    // The opt-outs come before the annotation is read.
    leaves(
        &webhook(),
        &view,
        "
metadata: {annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: 1h}}
spec: {serviceAccountName: on}
",
    );
}

/// spec 50 §5.1 rule 4
#[test]
fn pod_that_opts_in_and_has_no_token_gets_it() {
    let mut pod = object(
        "spec: {serviceAccountName: dns, automountServiceAccountToken: true, volumes: [{name: xkube-api-access-}]}",
    );
    let request = request(&webhook(), &pod);

    webhook().mutate(&mut pod, &request, &view()).unwrap();

    assert_eq!(pod.pointer("/spec/volumes/1/name"), Some(&json!(VOLUME)));
}

/// spec 50 §5.1 rule 6, scenario 15
#[test]
fn expiration_annotation_is_parsed_as_go_does() {
    let syntax = |text: &str| Err(format!("strconv.ParseInt: parsing {text}: invalid syntax"));
    let range = |text: &str| Err(format!("strconv.ParseInt: parsing {text}: value out of range"));

    for (text, expected) in [
        ("3600", Ok(3600)),
        ("+007", Ok(7)),
        ("-5", Ok(-5)),
        ("0", Ok(0)),
        ("9223372036854775807", Ok(i64::MAX)),
        ("-9223372036854775808", Ok(i64::MIN)),
        ("9223372036854775808", range("\"9223372036854775808\"")),
        ("-9223372036854775809", range("\"-9223372036854775809\"")),
        ("99999999999999999999", range("\"99999999999999999999\"")),
        ("99999999999999999999h", range("\"99999999999999999999h\"")),
        ("9999999999999999999h", syntax("\"9999999999999999999h\"")),
        ("1h", syntax("\"1h\"")),
        ("", syntax("\"\"")),
        ("+", syntax("\"+\"")),
        ("-", syntax("\"-\"")),
        ("+-1", syntax("\"+-1\"")),
        ("++1", syntax("\"++1\"")),
        (" 1", syntax("\" 1\"")),
        ("1_000", syntax("\"1_000\"")),
        ("0x10", syntax("\"0x10\"")),
        ("1.0", syntax("\"1.0\"")),
        ("\u{661}", syntax("\"\u{661}\"")),
        ("1\"\n", syntax("\"1\\\"\\n\"")),
    ] {
        let pod = json!({ "metadata": { "annotations": { EXPIRATION_SECONDS: text } } });

        assert_eq!(webhook().expiration_seconds(&pod), expected.map_err(Failure::Denied), "{text}");
    }
}

/// spec 50 scenario 15
#[test]
fn expiration_annotation_that_is_not_a_number_denies_the_pod() {
    let failure = failure(
        &webhook(),
        &view(),
        "
metadata: {annotations: {projected-token-mount.resources.gardener.cloud/expiration-seconds: 1h}}
spec: {serviceAccountName: dns}
",
    );

    assert_eq!(failure, Failure::Denied("strconv.ParseInt: parsing \"1h\": invalid syntax".into()));
}

/// spec 50 §2.6, §5.3, scenario 20
#[test]
fn namespace_of_the_request_counts() {
    for namespace in ["''", "other"] {
        let view = view();
        let mut pod = object(&format!("{{metadata: {{namespace: {namespace}}}, {POD}}}"));
        let request = request(&webhook(), &pod);

        webhook().mutate(&mut pod, &request, &view).unwrap();

        assert_eq!(view.reads(), ["ServiceAccount kube-system/dns"]);
    }
}

/// spec 50, "better" 12
#[test]
fn existing_mount_at_the_path_stays() {
    for path in ["/var/run/secrets/kubernetes.io/serviceaccount", "/var/run/secrets/kubernetes.io/serviceaccount/"] {
        let own = format!("[{{name: own, mountPath: {path}}}]");
        let mut pod = object(&format!(
            "spec: {{serviceAccountName: dns, containers: [{{name: a, volumeMounts: {own}}}, {{name: b}}]}}"
        ));
        let request = request(&webhook(), &pod);

        webhook().mutate(&mut pod, &request, &view()).unwrap();

        assert_eq!(pod["spec"]["containers"][0]["volumeMounts"], object(&own));
        assert_eq!(pod["spec"]["containers"][1]["volumeMounts"][0]["name"], VOLUME);
        assert_eq!(pod["spec"]["volumes"][0]["name"], VOLUME);
    }
}

/// spec 50 §5.3
#[test]
fn fs_group_and_unknown_fields_stay() {
    let pod = "
spec:
  serviceAccountName: dns
  securityContext: {fsGroup: 1}
  futureField: 7
  containers: [{name: a, futureField: 7, volumeMounts: [{name: v, mountPath: /v, futureField: 7}]}]
";
    let mut made = object(pod);
    let request = request(&webhook(), &made);

    webhook().mutate(&mut made, &request, &view()).unwrap();

    made["spec"].as_object_mut().unwrap().remove("volumes");
    made["spec"]["containers"][0]["volumeMounts"].as_array_mut().unwrap().pop();
    assert_eq!(made, object(pod));
}

/// spec 50 §2.2 row 7
#[test]
fn wrong_type_is_an_error_before_anything_is_read() {
    for (pod, message) in [
        ("spec: a", "spec: expected a map, found a string"),
        ("spec: {serviceAccountName: 1}", "spec.serviceAccountName: expected a string, found a number"),
        (
            "spec: {serviceAccountName: dns, automountServiceAccountToken: 'false'}",
            "spec.automountServiceAccountToken: expected a boolean, found a string",
        ),
        ("spec: {serviceAccountName: dns, volumes: {}}", "spec.volumes: expected a list, found a map"),
        (
            "spec: {containers: [{}, {volumeMounts: [{mountPath: 1}]}]}",
            "spec.containers[1].volumeMounts[0].mountPath: expected a string, found a number",
        ),
        ("metadata: {annotations: {a: 1}}", "metadata.annotations.a: expected a string, found a number"),
    ] {
        let view = view();

        let failure = failure(&webhook(), &view, pod);

        assert_eq!(failure, Failure::Errored { code: 400, message: message.to_owned() });
        assert!(view.reads().is_empty());
    }
}
