//! Several ManagedResources, other owners, dry runs on the server.

use super::*;

fn second_bundle(sim: &Sim, class: &str, refs: &[&str]) {
    let refs: Vec<_> = refs
        .iter()
        .map(|name| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": name}))
        .collect();
    let object = json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {"namespace": "ns", "name": "second", "labels": {"which": "second"}},
        "spec": {"class": class, "secretRefs": [{"name": "s"}]}, "status": {"resources": refs},
    });
    sim.put(object).unwrap();
}

fn options(line: &str) -> DiffOptions {
    let arguments: Vec<std::ffi::OsString> = line.split_whitespace().map(Into::into).collect();
    match crate::cli::Cli::parse_from(&arguments, &|_| None) {
        Ok(crate::cli::Command::Tool(crate::cli::Tool::Diff(options))) => options,
        other => panic!("{line}: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn diff_of_several_bundles_names_each_and_sums_up() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &[]).await;
    second_bundle(&sim, "seed", &[]);

    let all = diffs(&sim, &options("diff -A"), "").await.unwrap();
    let labelled = diffs(&sim, &options("diff -n ns -l which=second"), "").await.unwrap();
    let of_class = diffs(&sim, &options("diff -A --class seed"), "").await.unwrap();
    let named = diffs(&sim, &options("diff ns/mr second mr -n ns"), "").await.unwrap();
    let none = diffs(&sim, &options("diff -l which=third"), "").await.unwrap_err();

    let names =
        |reports: &[Report]| reports.iter().map(|report| report.bundle.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(
        (names(&all), names(&labelled), names(&of_class)),
        ("ns/mr ns/second".into(), "ns/second".into(), "ns/second".into())
    );
    assert_eq!(names(&named), "ns/mr ns/second", "each once");
    assert_eq!(none.to_string(), "there are no ManagedResources of namespace default with the labels which=third");
    let (text, code) = printed(all, None).await;
    assert!(text.starts_with("ManagedResource ns/mr:\ncreated v1/ConfigMap/ns/a\n"), "{text}");
    assert!(
        text.ends_with("\nin 2 ManagedResources: 2 created, 0 changed, 0 deleted, 0 released, 0 unchanged\n"),
        "{text}"
    );
    assert_eq!(code, DIFFERENT);
}

#[tokio::test(start_paused = true)]
async fn diff_of_several_bundles_goes_on_after_one_that_fails() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &[]).await;
    second_bundle(&sim, "seed", &[]);
    sim.edit(MANAGED_RESOURCE, "ns", "mr", |mr| mr["spec"]["secretRefs"][0]["name"] = "nowhere".into());

    let reports = diffs(&sim, &options("diff -n ns -l which!=nothing"), "").await.unwrap();

    let text = "error: ns/mr names Secret \"nowhere\", which does not exist — create it, or give its file";
    assert_eq!((reports[0].remarks.as_slice(), reports[0].exit_code()), ([text.to_owned()].as_slice(), FAILED));
    assert_eq!((reports.len(), reports[1].exit_code()), (2, DIFFERENT));
    assert_eq!(printed(reports, None).await.1, FAILED);
}

#[tokio::test(start_paused = true)]
async fn diff_prints_json_without_values_of_secrets() {
    let sim = cluster();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: s2}\nstringData: {a: sesame}\n";

    let report = diff(&sim, &named(), secret).await.unwrap();
    let (text, code) = printed(vec![report], Some("json")).await;

    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json[0]["namespace"], &json[0]["name"], code), (&json!("ns"), &json!("mr"), DIFFERENT));
    let change = &json[0]["changes"][0];
    assert_eq!((&change["action"], &change["object"]), (&json!("created"), &json!("v1/Secret/ns/s2")));
    assert_eq!((&change["before"], &change["after"]["stringData"]["a"]), (&Value::Null, &json!("<hidden>")));
    assert!(!text.contains("sesame"), "{text}");
}

/// spec 10 §3.2, decision 11
#[tokio::test(start_paused = true)]
async fn diff_warns_of_objects_that_belong_to_another_bundle() {
    let sim = cluster();
    bundle(&sim, &config_map("a"), &["a"]).await;
    applied(&sim, object("ConfigMap", "a", "data", json!({"key": "value"}))).await;
    let origin = |origin: &str| {
        sim.edit("configmaps", "ns", "a", |live| {
            live["metadata"]["annotations"]["resources.gardener.cloud/origin"] = origin.into();
        });
    };
    let remarks = async || diff(&sim, &of("ns/mr"), "").await.unwrap().remarks;

    origin("ns/second");
    let absent = remarks().await;
    second_bundle(&sim, "", &[]);
    let handed_over = remarks().await;
    sim.edit(MANAGED_RESOURCE, "ns", "second", |mr| {
        mr["status"]["resources"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a"}]);
    });
    let shared = remarks().await;
    origin("garden-1:ns/mr");
    let foreign = remarks().await;

    assert!(absent.is_empty() && handed_over.is_empty(), "{absent:?} {handed_over:?}");
    let text = "warning: v1/ConfigMap/ns/a belongs to ManagedResource ns/second too: the last writer wins — remove it from one";
    assert_eq!(shared, [text]);
    let text =
        "warning: v1/ConfigMap/ns/a has the origin \"garden-1:ns/mr\", of another cluster — is --cluster-id right?";
    assert_eq!(foreign, [text]);
}

#[tokio::test(start_paused = true)]
async fn diff_on_the_server_checks_new_objects_and_never_estimates() {
    let sim = cluster();
    bundle(&sim, "", &[]).await;
    applied(&sim, object("ConfigMap", "old", "data", json!({"key": "edited"}))).await;
    sim.set_mutation(|reviewed, object| {
        if (reviewed.operation, reviewed.resource) == ("CREATE", "configmaps") {
            object["data"]["added"] = "x".into();
        }
    });
    let strict = DiffOptions { server_side_dry_run: true, ..named() };
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n";
    let inside = config_map("inside").replace("namespace: ns", "namespace: later");
    let text = [config_map("new"), namespace.to_owned(), inside].join("---\n");

    let usual = diff(&sim, &named(), &config_map("new")).await.unwrap();
    let checked = diff(&sim, &strict, &text).await.unwrap();
    sim.set_faults(|info| match info.verb.as_str() {
        "update" | "create" => sim::Fault::FailBefore(sim::Seen::forbidden(info)),
        _ => sim::Fault::None,
    });
    let refused = diff(&sim, &strict, &[config_map("new"), config_map("old")].join("---\n")).await.unwrap();

    assert!(!usual.render(false).contains("added"));
    assert!(checked.render(false).contains("\n+  added: x\n"), "{}", checked.render(false));
    let later =
        "warning: v1/ConfigMap/later/inside: the server cannot check it, because its Namespace does not exist yet";
    assert_eq!((checked.remarks.as_slice(), checked.exit_code()), ([later.to_owned()].as_slice(), DIFFERENT));
    assert!(sim.object("configmaps", "ns", "new").is_none(), "nothing is stored");
    assert_eq!(refused.exit_code(), FAILED);
    assert!(
        refused.remarks[0].starts_with("error: v1/ConfigMap/ns/new: the server would not create it: "),
        "{:?}",
        refused.remarks
    );
    assert!(
        refused.remarks[1].starts_with("error: v1/ConfigMap/ns/old: the server does not answer the dry run: "),
        "{:?}",
        refused.remarks
    );
}
