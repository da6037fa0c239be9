//! What the programs say of their rights: at the start, and in the command `check`.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::{
    objects::{Admin, core},
    support::{ControlPlane, Grm, Options, Settings, User, eventually},
};

const NAMESPACE: &str = "rights";
const ACCOUNT: &str = "program";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const LIMIT: Duration = Duration::from_secs(60);
const LACKS: &str = "The process lacks a right";
const CHECKED: &str = "The rights that the configuration needs are checked";

/// spec 71 §5.2: the table of the chart without one verb.
#[tokio::test]
async fn right_that_is_missing_is_named_at_the_start_and_by_the_command() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let token = account(&admin).await?;
    admin.create(ROLES, &role(rules()?.into_iter().map(without_watch_of_secrets).collect())).await?;
    let kubeconfig = cluster.folder().join("program.kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig_with(&cluster.url(), &token))?;
    let connection = json!({ "kubeconfig": kubeconfig });
    let config = json!({ "sourceClientConnection": connection, "targetClientConnection": connection });

    let grm = Grm::spawn(&cluster, &cluster, Settings { config, environment: Vec::new() })?;
    let records = eventually("the rights are checked", LIMIT, async || {
        let records: Vec<Value> = grm.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let checked = records.iter().filter(|record| record["msg"] == CHECKED).count();
        ensure!(checked == 2, "the rights of {checked} clusters are checked: {}", grm.log());
        Ok(records)
    })
    .await?;
    let lacking: Vec<_> = records.iter().filter(|record| record["msg"] == LACKS).collect();
    let [record] = &lacking[..] else { bail!("{lacking:#?}") };
    let named = ["cluster", "resource", "verbs"].map(|field| record[field].as_str().unwrap_or_default());
    ensure!(named == ["source", "secrets", "watch"], "{record}");

    let config = grm.folder().join("config.yaml");
    let (code, findings) = check(env!("CARGO_BIN_EXE_gardener-resource-manager"), &config)?;
    let missing: Vec<_> = findings.iter().filter(|finding| finding["result"] == "missing").collect();
    ensure!(code == 1 && missing.len() == 1 && missing[0]["what"] == "secrets: watch", "{code}: {missing:#?}");
    ensure!(missing[0]["detail"].to_string().contains("a ClusterRole of the source cluster"), "{missing:#?}");

    admin.replace(&format!("{ROLES}/{ACCOUNT}"), &role(rules()?)).await?;
    eventually("nothing is missing", LIMIT, async || {
        let (code, findings) = check(env!("CARGO_BIN_EXE_gardener-resource-manager"), &config)?;
        ensure!(code == 0, "{findings:#?}");
        for topic in ["cluster", "kind", "right", "certificate"] {
            ensure!(findings.iter().any(|finding| finding["check"] == topic), "nothing about a {topic}: {findings:#?}");
        }
        Ok(())
    })
    .await
}

/// spec 80 §18
#[tokio::test]
async fn rights_of_the_controller_manager_are_checked_by_its_command() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let token = account(&admin).await?;
    let write = |name: &str, content: &str| -> Result<_> {
        let path = cluster.folder().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    };
    let config = |kubeconfig: &Path| {
        json!({
            "apiVersion": "controllermanager.config.gardener.cloud/v1alpha1", "kind": "ControllerManagerConfiguration",
            "gardenClientConnection": { "kubeconfig": kubeconfig },
        })
        .to_string()
    };
    let powerless = write("powerless.kubeconfig", &cluster.kubeconfig_with(&cluster.url(), &token))?;
    let powerless = write("powerless.yaml", &config(&powerless))?;
    let powerful = write("powerful.yaml", &config(&cluster.kubeconfig(User::Admin)))?;
    let program = env!("CARGO_BIN_EXE_gardener-controller-manager");

    let (code, findings) = check(program, &powerless)?;
    let is_missing = |finding: &&Value| finding["result"] == "missing" && finding["check"] == "right";
    ensure!(code == 1 && findings.iter().filter(is_missing).count() > 30, "{code}: {findings:#?}");
    ensure!(
        findings.iter().any(|finding| finding["what"] == "/version: get" && finding["result"] == "ok"),
        "{findings:#?}"
    );

    let (code, findings) = check(program, &powerful)?;
    let missing: Vec<_> = findings.iter().filter(|finding| finding["result"] == "missing").collect();
    ensure!(code == 1 && missing.len() == 1, "the cluster is no garden: {findings:#?}");
    ensure!(missing[0]["what"] == "shoots.core.gardener.cloud", "{findings:#?}");
    Ok(())
}

/// Creates a ServiceAccount that a ClusterRole of its name is bound to, and returns a token of it.
async fn account(admin: &Admin) -> Result<String> {
    let accounts = core(NAMESPACE, "serviceaccounts");
    admin
        .create(&accounts, &json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": ACCOUNT } }))
        .await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": ACCOUNT },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT },
        "subjects": [{ "kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT }],
    });
    admin.create(BINDINGS, &binding).await?;
    let (code, answer) =
        admin.send(Method::POST, &format!("{accounts}/{ACCOUNT}/token"), Some(&json!({ "spec": {} }))).await?;
    ensure!(code == 201, "{code} {answer}");
    Ok(answer["status"]["token"].as_str().context("no token")?.to_owned())
}

fn role(rules: Vec<Value>) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": ACCOUNT },
        "rules": rules,
    })
}

/// Returns the rules that the program always needs, as the chart makes them of its table.
fn rules() -> Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/charts/gardener-resource-manager/files/rights.yaml");
    let rows: Vec<Value> = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let always = rows.iter().filter(|row| row["part"].is_null() && row["when"].is_null());
    let rules = always.flat_map(|row| ["source", "target"].map(|section| row[section].as_array())).flatten().flatten();
    let rule = |rule: &Value| {
        let verbs = rule["verbs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let verbs = verbs.flat_map(|verb| if verb == "r" { vec!["get", "list", "watch"] } else { vec![verb] });
        json!({ "apiGroups": rule["apiGroups"], "resources": rule["resources"], "verbs": verbs.collect::<Vec<_>>() })
    };
    Ok(rules.map(rule).collect())
}

fn without_watch_of_secrets(mut rule: Value) -> Value {
    if rule["resources"] == json!(["secrets"])
        && let Some(verbs) = rule["verbs"].as_array_mut()
    {
        verbs.retain(|verb| verb != "watch");
    }
    rule
}

/// Runs the command `check`. Returns its exit code and its findings.
fn check(program: &str, config: &Path) -> Result<(i32, Vec<Value>)> {
    let output = Command::new(program).args(["check", "-o", "json", "--config"]).arg(config).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().with_context(|| format!("{}: {errors}", output.status))?;
    Ok((code, serde_json::from_slice(&output.stdout).with_context(|| errors.into_owned())?))
}
