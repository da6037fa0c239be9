//! The built program as a process, started as a Deployment starts it: with `--config FILE` and nothing else.

use std::{
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use super::{
    certificates::{Authority, Pair},
    control_plane::{ControlPlane, User},
    files::{folder, free_port, write},
    http::{self, Answer},
    process::{Process, Signal},
    wait::{eventually, promptly},
};

/// From start to ready: the caches of a small cluster and a lease. Generous, because the machine may be busy.
const READY_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Grm {
    process: Option<Process>,
    folder: TempDir,
    authority: Authority,
    pair: Pair,
    settings: Settings,
    health_port: u16,
    metrics_port: u16,
    webhook_port: u16,
}

/// Deviations from the default process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// A JSON merge patch (`null` removes) over a configuration with all optional parts and the leader election off.
    pub(crate) config: Value,
    pub(crate) environment: Vec<(String, String)>,
}

impl Grm {
    pub(crate) async fn start(cluster: &ControlPlane, config: Value) -> Result<Self> {
        Self::start_between(cluster, cluster, config).await
    }

    pub(crate) async fn start_between(source: &ControlPlane, target: &ControlPlane, config: Value) -> Result<Self> {
        let mut grm = Self::spawn(source, target, Settings { config, environment: Vec::new() })?;
        grm.wait_ready().await?;
        Ok(grm)
    }

    pub(crate) fn spawn(source: &ControlPlane, target: &ControlPlane, settings: Settings) -> Result<Self> {
        let folder = folder("grm-")?;
        let authority = Authority::create(folder.path(), "authority")?;
        let pair = Pair::create(folder.path().join("tls"), &authority)?;
        let ports = (free_port()?, free_port()?, free_port()?);
        let (health_port, metrics_port, webhook_port) = ports;
        let mut grm =
            Self { process: None, folder, authority, pair, settings, health_port, metrics_port, webhook_port };
        let mut config = grm.base(source, target);
        merge(&mut config, &grm.settings.config);
        write(grm.folder.path(), "config.yaml", &serde_json::to_string_pretty(&config)?)?;
        grm.respawn()?;
        Ok(grm)
    }

    pub(crate) async fn restart(&mut self) -> Result<()> {
        self.kill();
        self.respawn()?;
        self.wait_ready().await?;
        Ok(())
    }

    /// Like [`Self::restart`]. Returns the time from the start of the process to the first 200 of `/readyz`.
    pub(crate) async fn restart_promptly(&mut self) -> Result<Duration> {
        self.kill();
        let start = Instant::now();
        self.respawn()?;
        promptly("the program is ready", READY_LIMIT, async || {
            let answer = self.probe("/readyz").await?;
            ensure!(answer.code == 200, "/readyz: {} {}", answer.code, answer.body);
            Ok(())
        })
        .await?;
        Ok(start.elapsed())
    }

    pub(crate) async fn wait_ready(&mut self) -> Result<Duration> {
        let start = Instant::now();
        eventually("the program is ready", READY_LIMIT, async || {
            if let Some(Err(ended)) = self.process.as_mut().map(Process::check_running) {
                return Ok(Err(ended));
            }
            let answer = self.probe("/readyz").await?;
            ensure!(answer.code == 200, "/readyz: {} {}", answer.code, answer.body);
            Ok(Ok(()))
        })
        .await??;
        Ok(start.elapsed())
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.running()?.signal(signal)
    }

    pub(crate) async fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal(Signal::Terminate)?;
        self.wait_exit(limit).await
    }

    pub(crate) async fn wait_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let Some(process) = self.process.as_mut() else { anyhow::bail!("the program was killed by the test") };
        process.wait_exit(limit).await
    }

    pub(crate) fn id(&self) -> Result<u32> {
        Ok(self.running()?.id())
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn probe(&self, path: &str) -> Result<Answer> {
        self.ask(self.health_port, path, None, false).await
    }

    pub(crate) async fn metrics(&self, path: &str) -> Result<Answer> {
        self.ask(self.metrics_port, path, None, false).await
    }

    /// Returns what the dashboard's page gets first: the rows of all actors.
    pub(crate) async fn dashboard_snapshot(&self) -> Result<Value> {
        let port = self.metrics_port;
        let snapshot = tokio::task::spawn_blocking(move || http::first_event(port, "/dashboard/events", "snapshot"));
        timeout(READY_LIMIT, snapshot).await??
    }

    pub(crate) fn webhook_port(&self) -> u16 {
        self.webhook_port
    }

    pub(crate) async fn webhook(&self, path: &str, body: &Value) -> Result<Answer> {
        self.ask(self.webhook_port, path, Some(body.to_string()), true).await
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    pub(crate) fn renew_certificate(&self, authority: &Authority) -> Result<Vec<u8>> {
        self.pair.renew(authority)
    }

    /// Returns the certificate (DER) that a new connection gets, or an error if `authority` did not issue it.
    pub(crate) async fn certificate(&self, authority: &Authority) -> Result<Vec<u8>> {
        let (port, authority) = (self.webhook_port, authority.certificate().to_owned());
        timeout(READY_LIMIT, tokio::task::spawn_blocking(move || http::certificate(port, &authority))).await??
    }

    fn running(&self) -> Result<&Process> {
        self.process.as_ref().ok_or_else(|| anyhow::anyhow!("the program was killed by the test"))
    }

    fn respawn(&mut self) -> Result<()> {
        let config = self.folder.path().join("config.yaml").display().to_string();
        let arguments = ["--config".to_owned(), config];
        let binary = Path::new(env!("CARGO_BIN_EXE_gardener-resource-manager"));
        self.process = Some(Process::spawn(binary, &arguments, &self.settings.environment, &self.log_file())?);
        Ok(())
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("grm.log")
    }

    fn base(&self, source: &ControlPlane, target: &ControlPlane) -> Value {
        let connection =
            |plane: &ControlPlane| json!({"kubeconfig": plane.kubeconfig(User::Grm), "qps": 1000, "burst": 2000});
        let server = |port: u16| json!({"bindAddress": "127.0.0.1", "port": port});
        let mut webhooks = server(self.webhook_port);
        webhooks["tls"] = json!({"serverCertDir": self.folder.path().join("tls")});
        json!({
            "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
            "kind": "ResourceManagerConfiguration",
            "sourceClientConnection": connection(source),
            // Always named: an absent connection means "the cluster this runs in".
            "targetClientConnection": connection(target),
            "leaderElection": {"leaderElect": false},
            "server": {
                "webhooks": webhooks,
                "healthProbes": server(self.health_port),
                "metrics": server(self.metrics_port),
            },
            "logLevel": "info", "logFormat": "json",
            "controllers": {}, "webhooks": {},
        })
    }

    async fn ask(&self, port: u16, path: &str, body: Option<String>, tls: bool) -> Result<Answer> {
        let authority = tls.then(|| self.authority.certificate().to_owned());
        let path = path.to_owned();
        let request =
            tokio::task::spawn_blocking(move || http::request(port, &path, body.as_deref(), authority.as_deref()));
        timeout(READY_LIMIT, request).await??
    }
}

/// RFC 7386: objects are merged, `null` removes, everything else replaces.
fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (base, patch) => *base = patch.clone(),
    }
}
