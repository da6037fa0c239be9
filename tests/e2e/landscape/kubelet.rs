//! Starts the container of a Deployment as a kubelet does: volumes have what the API server has, mount paths, arguments
//! and environment are those of the Pod template. Containers share the network of the machine.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{LIMIT, Landscape};
use crate::{
    objects::core,
    support::{Answer, Process, Signal, eventually, folder, request},
};

const CONTAINER: &str = include_str!("container.sh");

type Files = BTreeMap<String, Vec<u8>>;

pub(super) struct Pod<'a> {
    landscape: &'a Landscape,
    namespace: String,
    template: Value,
    folder: TempDir,
    process: Process,
    ports: Ports,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    health: u16,
    metrics: u16,
    /// gardener-controller-manager has no webhooks.
    webhooks: Option<u16>,
}

impl<'a> Pod<'a> {
    /// Fails if a volume has no content yet, as a kubelet then does not start the container.
    pub(super) async fn start(landscape: &'a Landscape, deployment: &Value) -> Result<Self> {
        let namespace = deployment["metadata"]["namespace"].as_str().context("a namespace")?.to_owned();
        let (folder, template) = (folder("pod-")?, deployment["spec"]["template"].clone());
        fs::create_dir(folder.path().join("root"))?;
        let volumes = Volumes { landscape, namespace: &namespace, spec: &template["spec"] };
        volumes.write(folder.path()).await?;
        let ports = ports(&volumes.configuration().await?)?;
        let process = spawn(landscape, &template["spec"], folder.path())?;
        Ok(Self { landscape, namespace, template, folder, process, ports })
    }

    /// Writes the volumes again, as a kubelet does once a minute.
    pub(super) async fn refresh(&self) -> Result<()> {
        let volumes = Volumes { landscape: self.landscape, namespace: &self.namespace, spec: &self.template["spec"] };
        volumes.write(self.folder.path()).await
    }

    pub(super) async fn wait_ready(&mut self) -> Result<Duration> {
        let start = Instant::now();
        eventually("the Pod is ready", LIMIT, async || {
            if let Err(ended) = self.process.check_running() {
                return Ok(Err(ended));
            }
            let answer = self.probe("/readyz").await?;
            ensure!(answer.code == 200, "/readyz: {} {}", answer.code, answer.body);
            Ok(Ok(()))
        })
        .await??;
        Ok(start.elapsed())
    }

    /// Fails with the end of the log if the container has ended.
    pub(super) async fn ensure_alive(&mut self) -> Result<()> {
        self.process.check_running()?;
        let answer = eventually("the Pod answers its probe", LIMIT, async || self.probe("/healthz").await).await?;
        ensure!(answer.code == 200, "/healthz: {} {}", answer.code, answer.body);
        Ok(())
    }

    pub(super) async fn probe(&self, path: &str) -> Result<Answer> {
        ask(self.ports.health, path, None, None).await
    }

    pub(super) async fn metrics(&self) -> Result<String> {
        Ok(ask(self.ports.metrics, "/metrics", None, None).await?.body)
    }

    /// Sends a review over TLS; the certificate must have been issued by the authority of this PEM file.
    pub(super) async fn review(&self, path: &str, body: &Value, authority: &Path) -> Result<Answer> {
        let port = self.ports.webhooks.context("a port of webhooks")?;
        ask(port, path, Some(body.to_string()), Some(authority.to_owned())).await
    }

    pub(super) fn log(&self) -> String {
        self.process.log()
    }

    /// Waits until the container has printed this text.
    pub(super) async fn logs(&self, text: &str, limit: Duration) -> Result<()> {
        eventually(&format!("the log has {text:?}"), limit, async || {
            ensure!(self.log().contains(text), "{}", self.log());
            Ok(())
        })
        .await
    }

    pub(super) async fn terminate(&mut self, limit: Duration) -> Result<(ExitStatus, Duration)> {
        let begin = Instant::now();
        self.process.signal(Signal::Terminate)?;
        let status = self.process.wait_exit(limit).await.with_context(|| self.log())?;
        Ok((status, begin.elapsed()))
    }
}

fn spawn(landscape: &Landscape, spec: &Value, folder: &Path) -> Result<Process> {
    let container = &spec["containers"][0];
    let name = container["name"].as_str().context("a container has a name")?;
    let program = program(name)?;
    let text = |path: PathBuf| path.display().to_string();
    let mut arguments: Vec<String> =
        ["--user", "--map-root-user", "--mount", "sh", "-c", CONTAINER, "container"].map(str::to_owned).to_vec();
    arguments.extend([text(folder.join("root")), text(program.to_owned())]);
    for mount in container["volumeMounts"].as_array().into_iter().flatten() {
        let name = mount["name"].as_str().context("a mount has a name")?;
        let path = mount["mountPath"].as_str().context("a mount has a path")?;
        arguments.extend([text(folder.join(name)), path.to_owned()]);
    }
    arguments.push("--".to_owned());
    let mut environment = BTreeMap::from([
        ("KUBERNETES_SERVICE_HOST".to_owned(), "127.0.0.1".to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), landscape.cluster.port().to_string()),
    ]);
    for variable in container["env"].as_array().into_iter().flatten() {
        let field = |name: &str| variable[name].as_str().unwrap_or_default().to_owned();
        environment.insert(field("name"), field("value"));
    }
    arguments.extend(environment.iter().map(|(name, value)| format!("{name}={value}")));
    arguments.push(format!("/{name}"));
    let own = container["args"].as_array().into_iter().flatten();
    arguments.extend(own.map(|argument| argument.as_str().unwrap_or_default().to_owned()));
    Process::spawn(Path::new("unshare"), &arguments, &[], &folder.join("log"))
}

/// Returns the built program of a container.
fn program(container: &str) -> Result<&'static Path> {
    let path = match container {
        "gardener-resource-manager" => env!("CARGO_BIN_EXE_gardener-resource-manager"),
        "gardener-controller-manager" => env!("CARGO_BIN_EXE_gardener-controller-manager"),
        other => bail!("no program is known for the container {other}"),
    };
    Ok(Path::new(path))
}

fn ports(config: &Files) -> Result<Ports> {
    let text = config.get("config.yaml").context("a configuration")?;
    let config: Value = serde_saphyr::from_str(&String::from_utf8_lossy(text))?;
    let port = |server: &str| config["server"][server]["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    let [health, metrics] =
        ["healthProbes", "metrics"].map(|server| port(server).with_context(|| format!("a port of {server}")));
    Ok(Ports { health: health?, metrics: metrics?, webhooks: port("webhooks") })
}

async fn ask(port: u16, path: &str, body: Option<String>, authority: Option<PathBuf>) -> Result<Answer> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || request(port, &path, body.as_deref(), authority.as_deref())).await?
}

struct Volumes<'a> {
    landscape: &'a Landscape,
    namespace: &'a str,
    spec: &'a Value,
}

impl Volumes<'_> {
    async fn write(&self, folder: &Path) -> Result<()> {
        for volume in self.spec["volumes"].as_array().into_iter().flatten() {
            let name = volume["name"].as_str().context("a volume has a name")?;
            write(&folder.join(name), &self.read(name).await?)?;
        }
        Ok(())
    }

    /// Returns the files in the folder of the configuration file.
    async fn configuration(&self) -> Result<Files> {
        let container = &self.spec["containers"][0];
        let arguments = container["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let file =
            arguments.filter_map(|argument| argument.strip_prefix("--config=")).next().context("a configuration")?;
        let folder = Path::new(file).parent().and_then(Path::to_str).context("a folder of the configuration")?;
        let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
        let mount =
            mounts.find(|mount| mount["mountPath"] == folder).with_context(|| format!("no mount at {folder}"))?;
        self.read(mount["name"].as_str().context("a mount has a name")?).await
    }

    async fn read(&self, name: &str) -> Result<Files> {
        let volumes = self.spec["volumes"].as_array().into_iter().flatten();
        let volume = volumes.clone().find(|volume| volume["name"] == name).with_context(|| format!("volume {name}"))?;
        let mut files = Files::new();
        if let Some(sources) = volume["projected"]["sources"].as_array() {
            for source in sources {
                files.extend(self.source(source).await.with_context(|| format!("volume {name}"))?);
            }
        } else {
            files.extend(self.source(volume).await.with_context(|| format!("volume {name}"))?);
        }
        Ok(files)
    }

    async fn source(&self, source: &Value) -> Result<Files> {
        if let Some(token) = source.get("serviceAccountToken") {
            let path = token["path"].as_str().context("a path of the token")?;
            let token = self.token(token["expirationSeconds"].as_u64().unwrap_or(3600)).await?;
            return Ok(Files::from([(path.to_owned(), token.into_bytes())]));
        }
        if source.get("downwardAPI").is_some() {
            return Ok(Files::from([("namespace".to_owned(), self.namespace.as_bytes().to_vec())]));
        }
        let (plural, from) = match (source.get("secret"), source.get("configMap")) {
            (Some(from), _) => ("secrets", from),
            (_, Some(from)) => ("configmaps", from),
            _ => return Err(anyhow!("unknown source {source}")),
        };
        let name = from["secretName"].as_str().or(from["name"].as_str()).context("a source has a name")?;
        let object = self.landscape.admin.get(&format!("{}/{name}", core(self.namespace, plural))).await?;
        let mut data = Files::new();
        for (key, value) in object["data"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default();
            let value = if plural == "secrets" { BASE64_STANDARD.decode(value)? } else { value.as_bytes().to_vec() };
            data.insert(key.clone(), value);
        }
        let Some(items) = from["items"].as_array() else { return Ok(data) };
        let item = |item: &Value| {
            let (key, path) = (item["key"].as_str().unwrap_or_default(), item["path"].as_str().unwrap_or_default());
            let value = data.get(key).with_context(|| format!("{name} has no key {key}"))?;
            Ok((path.to_owned(), value.clone()))
        };
        items.iter().map(item).collect()
    }

    async fn token(&self, seconds: u64) -> Result<String> {
        let account = self.spec["serviceAccountName"].as_str().context("a ServiceAccount")?;
        issue(self.landscape, self.namespace, account, seconds).await
    }
}

/// Returns a token of a ServiceAccount.
pub(super) async fn issue(landscape: &Landscape, namespace: &str, account: &str, seconds: u64) -> Result<String> {
    let path = format!("{}/{account}/token", core(namespace, "serviceaccounts"));
    let body = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": seconds }
    });
    let (code, answer) = landscape.admin.send(Method::POST, &path, Some(&body)).await?;
    ensure!(code == 201, "POST {path}: {code} {answer}");
    answer["status"]["token"].as_str().map(str::to_owned).context("an answer with a token")
}

/// Files are links into a folder that is replaced as a whole.
fn write(volume: &Path, files: &Files) -> Result<()> {
    fs::create_dir_all(volume)?;
    let data = tempfile::Builder::new().prefix("..").tempdir_in(volume)?.keep();
    for (name, content) in files {
        fs::write(data.join(name), content)?;
    }
    let link = volume.join("..data_tmp");
    symlink(data.file_name().context("a name of the folder")?, &link)?;
    fs::rename(&link, volume.join("..data"))?;
    for name in files.keys() {
        let file = volume.join(name);
        if file.symlink_metadata().is_err() {
            symlink(Path::new("..data").join(name), file)?;
        }
    }
    Ok(())
}
