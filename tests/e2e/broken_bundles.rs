//! A broken bundle is red wherever people and programs look, with the same reason, and with the same message.

use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};

use anyhow::{Context, Result, anyhow, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    objects::{Admin, bundles, core, managed_resource, secret},
    support::{ControlPlane, Grm, Options, User, eventually},
};

const NAMESPACE: &str = "broken";
const LIMIT: Duration = Duration::from_secs(60);

/// The colour of `get` and `describe`.
const RED: &str = "\u{1b}[31m";
/// The end of a text that was cut.
const MARK: char = '…';
/// Both alerts wait for 15 minutes.
const MINUTES: usize = 16;

/// A bundle, and how it is broken.
struct Broken {
    bundle: &'static str,
    condition: &'static str,
    reason: &'static str,
    /// The component that records the Event.
    component: &'static str,
    alert: &'static str,
}

const BROKEN: [Broken; 3] = [
    Broken {
        bundle: "document",
        condition: "ResourcesApplied",
        reason: "DecodingFailed",
        component: "managedresource",
        alert: "GardenerResourceManagerBundleNotApplied",
    },
    Broken {
        bundle: "refused",
        condition: "ResourcesApplied",
        reason: "ApplyFailed",
        component: "managedresource",
        alert: "GardenerResourceManagerBundleNotApplied",
    },
    Broken {
        bundle: "unhealthy",
        condition: "ResourcesHealthy",
        reason: "DeploymentUnhealthy",
        component: "health",
        alert: "GardenerResourceManagerBundleUnhealthy",
    },
];

/// Where a condition is shown, and what is shown there. A text that was cut ends with [`MARK`].
#[derive(Debug)]
struct Shown {
    is_red: bool,
    reason: String,
    message: String,
}

/// The program, its cluster, and the ways to look at both.
struct World {
    cluster: ControlPlane,
    admin: Admin,
    grm: Grm,
}

/// docs/operations.md, "Where to look first": each of these places tells the same.
#[tokio::test]
async fn broken_bundles_are_red_everywhere_with_the_same_reason_and_message() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    create_bundles(&admin).await?;
    let grm = Grm::start(&cluster, json!({})).await?;
    let world = World { cluster, admin, grm };

    for broken in &BROKEN {
        let message = eventually(&format!("{} is broken", broken.bundle), LIMIT, async || {
            let condition = world.condition(broken).await?;
            let found = ["status", "reason"].map(|field| text(&condition[field]));
            ensure!(found == ["False", broken.reason], "{condition}");
            Ok(text(&condition["message"]))
        })
        .await?;

        // Channels follow the condition one by one.
        eventually(&format!("each place shows {}", broken.bundle), LIMIT, async || {
            for (place, shown) in world.places(broken).await? {
                ensure!(shown.is_red, "{place} is not red: {shown:?}");
                ensure!(shown.reason == broken.reason, "{place} has another reason: {shown:?}");
                ensure!(is_same(&shown.message, &message), "{place} has another message than {message:?}: {shown:?}");
            }
            Ok(())
        })
        .await?;
        ensure!(world.condition(broken).await?["message"] == message, "the condition has another message now");
    }
    world.alerts_fire().await
}

/// A document that is no YAML, an object that the server refuses, and a Deployment without a controller. The text of the
/// refused object is longer than an Event.
async fn create_bundles(admin: &Admin) -> Result<()> {
    let metadata = |name: &str| json!({ "namespace": NAMESPACE, "name": name });
    let documents = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("a") }).to_string();
    let mut document = secret(NAMESPACE, "document", &[]);
    document["data"]["objects.yaml"] = BASE64_STANDARD.encode(format!("{documents}\n---\nkind: [\n")).into();
    let ports: Vec<Value> = (0..20).map(|port| json!({ "name": format!("p{port}"), "port": 0 })).collect();
    let refused = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata("refused"),
        "spec": { "selector": { "app": "a" }, "ports": ports },
    });
    let unhealthy = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("unhealthy"),
        "spec": {
            "selector": { "matchLabels": { "app": "a" } },
            "template": {
                "metadata": { "labels": { "app": "a" } },
                "spec": { "containers": [{ "name": "a", "image": "registry.example/a:1" }] },
            },
        },
    });
    let secrets = [document, secret(NAMESPACE, "refused", &[refused]), secret(NAMESPACE, "unhealthy", &[unhealthy])];
    for (secret, broken) in secrets.iter().zip(&BROKEN) {
        admin.create(&core(NAMESPACE, "secrets"), secret).await?;
        admin.create(&bundles(NAMESPACE), &managed_resource(NAMESPACE, broken.bundle)).await?;
    }
    Ok(())
}

impl World {
    async fn condition(&self, broken: &Broken) -> Result<Value> {
        let bundle = self.admin.get(&format!("{}/{}", bundles(NAMESPACE), broken.bundle)).await?;
        condition_of(&bundle["status"], broken)
    }

    /// Returns what each place shows of a bundle.
    async fn places(&self, broken: &Broken) -> Result<Vec<(&'static str, Shown)>> {
        Ok(vec![
            ("the list of the dashboard", self.row(broken).await?),
            ("the page of the dashboard", self.page(broken).await?),
            ("get", self.get(broken)?),
            ("get -o json", self.get_json(broken)?),
            ("get --unhealthy -A", self.get_unhealthy(broken)?),
            ("describe", self.describe(broken)?),
            ("describe -o json", self.describe_json(broken)?),
            ("the log", self.log_record(broken)?),
            ("the Event", self.event(broken).await?),
            ("describe, Events", self.described_event(broken)?),
        ])
    }

    /// As the list makes it (`bundles.js`): a bundle with a problem is broken, and a condition has the colour of its tone.
    async fn row(&self, broken: &Broken) -> Result<Shown> {
        let snapshot = self.grm.dashboard_snapshot().await?;
        let rows = snapshot["actors"].as_array().map(Vec::as_slice).unwrap_or_default();
        let row = rows.iter().find(|row| row["path"] == path(broken)).with_context(|| format!("no row {snapshot}"))?;
        let problem = row["problem"].as_str().with_context(|| format!("no problem: {row}"))?;
        let (_, problem) = problem.split_once(' ').unwrap_or_default();
        let condition = condition_of(&row["object"], broken)?;
        let (reason, message) = problem.split_once(": ").unwrap_or_default();
        ensure!(condition["reason"] == reason, "the row has two reasons: {row}");
        Ok(Shown { is_red: condition["tone"] == "bad", reason: reason.to_owned(), message: message.to_owned() })
    }

    async fn page(&self, broken: &Broken) -> Result<Shown> {
        let address = format!("/dashboard/details?path={}", path(broken).replace('/', "%2F"));
        let page = self.grm.metrics(&address).await?.json()?;
        let condition = condition_of(&page["bundle"], broken)?;
        Ok(Shown { is_red: condition["tone"] == "bad", ..Shown::of(&condition) })
    }

    fn get(&self, broken: &Broken) -> Result<Shown> {
        let table = self.run(&["get", "-n", NAMESPACE, broken.bundle])?;
        problem_in(&table, broken)
    }

    fn get_unhealthy(&self, broken: &Broken) -> Result<Shown> {
        problem_in(&self.run(&["get", "-A", "--unhealthy"])?, broken)
    }

    fn get_json(&self, broken: &Broken) -> Result<Shown> {
        let printed = self.run(&["get", "-n", NAMESPACE, broken.bundle, "-o", "json"])?;
        let object: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
        Ok(Shown::of_status(&condition_of(&object["status"], broken)?))
    }

    fn describe(&self, broken: &Broken) -> Result<Shown> {
        let printed = self.run(&["describe", &format!("{NAMESPACE}/{}", broken.bundle)])?;
        let mut lines = printed.lines().skip_while(|line| !line.trim_start().starts_with(broken.condition));
        let head = lines.next().with_context(|| format!("no {}: {printed}", broken.condition))?;
        let reason = plain(head).split_whitespace().next_back().unwrap_or_default().to_owned();
        let message: Vec<&str> = lines.map_while(|line| line.strip_prefix("    ")).collect();
        Ok(Shown { is_red: head.contains(RED), reason, message: message.join("\n") })
    }

    fn describe_json(&self, broken: &Broken) -> Result<Shown> {
        let printed = self.run(&["describe", &format!("{NAMESPACE}/{}", broken.bundle), "-o", "json"])?;
        let document: Value = serde_json::from_str(&printed).with_context(|| printed.clone())?;
        Ok(Shown::of_status(&condition_of(&document, broken)?))
    }

    fn described_event(&self, broken: &Broken) -> Result<Shown> {
        let printed = self.run(&["describe", &format!("{NAMESPACE}/{}", broken.bundle)])?;
        let events = printed.lines().skip_while(|line| !line.contains("Events"));
        let line = events.map(plain).find(|line| line.split_whitespace().any(|word| word == broken.reason));
        let line = line.with_context(|| format!("no Event: {printed}"))?;
        // LAST, TYPE, REASON, COUNT, MESSAGE
        let mut cells = line.trim_start().splitn(5, "   ").map(str::trim_start);
        let (kind, reason, message) = (cells.nth(1), cells.next(), cells.nth(1));
        Ok(Shown {
            is_red: kind == Some("Warning"),
            reason: reason.unwrap_or_default().to_owned(),
            message: message.unwrap_or_default().to_owned(),
        })
    }

    fn log_record(&self, broken: &Broken) -> Result<Shown> {
        let log = self.grm.log();
        let records = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut own = records.filter(|record| {
            record["name"] == broken.bundle
                && record["namespace"] == NAMESPACE
                && record["condition"] == broken.condition
                && record["status"] == "False"
        });
        let record = own.next_back().with_context(|| format!("no record of {}: {log}", broken.bundle))?;
        Ok(Shown {
            is_red: record["level"] == "error",
            reason: text(&record["reason"]),
            message: text(&record["detail"]),
        })
    }

    async fn event(&self, broken: &Broken) -> Result<Shown> {
        let events = self.admin.list(&core(NAMESPACE, "events")).await?;
        let is_own = |event: &&Value| {
            event["involvedObject"]["name"] == broken.bundle && event["source"]["component"] == broken.component
        };
        let event = events.iter().find(is_own).with_context(|| format!("no Event of {}", broken.bundle))?;
        Ok(Shown { is_red: event["type"] == "Warning", ..Shown::of(event) })
    }

    /// Prints what the program prints on a terminal with colours, but does not cut to its width.
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_gardener-resource-manager"))
            .args(arguments)
            .arg("--kubeconfig")
            .arg(self.cluster.kubeconfig(User::Admin))
            .env("CLICOLOR_FORCE", "1")
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{arguments:?}: {} {errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Promtool holds the scraped series for a quarter of an hour. Each alert fires with the reasons of its conditions.
    async fn alerts_fire(&self) -> Result<()> {
        let series = self.status_series().await?;
        for Broken { bundle, condition, reason, .. } in &BROKEN {
            // The exposition sorts labels by name.
            let labels = format!("{{condition=\"{condition}\",reason=\"{reason}\",status=\"False\"}}");
            ensure!(series.get(&labels).is_some_and(|value| value == "1"), "{bundle}: no {labels} in {series:#?}");
        }
        let rules = rules()?;
        let folder = tempfile::tempdir()?;
        let write = |name: &str, content: &Value| std::fs::write(folder.path().join(name), content.to_string());
        write("rules.json", &rules)?;
        write("tests.json", &tests(&rules, &series)?)?;
        let output =
            Command::new("promtool").args(["test", "rules"]).arg(folder.path().join("tests.json")).output().context(
                "promtool cannot be started: install Prometheus, for example the package `prometheus` of Debian",
            )?;
        let printed = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        ensure!(output.status.success(), "{printed}");
        Ok(())
    }

    /// Returns the gauge of the conditions as it is scraped: values by labels.
    async fn status_series(&self) -> Result<BTreeMap<String, String>> {
        let scraped = self.grm.metrics("/metrics").await?;
        ensure!(scraped.code == 200, "{} {}", scraped.code, scraped.body);
        let own = scraped.body.lines().filter_map(|line| line.strip_prefix(GAUGE));
        let pairs = own.filter_map(|series| series.rsplit_once(' '));
        Ok(pairs.map(|(labels, value)| (labels.to_owned(), value.to_owned())).collect())
    }
}

const GAUGE: &str = "gardener_resource_manager_managedresource_status";

/// Returns the alerts of `deploy/monitoring` as a file of rules.
fn rules() -> Result<Value> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring/prometheusrule-gardener-resource-manager.yaml");
    let rule: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    Ok(json!({ "groups": rule["spec"]["groups"] }))
}

/// Returns promtool's test: all alerts about bundles that fire, and no others.
fn tests(rules: &Value, series: &BTreeMap<String, String>) -> Result<Value> {
    let scraped = "job=\"gardener-resource-manager\",namespace=\"garden\",pod=\"a\"";
    let input = series.iter().map(|(labels, value)| {
        let labels = labels.trim_start_matches('{');
        json!({ "series": format!("{GAUGE}{{{scraped},{labels}"), "values": format!("{value}x{MINUTES}") })
    });
    let mut expected: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for Broken { alert, reason, .. } in &BROKEN {
        let all = rules["groups"].as_array().into_iter().flatten().flat_map(|group| group["rules"].as_array());
        let rule = all.flatten().find(|rule| rule["alert"] == *alert).with_context(|| format!("no alert {alert}"))?;
        let mut labels = rule["labels"].clone();
        merge(&mut labels, &[("namespace", "garden"), ("reason", reason)])?;
        let annotations = rule["annotations"].to_string();
        let annotations =
            annotations.replace("{{ $labels.reason }}", reason).replace("{{ $labels.namespace }}", "garden");
        let annotations: Value = serde_json::from_str(&annotations)?;
        expected.entry(alert).or_default().push(json!({ "exp_labels": labels, "exp_annotations": annotations }));
    }
    let expected = expected
        .iter()
        .map(|(alert, alerts)| json!({ "eval_time": format!("{MINUTES}m"), "alertname": alert, "exp_alerts": alerts }));
    Ok(json!({
        "rule_files": ["rules.json"],
        "evaluation_interval": "1m",
        "tests": [{
            "interval": "1m",
            "input_series": input.collect::<Vec<_>>(),
            "alert_rule_test": expected.collect::<Vec<_>>(),
        }],
    }))
}

fn merge(labels: &mut Value, more: &[(&str, &str)]) -> Result<()> {
    let labels = labels.as_object_mut().ok_or_else(|| anyhow!("an alert has no labels"))?;
    labels.extend(more.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    Ok(())
}

impl Shown {
    /// Of a condition, or of an Event.
    fn of(object: &Value) -> Self {
        Self { is_red: false, reason: text(&object["reason"]), message: text(&object["message"]) }
    }

    fn of_status(condition: &Value) -> Self {
        Self { is_red: condition["status"] == "False", ..Self::of(condition) }
    }
}

fn path(broken: &Broken) -> String {
    format!("managedresource/{NAMESPACE}/{}", broken.bundle)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn condition_of(conditions: &Value, broken: &Broken) -> Result<Value> {
    let all = conditions["conditions"].as_array().into_iter().flatten();
    let condition = all.into_iter().find(|condition| condition["type"] == broken.condition);
    condition.cloned().with_context(|| format!("no {}: {conditions}", broken.condition))
}

/// Returns what the table of `get` shows of a bundle: `reason: message` is its last column.
fn problem_in(table: &str, broken: &Broken) -> Result<Shown> {
    let is_own = |line: &&str| line.split_whitespace().any(|word| word == broken.bundle);
    let line = table.lines().find(is_own).with_context(|| format!("no line of {}: {table}", broken.bundle))?;
    let shown = plain(line);
    let (before, message) = shown.split_once(": ").with_context(|| format!("no problem: {line}"))?;
    let reason = before.split_whitespace().next_back().unwrap_or_default();
    Ok(Shown { is_red: line.contains(RED), reason: reason.to_owned(), message: message.to_owned() })
}

/// Removes colours.
fn plain(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or("", |(_, text)| text));
    rest.fold(first, |text, part| text + part)
}

/// Returns true if a text is the message, or shows that it is only its beginning. Tables have one line.
fn is_same(shown: &str, message: &str) -> bool {
    let one_line = message.replace('\n', " ");
    let is_part_of = |whole: &str| match shown.split_once(MARK) {
        Some((beginning, _)) => shown == whole || !beginning.is_empty() && whole.starts_with(beginning),
        None => shown == whole,
    };
    is_part_of(message) || is_part_of(&one_line)
}
