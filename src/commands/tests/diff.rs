mod several;

use serde_json::{Value, json};

use super::*;
use crate::{
    cli::{DiffOptions, SelectionOptions},
    commands::{
        DIFFERENT, FAILED, OK,
        diff::{DiffError, Printer, Report, Request, compare},
    },
    producer::{ManagedResourceBuilder, SecretBuilder},
};

fn cluster() -> Sim {
    cluster_and_clock().0
}

async fn diff(sim: &Sim, options: &DiffOptions, text: &str) -> Result<Report, DiffError> {
    let mut reports = diffs(sim, options, text).await?;
    assert_eq!(reports.len(), 1);
    Ok(reports.remove(0))
}

async fn diffs(sim: &Sim, options: &DiffOptions, text: &str) -> Result<Vec<Report>, DiffError> {
    let request = Request::new(options, &[source("f", text)])?;
    sim.clear_requests();
    let mut reports = Vec::new();
    let compared = compare(sim.client(), sim.client(), request, |report| {
        reports.push(report);
        Ok(())
    });
    let compared = compared.await;
    assert!(
        sim.requests()
            .iter()
            .map(|request| &request.info)
            .all(|info| { ["get", "list"].contains(&info.verb.as_str()) || info.query.contains("dryRun=All") }),
        "it only reads"
    );
    compared.map(|()| reports)
}

/// The files belong to `ns/mr`.
fn named() -> DiffOptions {
    DiffOptions { files: vec!["f".to_owned()], ..of("ns/mr") }
}

/// The ManagedResource as it is in the cluster.
fn of(name: &str) -> DiffOptions {
    let selection = SelectionOptions { names: vec![name.to_owned()], ..SelectionOptions::default() };
    DiffOptions { selection, ..DiffOptions::default() }
}

fn in_files() -> DiffOptions {
    DiffOptions { files: vec!["f".to_owned()], ..DiffOptions::default() }
}

/// All that is printed, as for one bundle.
async fn printed(reports: Vec<Report>, format: Option<&str>) -> (String, i32) {
    let format = format.map(|format| format.parse().unwrap());
    let has_titles = reports.len() > 1;
    let (code, out, _) = on_screen(async |screen: &mut Screen<'_>| {
        let mut printer = Printer::new(screen, format.as_ref(), has_titles);
        for report in reports {
            printer.take(report).unwrap();
        }
        printer.end().unwrap()
    })
    .await;
    (out, code)
}

/// Stores a live object as the controller leaves it behind.
async fn applied(sim: &Sim, object: Value) {
    let mut object = object;
    let metadata = &mut object["metadata"];
    metadata["labels"]["resources.gardener.cloud/managed-by"] = "gardener".into();
    metadata["annotations"]["resources.gardener.cloud/origin"] = "ns/mr".into();
    metadata["annotations"]["resources.gardener.cloud/description"] =
        crate::api::resources::keys::DESCRIPTION_TEXT.into();
    sim.put(object).unwrap();
}

fn object(kind: &str, name: &str, field: &str, content: Value) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "ns", "name": name}, field: content})
}

async fn bundle(sim: &Sim, manifests: &str, refs: &[&str]) {
    let client = sim.client();
    let data = [("a.yaml".to_owned(), manifests.as_bytes().to_vec())].into();
    SecretBuilder::new("ns", "s").data(data).reconcile(&client).await.unwrap();
    ManagedResourceBuilder::new("ns", "mr").secret_ref("s").reconcile(&client).await.unwrap();
    let refs: Vec<_> = refs
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": name}))
        .collect();
    sim.edit(MANAGED_RESOURCE, "ns", "mr", |mr| mr["status"]["resources"] = json!(refs));
}

#[tokio::test(start_paused = true)]
async fn diff_shows_created_changed_deleted_kept_and_unchanged_objects() {
    let sim = cluster();
    sim.put(object("ConfigMap", "keep", "data", json!({}))).unwrap();
    bundle(&sim, "", &["changed", "gone", "keep", "same"]).await;
    sim.edit("configmaps", "ns", "keep", |object| {
        object["metadata"]["annotations"] = json!({"resources.gardener.cloud/keep-object": "true"});
    });
    for name in ["changed", "gone", "same"] {
        applied(&sim, object("ConfigMap", name, "data", json!({"key": "value"}))).await;
    }
    sim.edit("configmaps", "ns", "changed", |object| object["data"]["key"] = "edited".into());
    let text = [config_map("same"), config_map("changed"), config_map("new")].join("---\n");

    let report = diff(&sim, &named(), &text).await.unwrap();

    let actions: Vec<_> =
        report.changes.iter().map(|change| (change.action.as_str(), change.object.as_str())).collect();
    let expected = [
        ("changed", "v1/ConfigMap/ns/changed"),
        ("created", "v1/ConfigMap/ns/new"),
        ("unchanged", "v1/ConfigMap/ns/same"),
        ("deleted", "v1/ConfigMap/ns/gone"),
        ("kept", "v1/ConfigMap/ns/keep"),
    ];
    assert_eq!(actions, expected);
    assert_eq!(report.exit_code(), DIFFERENT);
    let text = report.render(false);
    assert!(text.contains("\n-  key: edited\n+  key: value\n"), "{text}");
    assert!(text.contains("--- /dev/null\n+++ bundle/v1/ConfigMap/ns/new\n"), "{text}");
    assert!(text.contains("kept v1/ConfigMap/ns/keep (annotation resources.gardener.cloud/keep-object)\n"), "{text}");
    assert!(!text.contains('\x1b'));
    assert!(report.render(true).contains("\x1b[32m+  key: value\x1b[0m\n"));
    let (text, code) = printed(vec![report], None).await;
    assert!(text.ends_with("\n1 created, 1 changed, 1 deleted, 0 released, 1 unchanged, 1 kept\n"), "{text}");
    assert_eq!(code, DIFFERENT);
}

#[tokio::test(start_paused = true)]
async fn diff_is_empty_after_an_apply() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a"]).await;
    applied(&sim, object("ConfigMap", "a", "data", json!({"key": "value"}))).await;

    let report = diff(&sim, &of("ns/mr"), "").await.unwrap();

    assert_eq!((report.exit_code(), report.remarks.as_slice()), (OK, [].as_slice()));
    let summary = "0 created, 0 changed, 0 deleted, 0 released, 1 unchanged\n";
    assert_eq!(printed(vec![report], None).await, (summary.to_owned(), OK));
}

#[tokio::test(start_paused = true)]
async fn diff_never_shows_values_of_secrets() {
    let sim = cluster();
    let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "b2xk"});
    let mut live = object("Secret", "s1", "data", json!({"a": "b2xk", "b": "c2FtZQ==", "gone": "Z29uZQ=="}));
    live["metadata"]["annotations"] = annotations;
    applied(&sim, live).await;
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: s1}\nstringData: {a: new, b: same}\n---\n\
                apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: s2}\nstringData: {a: new}\n";

    let report = diff(&sim, &named(), text).await.unwrap();

    let shown = report.render(false);
    for secret in ["b2xk", "bmV3", "c2FtZQ==", "Z29uZQ==", ": new", ": same"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(shown.contains("-  a: <hidden>\n+  a: <changed>\n   b: <hidden>\n"), "{shown}");
    assert!(shown.contains("+stringData:\n+  a: <hidden>\n"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn diff_shows_manual_changes_and_dropped_fields_but_no_defaults() {
    let sim = cluster();
    let service = |ports: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: ns, name: web}}\nspec:\n  sessionAffinity: ClientIP\n  {ports}\n  selector: {{a: b}}\n"
        )
    };
    let old = service("ports: [{port: 80}]\n  publishNotReadyAddresses: true");
    bundle(&sim, &old, &[]).await;
    let live: Value = serde_saphyr::from_str(&old).unwrap();
    applied(&sim, live).await;
    sim.edit("services", "ns", "web", |live| {
        live["metadata"]["managedFields"] =
            json!([{"manager": "gardener-resource-manager", "fieldsV1": {"f:spec": {}}}]);
    });

    let report = diff(&sim, &named(), &service("ports: [{port: 80}]")).await.unwrap();

    let text = report.render(false);
    let removed: Vec<_> = text.lines().filter(|line| line.starts_with('-') && !line.starts_with("---")).collect();
    assert_eq!(removed, ["-  publishNotReadyAddresses: true"], "{text}");
    assert!(!text.lines().any(|line| line.starts_with('+') && !line.starts_with("+++")), "{text}");
}

#[tokio::test(start_paused = true)]
async fn diff_fails_for_objects_that_cannot_be_applied_or_read() {
    let sim = cluster();
    bundle(&sim, "- hidden", &["a"]).await;
    applied(&sim, object("ConfigMap", "a", "data", json!({}))).await;

    let undecodable = diff(&sim, &of("ns/mr"), "").await.unwrap();
    let missing = diff(&sim, &of("ns/other"), "").await.unwrap_err();
    let nameless = diff(&sim, &named(), "apiVersion: v1\nkind: ConfigMap\n").await.unwrap();
    let unnamed = diff(&sim, &in_files(), &config_map("a")).await.unwrap_err();
    sim.remove("secrets", "ns", "s");
    let without_secret = diff(&sim, &of("ns/mr"), "").await.unwrap_err();

    assert_eq!(undecodable.exit_code(), FAILED);
    assert!(undecodable.changes.is_empty(), "nothing is deleted while something does not decode");
    assert!(!undecodable.remarks.concat().contains("hidden"), "{:?}", undecodable.remarks);
    assert!(missing.to_string().starts_with("there is no ManagedResource ns/other — "), "{missing}");
    assert_eq!(nameless.remarks, ["error: v1/ConfigMap/default/: resource name may not be empty"]);
    assert!(unnamed.to_string().contains("name the one they belong to: [<namespace>/]<name>"), "{unnamed}");
    assert!(
        without_secret.to_string().starts_with("ns/mr names Secret \"s\", which does not exist"),
        "{without_secret}"
    );
}

#[tokio::test(start_paused = true)]
async fn diff_of_packed_files_uses_their_managed_resource_and_creates_unknown_kinds() {
    let sim = cluster();
    let manifests = format!("{}---\napiVersion: g.io/v1\nkind: Thing\nmetadata: {{name: t}}\n", config_map("a"));
    let options =
        crate::cli::PackOptions { name: "web".to_owned(), namespace: Some("ns".to_owned()), ..Default::default() };
    let packed = crate::commands::pack::pack(&options, &[source("f", &manifests)]);

    let report = diff(&sim, &in_files(), &packed.out).await.unwrap();

    let objects: Vec<_> = report.changes.iter().map(|change| change.object.as_str()).collect();
    assert_eq!(objects, ["v1/ConfigMap/ns/a", "g.io/v1/Thing/default/t"]);
    assert_eq!(report.remarks, ["warning: g.io/v1/Thing/default/t: the target does not serve this kind yet"]);
    assert!(report.render(false).contains("resources.gardener.cloud/origin: ns/web"));
}

/// spec 10 §13.7
#[tokio::test(start_paused = true)]
async fn diff_keeps_parts_of_the_bundle_itself() {
    let sim = cluster();
    bundle(&sim, "", &[]).await;
    sim.put(object("Secret", "old", "data", json!({}))).unwrap();
    let refs = json!([
        {"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource", "namespace": "ns", "name": "mr"},
        {"apiVersion": "v1", "kind": "Secret", "namespace": "ns", "name": "s"},
        {"apiVersion": "v1", "kind": "Secret", "namespace": "ns", "name": "old"},
    ]);
    sim.edit(MANAGED_RESOURCE, "ns", "mr", |mr| mr["status"]["resources"] = refs);

    let report = diff(&sim, &named(), &config_map("new")).await.unwrap();

    let text = report.render(false);
    assert!(
        text.contains(
            "kept resources.gardener.cloud/v1alpha1/ManagedResource/ns/mr (it is the ManagedResource itself)\n"
        ),
        "{text}"
    );
    assert!(text.contains("kept v1/Secret/ns/s (the bundle reads its manifests from it)\n"), "{text}");
    assert!(text.contains("deleted v1/Secret/ns/old\n"), "{text}");
}

/// spec 10 §12.8a
#[tokio::test(start_paused = true)]
async fn diff_ignores_fields_that_controllers_fill_in() {
    let sim = cluster();
    let manifest = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: token}\n\
                    type: kubernetes.io/service-account-token\n";
    bundle(&sim, manifest, &[]).await;
    let mut live = object("Secret", "token", "data", json!({"token": "dG9rZW4="}));
    live["type"] = "kubernetes.io/service-account-token".into();
    live["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = "u".into();
    applied(&sim, live).await;

    let report = diff(&sim, &named(), manifest).await.unwrap();

    assert_eq!(report.exit_code(), OK, "{}", report.render(false));
}

/// spec 10 §11.3
#[tokio::test(start_paused = true)]
async fn diff_splits_lists_into_items() {
    let sim = cluster();
    bundle(&sim, "", &[]).await;
    let item = "  - {apiVersion: v1, kind: ConfigMap, metadata: {namespace: ns, name: a}}\n";
    let good = format!("apiVersion: v1\nkind: List\nitems:\n{item}");

    let report = diff(&sim, &named(), &good).await.unwrap();
    let broken = diff(&sim, &named(), &format!("{good}  - {{kind: ConfigMap}}\n")).await.unwrap();

    assert!(report.render(false).contains("created") && report.exit_code() == DIFFERENT);
    assert_eq!(report.changes[0].object, "v1/ConfigMap/ns/a");
    assert_eq!(broken.exit_code(), FAILED);
    assert!(broken.remarks.iter().any(|remark| remark.contains("Kind=List\" is unsupported")), "{:?}", broken.remarks);
}

/// spec 10 §11.3, decision 40: fields that another attempt left behind are in no manifest, old or new.
#[tokio::test(start_paused = true)]
async fn diff_shows_fields_that_another_attempt_left_behind() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a"]).await;
    applied(&sim, object("ConfigMap", "a", "data", json!({"key": "value", "left": "x"}))).await;
    sim.edit("configmaps", "ns", "a", |live| {
        live["metadata"]["managedFields"] =
            json!([{"manager": "gardener-resource-manager", "fieldsV1": {"f:data": {}}}]);
    });

    let report = diff(&sim, &named(), &config_map("a")).await.unwrap();

    assert_eq!(report.exit_code(), DIFFERENT);
    assert!(report.render(false).contains("\n-  left: x\n"), "{}", report.render(false));
}

/// spec 10 §11.3, decision 40
#[tokio::test(start_paused = true)]
async fn diff_shows_what_admission_would_add_but_not_what_it_added() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a", "b"]).await;
    applied(&sim, object("ConfigMap", "a", "data", json!({"key": "value"}))).await;
    applied(&sim, object("ConfigMap", "b", "data", json!({"key": "changed"}))).await;
    sim.set_mutation(|reviewed, object| {
        if (reviewed.operation, reviewed.resource) == ("UPDATE", "configmaps") {
            object["data"]["key"] = "changed".into();
        }
    });
    let text = [config_map("a"), config_map("b")].join("---\n");

    let report = diff(&sim, &named(), &text).await.unwrap();

    let (text, _) = printed(vec![report], None).await;
    assert!(text.contains("\n-  key: value\n+  key: changed\n"), "{text}");
    assert!(text.ends_with("\n0 created, 1 changed, 0 deleted, 0 released, 1 unchanged\n"), "{text}");
    assert_eq!(sim.object("configmaps", "ns", "a").unwrap()["data"]["key"], "value", "nothing is stored");
}

#[tokio::test(start_paused = true)]
async fn diff_is_estimated_without_the_right_to_update() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a", "b"]).await;
    for name in ["a", "b"] {
        applied(&sim, object("ConfigMap", name, "data", json!({"key": "edited"}))).await;
    }
    sim.set_faults(|info| match info.verb.as_str() {
        "update" => sim::Fault::FailBefore(sim::Seen::forbidden(info)),
        _ => sim::Fault::None,
    });
    let text = [config_map("a"), config_map("b")].join("---\n");

    let report = diff(&sim, &named(), &text).await.unwrap();

    assert_eq!(report.exit_code(), DIFFERENT);
    let [remark] = report.remarks.as_slice() else { panic!("{:?}", report.remarks) };
    assert!(remark.starts_with("warning: the server does not say what it would make of an update ("), "{remark}");
}

/// spec 10 §12.9
#[tokio::test(start_paused = true)]
async fn diff_reports_a_refused_update_unless_nothing_differs() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a", "b"]).await;
    for (name, value) in [("a", "value"), ("b", "edited")] {
        applied(&sim, object("ConfigMap", name, "data", json!({"key": value}))).await;
    }
    sim.set_faults(|info| match info.verb.as_str() {
        "update" => sim::Fault::FailBefore(sim::Seen::status(422, "Invalid", "it is immutable")),
        _ => sim::Fault::None,
    });
    let text = [config_map("a"), config_map("b")].join("---\n");

    let report = diff(&sim, &named(), &text).await.unwrap();

    assert_eq!(report.remarks, ["warning: v1/ConfigMap/ns/b: the server would refuse the update: it is immutable"]);
}
