//! A real control plane on loopback. Admission of ServiceAccounts is off (pods need no kube-controller-manager), and so
//! is priority and fairness. An audit log lets tests count requests per user. Both users are cluster administrators.

use std::{
    collections::BTreeMap,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    certificates::{Authority, rsa_key},
    etcd::Etcd,
    files::{folder, free_port, write},
    http,
    process::{Process, Signal},
    wait::eventually,
};

/// A cold start on a busy machine took 15 s.
const START_LIMIT: Duration = Duration::from_secs(120);

const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
"omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}"#;

pub(crate) struct ControlPlane {
    /// In the order of the enum, which is the reverse order of stopping.
    processes: BTreeMap<Component, Process>,
    folder: TempDir,
    binaries: PathBuf,
    port: u16,
    etcd_port: u16,
    apiserver_arguments: Vec<String>,
    controllers: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Starts kube-controller-manager with this `--controllers` list, for example [`Options::ALL_CONTROLLERS`].
    pub(crate) controllers: Option<String>,
    /// Content of the file for `--authorization-config`; without it the mode is RBAC.
    pub(crate) authorization_config: Option<String>,
    /// Further arguments of kube-apiserver. Of a repeated argument the last one wins.
    pub(crate) apiserver_arguments: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Component {
    Etcd,
    Apiserver,
    /// Runs garbage collection, and the controllers of namespaces, workloads and ServiceAccounts.
    ControllerManager,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Admin,
    Grm,
}

impl Options {
    pub(crate) const ALL_CONTROLLERS: &str = "*,-bootstrapsigner,-tokencleaner";

    pub(crate) fn with_controllers() -> Self {
        Self { controllers: Some(Self::ALL_CONTROLLERS.to_owned()), ..Self::default() }
    }
}

impl Component {
    fn binary(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
        }
    }
}

impl User {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Grm => "grm",
        }
    }

    pub(crate) fn token(self) -> String {
        format!("{}-token", self.name())
    }
}

impl ControlPlane {
    pub(crate) async fn start(options: Options) -> Result<Self> {
        // An error means that a provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut plane = Self {
            processes: BTreeMap::new(),
            folder: folder("control-plane-")?,
            binaries: binaries()?,
            port: free_port()?,
            etcd_port: free_port()?,
            apiserver_arguments: Vec::new(),
            controllers: options.controllers.clone(),
        };
        plane.write_files(&options)?;
        plane.start_etcd()?;
        plane.apiserver_arguments = plane.apiserver_arguments(&options);
        plane.start_apiserver().await?;
        plane.start_controller_manager()?;
        Ok(plane)
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Issues certificates of clients.
    pub(crate) fn client_authority(&self) -> Authority {
        Authority::at(self.folder.path(), "clients")
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.file("certs/apiserver.crt")
    }

    pub(crate) fn kubeconfig(&self, user: User) -> PathBuf {
        self.file(&format!("{}.kubeconfig", user.name()))
    }

    pub(crate) fn kubeconfig_with(&self, server: &str, token: &str) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": self.authority()}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        })
        .to_string()
    }

    /// A client that sends each request once: no retry hides an answer.
    pub(crate) async fn client(&self, user: User) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    pub(crate) fn log(&self, component: Component) -> String {
        self.processes.get(&component).map(Process::log).unwrap_or_default()
    }

    pub(crate) fn signal(&self, component: Component, signal: Signal) -> Result<()> {
        self.processes.get(&component).ok_or_else(|| anyhow!("{component:?} does not run"))?.signal(signal)
    }

    pub(crate) fn kill(&mut self, component: Component) {
        self.processes.remove(&component);
    }

    pub(crate) async fn restart_apiserver(&mut self) -> Result<()> {
        self.kill(Component::ControllerManager);
        self.kill(Component::Apiserver);
        self.start_apiserver().await?;
        self.start_controller_manager()
    }

    pub(crate) fn etcd(&self) -> Etcd {
        Etcd { port: self.etcd_port }
    }

    pub(crate) fn audit_mark(&self) -> u64 {
        std::fs::metadata(self.file("audit.log")).map(|file| file.len()).unwrap_or(0)
    }

    /// Returns the finished requests of `user` since `mark`, as `audit.k8s.io/v1` events (`verb`, `requestURI`,
    /// `objectRef`, `responseStatus.code`, `userAgent`). A watch is logged twice: when it starts and when it ends.
    pub(crate) fn audit(&self, user: User, mark: u64) -> Result<Vec<Value>> {
        self.audit_of(user.name(), mark)
    }

    /// Like [`Self::audit`], of any user.
    pub(crate) fn audit_of(&self, user: &str, mark: u64) -> Result<Vec<Value>> {
        let mut text = String::new();
        let mut file = std::fs::File::open(self.file("audit.log")).context("open the audit log")?;
        file.seek(SeekFrom::Start(mark))?;
        file.read_to_string(&mut text)?;
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let events = complete.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        Ok(events.into_iter().filter(|event| event["user"]["username"] == user).collect())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn write_files(&self, options: &Options) -> Result<()> {
        let folder = self.folder.path();
        rsa_key(&self.file("service-accounts.key"))?;
        Authority::create(folder, "clients")?;
        self.write_serving_certificate()?;
        write(folder, "audit-policy.json", AUDIT_POLICY)?;
        let users = [User::Admin, User::Grm];
        let tokens = users.map(|user| format!("{},{1},{1},\"system:masters\"\n", user.token(), user.name()));
        write(folder, "tokens.csv", &tokens.concat())?;
        for user in users {
            let content = self.kubeconfig_with(&self.url(), &user.token());
            write(folder, &format!("{}.kubeconfig", user.name()), &content)?;
        }
        if let Some(content) = &options.authorization_config {
            write(folder, "authorization.yaml", content)?;
        }
        Ok(())
    }

    /// With its own certificate the server would be known by its address only, not as `localhost`.
    fn write_serving_certificate(&self) -> Result<()> {
        let folder = self.folder.path();
        std::fs::create_dir(self.file("certs"))?;
        let authority = Authority::create(folder, "server")?;
        authority.issue(&self.authority(), &self.file("certs/apiserver.key"))?;
        let chain = [std::fs::read_to_string(self.authority())?, authority.pem()?].concat();
        write(folder, "certs/apiserver.crt", &chain).map(drop)
    }

    fn spawn(&mut self, component: Component, arguments: &[String]) -> Result<()> {
        let log = self.file(&format!("{}.log", component.binary()));
        let process = Process::spawn(&self.binaries.join(component.binary()), arguments, &[], &log)?;
        self.processes.insert(component, process);
        Ok(())
    }

    fn start_etcd(&mut self) -> Result<()> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let arguments = [
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.spawn(Component::Etcd, &arguments)
    }

    fn apiserver_arguments(&self, options: &Options) -> Vec<String> {
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            format!("--secure-port={}", self.port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path("certs")),
            format!("--client-ca-file={}", self.path("clients.crt")),
            format!("--service-account-key-file={}", self.path("service-accounts.key")),
            format!("--service-account-signing-key-file={}", self.path("service-accounts.key")),
            format!("--service-account-issuer={}", self.url()),
            // As Gardener deploys it.
            "--api-audiences=kubernetes,gardener".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--audit-policy-file={}", self.path("audit-policy.json")),
            format!("--audit-log-path={}", self.path("audit.log")),
            // In MB. The log must not be rotated: marks are positions in it.
            "--audit-log-maxsize=2000".to_owned(),
            "--enable-priority-and-fairness=false".to_owned(),
            "--max-requests-inflight=0".to_owned(),
            "--max-mutating-requests-inflight=0".to_owned(),
        ];
        arguments.push(match options.authorization_config {
            Some(_) => format!("--authorization-config={}", self.path("authorization.yaml")),
            None => "--authorization-mode=RBAC".to_owned(),
        });
        arguments.extend(options.apiserver_arguments.iter().cloned());
        arguments
    }

    async fn start_apiserver(&mut self) -> Result<()> {
        self.spawn(Component::Apiserver, &self.apiserver_arguments.clone())?;
        eventually("kube-apiserver is ready", START_LIMIT, async || self.ask_ready().await).await?
    }

    /// An outer error means: ask again. An inner error means that the server will never be ready.
    async fn ask_ready(&mut self) -> Result<Result<()>> {
        for process in self.processes.values_mut() {
            if let Err(ended) = process.check_running() {
                return Ok(Err(ended));
            }
        }
        let request = ::http::Request::get("/readyz").body(Vec::new())?;
        let client = self.client(User::Admin).await?;
        tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await??;
        Ok(Ok(()))
    }

    fn start_controller_manager(&mut self) -> Result<()> {
        let Some(controllers) = &self.controllers else { return Ok(()) };
        let kubeconfig = self.kubeconfig(User::Admin).display().to_string();
        let arguments = [
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--controllers={controllers}"),
            "--leader-elect=false".to_owned(),
            format!("--service-account-private-key-file={}", self.path("service-accounts.key")),
            format!("--root-ca-file={}", self.authority().display()),
            format!("--cluster-signing-cert-file={}", self.path("clients.crt")),
            format!("--cluster-signing-key-file={}", self.path("clients.key")),
            format!("--secure-port={}", free_port()?),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", self.path("controller-manager-certs")),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=500".to_owned(),
        ];
        self.spawn(Component::ControllerManager, &arguments)
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        while let Some((_, process)) = self.processes.pop_last() {
            drop(process);
        }
    }
}

fn binaries() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/controlplane/build");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("start {}", script.display()))?;
    if !output.status.success() {
        bail!("{} failed ({}); its messages are above", script.display(), output.status);
    }
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().ok_or_else(|| anyhow!("{} printed nothing", script.display()))?;
    Ok(PathBuf::from(last))
}
