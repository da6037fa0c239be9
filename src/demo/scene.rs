//! The scene: an in-memory cluster with the program, a user with `kubectl`, and waits for expected conditions.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::Duration,
};

use cluster::user_agent;
use http::{Method, Request, header};
use kit::{Activity, ActorState, Clock, Random};
use process::config::{PlainServer, Workers};
use serde_json::Value;
use sim::{ClientOptions, PutError, Sim, SimOptions};
use tokio::time::{Instant, sleep};

use super::{
    Missed,
    certificates::{CertificateError, ServingCertificate},
    demo_object::DemoObject,
    examples::{Example, NAMESPACE},
    journal::Journal,
    program::{DemoProgram, PROGRAM, ProgramError},
    rollouts::{self, roll_out},
};
use crate::{
    api::{
        config::resource_manager::{self as config, Config, ConfigError, GarbageCollector},
        meta::conditions::Condition,
        resources::{condition_names::RESOURCES_APPLIED, crd, keys::ORIGIN, managed_resource::ManagedResource},
    },
    cli::BuildInfo,
};

pub(super) const LATENCY: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(10);
const LIMIT_OF_ALL: Duration = Duration::from_secs(60); // time limit of all conditions together, from the beginning
const POLL: Duration = Duration::from_millis(1);
const QUIET: Duration = Duration::from_millis(100); // the program is idle after this time without requests
const UNLIMITED: f64 = -1.0; // requests per second
const MANY_WORKERS: Workers = Workers::new(20);

const LOOPBACK: &str = "127.0.0.1";

const MANAGED_RESOURCES: &str = "managedresources.resources.gardener.cloud";

pub(super) struct Scene {
    sim: Sim,
    kubectl: kube::Client,
    certificate: ServingCertificate,
    config: RefCell<Config>,
    version: BuildInfo,
    program: RefCell<Option<DemoProgram>>,
    sabotage: Rc<Cell<bool>>,
    end: Instant,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SceneError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the definition of ManagedResources is no YAML: {0}")]
    Definition(String),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error(transparent)]
    Put(#[from] PutError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl Scene {
    /// An empty cluster for the story, whose requests are recorded.
    pub(super) fn for_story() -> Result<Self, SceneError> {
        Self::new(true)
    }

    /// An empty cluster for many bundles. The program may send as many requests as it can.
    pub(super) fn for_many_bundles() -> Result<Self, SceneError> {
        let scene = Self::new(false)?;
        let mut config = scene.config.borrow_mut();
        (config.source.qps, config.target.qps) = (UNLIMITED, UNLIMITED);
        config.controllers.managed_resource.concurrent_syncs = MANY_WORKERS;
        config.controllers.health.concurrent_syncs = MANY_WORKERS;
        config.controllers.garbage_collector = GarbageCollector::default().into();
        drop(config);
        Ok(scene)
    }

    fn new(recording: bool) -> Result<Self, SceneError> {
        let options = SimOptions::new(Clock::system(), Random::from_entropy());
        let sim = Sim::new(SimOptions { latency: LATENCY, recording, ..options });
        sim.set_reviewer(|_| (true, String::new()));
        actix::spawn(roll_out(sim.clone()));
        let definition: Value = serde_saphyr::from_str(crd::MANAGED_RESOURCES)
            .map_err(|error| SceneError::Definition(error.to_string()))?;
        sim.put(definition)?;
        let certificate = ServingCertificate::create()?;
        let mut config = config::load(include_bytes!("../../config/demo.yaml"))?.config;
        let anywhere = PlainServer { bind_address: LOOPBACK.to_owned(), port: 0 };
        config.server.metrics.listen(anywhere.clone());
        config.server.health_probes = anywhere;
        let webhooks = &mut config.server.webhooks;
        (webhooks.bind_address, webhooks.port) = (LOOPBACK.to_owned(), 0);
        webhooks.tls.server_cert_dir = certificate.folder().display().to_string();
        Ok(Self {
            kubectl: sim.client_as("operator", "kubectl/v1.36.0"),
            sim,
            certificate,
            config: RefCell::new(config),
            version: BuildInfo::of_this_binary(),
            program: RefCell::default(),
            sabotage: Rc::default(),
            end: Instant::now() + LIMIT_OF_ALL,
        })
    }

    /// Prefers the ports of the last run, so that a browser finds the dashboard again.
    pub(super) fn start(&self) -> Result<(), SceneError> {
        let mut config = self.config.borrow_mut();
        let start = |config: &Config| {
            let user_agent = user_agent(PROGRAM, &self.version.version, &self.version.git_commit, false);
            let client = self.sim.client_of(ClientOptions {
                user: PROGRAM.to_owned(),
                groups: vec!["system:masters".to_owned()],
                user_agent,
                process: sim::Process::new(),
            });
            DemoProgram::start(config, &self.version.version, client, self.sabotage.clone())
        };
        let program = start(&config).or_else(|_| {
            set_ports(&mut config, [0; 3]);
            start(&config)
        })?;
        set_ports(&mut config, program.ports());
        self.program.replace(Some(program));
        Ok(())
    }

    pub(super) async fn stop(&self, patience: Duration) {
        let program = self.program.borrow_mut().take();
        if let Some(program) = program {
            program.stop(patience).await;
        }
    }

    pub(super) async fn ready(&self) -> Result<(), Missed> {
        let root_leads = || self.actors().iter().any(|actor| actor.path == "root" && actor.line == "leads");
        self.wait("the program is ready", || match self.readiness() {
            Ok(()) if root_leads() => Ok(()),
            Ok(()) => Err("its stores are filled, but its controllers do not run".to_owned()),
            Err(answer) => Err(answer),
        })
        .await
    }

    fn readiness(&self) -> Result<(), String> {
        self.program
            .borrow()
            .as_ref()
            .map_or_else(|| Err("the program does not run".to_owned()), DemoProgram::readiness)
    }

    /// Stores an object past the API, as if it had been there before.
    pub(super) fn put(&self, object: Value) -> Result<(), SceneError> {
        Ok(self.sim.put(object).map(drop)?)
    }

    /// Returns what `look` finds in each object of a resource, which is written as for kubectl.
    pub(super) fn look_at_all<T>(&self, resource: &str, look: impl FnMut(&Value) -> T) -> Vec<T> {
        self.sim.look_at_all(resource, look)
    }

    /// Returns what `look` finds in each ManagedResource.
    pub(super) fn managed_resources<T>(&self, look: impl FnMut(&Value) -> T) -> Vec<T> {
        self.look_at_all(MANAGED_RESOURCES, look)
    }

    pub(super) fn is_rolled_out(&self) -> bool {
        rollouts::are_done(&self.sim)
    }

    /// Waits until the actors of all ManagedResources are idle and the program sends no requests.
    pub(super) async fn until_idle(&self) -> Result<(), Missed> {
        let (mut asked, mut since) = (self.asked(), Instant::now());
        self.wait("the actors of all ManagedResources are idle", || {
            let (now, bundles) = (self.asked(), self.sim.objects(MANAGED_RESOURCES).len());
            if now != asked {
                (asked, since) = (now, Instant::now());
            }
            let actors = self.actors().into_iter().filter(|actor| actor.path.starts_with("managedresource/"));
            let resting = actors.filter(|actor| rests(actor) && actor.next_timer.is_some()).count();
            match since.elapsed() >= QUIET && resting == bundles {
                true => Ok(()),
                false => Err(format!("{resting} of {bundles} are, and {now} requests have been made")),
            }
        })
        .await
    }

    pub(super) fn sabotage(&self) {
        self.sabotage.set(true);
    }

    /// A client that trusts the certificate of the webhooks, and nothing else.
    pub(super) fn webhook_client(&self) -> Result<kube::Client, Missed> {
        let failed = |found: String| Missed::new("the webhooks can be reached", found);
        let url = self.webhook_url("").parse().map_err(|_| failed("the address is no URL".to_owned()))?;
        let mut config = kube::Config::new(url);
        config.root_cert = Some(vec![self.certificate.authority()]);
        kube::Client::try_from(config).map_err(|error| failed(error.to_string()))
    }

    pub(super) fn webhook_url(&self, path: &str) -> String {
        let address = self.program.borrow().as_ref().and_then(DemoProgram::webhook_address);
        format!("https://{}{path}", address.map(|address| address.to_string()).unwrap_or_default())
    }

    pub(super) fn url(&self, path: &str) -> String {
        let address = self.program.borrow().as_ref().and_then(DemoProgram::metrics_address);
        format!("http://{}{path}", address.map(|address| address.to_string()).unwrap_or_default())
    }

    fn actors(&self) -> Vec<ActorState> {
        self.program.borrow().as_ref().map(DemoProgram::actors).unwrap_or_default()
    }

    pub(super) fn actor(&self, bundle: &str) -> Option<ActorState> {
        let path = format!("managedresource/{NAMESPACE}/{bundle}");
        self.actors().into_iter().find(|actor| actor.path == path)
    }

    pub(super) fn actor_count(&self) -> usize {
        self.actors().len()
    }

    /// The lines of a metric, without those that are 0.
    pub(super) fn nonzero_series(&self, name: &str) -> Vec<String> {
        let text = self.program.borrow().as_ref().map(DemoProgram::render_metrics).unwrap_or_default();
        text.lines().filter(|line| line.starts_with(name) && !line.ends_with(" 0")).map(str::to_owned).collect()
    }
}

fn set_ports(config: &mut Config, [metrics, probes, webhooks]: [u16; 3]) {
    config.server.metrics.port = metrics.into();
    config.server.health_probes.port = probes.into();
    config.server.webhooks.port = webhooks.into();
}

impl Scene {
    pub(super) async fn apply(&self, example: &Example) -> Result<(), Missed> {
        self.create(DemoObject::secret(example.secret), &example.secret()).await?;
        self.create(DemoObject::bundle(example.name), &example.managed_resource()).await
    }

    pub(super) async fn create(&self, place: DemoObject<'_>, object: &Value) -> Result<(), Missed> {
        self.send(Method::POST, &place.collection(), "application/json", Some(object)).await.map(drop)
    }

    /// Creates an object as another user.
    pub(super) async fn create_as(&self, user: &str, place: DemoObject<'_>, object: &Value) -> Result<(), Missed> {
        let client = self.sim.client_as(user, "kubelet/v1.36.0");
        send(&client, Method::POST, &place.collection(), "application/json", Some(object)).await.map(drop)
    }

    pub(super) async fn patch(&self, place: DemoObject<'_>, patch: &Value) -> Result<Value, Missed> {
        self.send(Method::PATCH, &place.path(), "application/merge-patch+json", Some(patch)).await
    }

    pub(super) async fn delete(&self, place: DemoObject<'_>) -> Result<(), Missed> {
        self.send(Method::DELETE, &place.path(), "application/json", None).await.map(drop)
    }

    /// Deletes an object by hand, waits for a new one, and returns the time.
    pub(super) async fn replaced(&self, place: DemoObject<'_>) -> Result<Duration, Missed> {
        let old = self.text(place, "/metadata/uid");
        self.delete(place).await?;
        let begin = Instant::now();
        let expected = format!("{}/{} exists again", place.resource, place.name);
        self.wait(&expected, || match self.text(place, "/metadata/uid") {
            uid if uid.is_empty() => Err("it does not exist".to_owned()),
            uid if uid == old => Err("the old one still exists".to_owned()),
            _ => Ok(()),
        })
        .await?;
        Ok(begin.elapsed())
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: Option<&Value>) -> Result<Value, Missed> {
        send(&self.kubectl, method, path, content, body).await
    }
}

async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    content: &str,
    body: Option<&Value>,
) -> Result<Value, Missed> {
    let expected = format!("the request {method} {path} is carried out");
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content).body(body);
    let request = request.map_err(|error| Missed::new(&expected, error.to_string()))?;
    let answer = client.request(request).await;
    answer.map_err(|error| Missed::new(expected, error.to_string()))
}

impl Scene {
    pub(super) fn object(&self, place: DemoObject<'_>) -> Option<Value> {
        self.sim.object(&place.for_kubectl(), place.namespace, place.name)
    }

    pub(super) fn text(&self, place: DemoObject<'_>, field: &str) -> String {
        let object = self.object(place).unwrap_or_default();
        object.pointer(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn managed_resource(&self, bundle: &str) -> ManagedResource {
        let object = self.sim.object(MANAGED_RESOURCES, NAMESPACE, bundle);
        object.and_then(|object| ManagedResource::from_value(&object).ok()).unwrap_or_default()
    }

    pub(super) fn condition(&self, bundle: &str) -> Option<Condition> {
        self.managed_resource(bundle).condition(RESOURCES_APPLIED).cloned()
    }

    pub(super) async fn reports(&self, bundle: &'static str, reason: &str) -> Result<Condition, Missed> {
        self.wait(&format!("ManagedResource {bundle} has ResourcesApplied with reason {reason}"), || {
            let mr = self.managed_resource(bundle);
            let is_current = mr.status.observed_generation == mr.metadata.generation;
            match mr.condition(RESOURCES_APPLIED) {
                Some(condition) if is_current && condition.reason == reason => Ok(condition.clone()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    pub(super) fn creations(&self, journal: &Journal, bundle: &str) -> Vec<String> {
        let origin = format!("{NAMESPACE}/{bundle}");
        let mut named = Vec::new();
        for (resource, namespace) in journal.created() {
            let mut objects: Vec<_> = self.sim.objects(&resource);
            objects.retain(|object| {
                let metadata = &object["metadata"];
                metadata["namespace"].as_str().unwrap_or_default() == namespace
                    && metadata["annotations"][ORIGIN].as_str().is_some_and(|found| found.ends_with(&origin))
            });
            objects.sort_by_key(|object| {
                object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok())
            });
            let plural = resource.split('.').next().unwrap_or_default();
            let names = objects.iter().filter_map(|object| object["metadata"]["name"].as_str());
            let new = names.map(|name| format!("{plural}/{name}")).find(|name| !named.contains(name));
            named.extend(new);
        }
        named
    }

    pub(super) fn mark(&self) -> u64 {
        self.sim.requests().last().map_or(0, |last| last.info.number)
    }

    pub(super) fn journal(&self, mark: u64) -> Journal {
        let requests = self.sim.requests().into_iter();
        Journal::new(requests.filter(|request| request.info.number > mark && request.info.user == PROGRAM).collect())
    }

    /// Stops recording requests: they are not needed any more, and would fill the memory of a long run.
    pub(super) fn forget_requests(&self) {
        self.sim.set_recording(false);
        self.sim.clear_requests();
    }

    fn asked(&self) -> u64 {
        self.sim.counts().values().sum()
    }

    /// Returns the first `Ok` of `probe`. Fails with its last `Err` if it does not come in time.
    pub(super) async fn wait<T>(&self, expected: &str, probe: impl FnMut() -> Result<T, String>) -> Result<T, Missed> {
        self.wait_for(LIMIT, expected, probe).await
    }

    /// Like [`Self::wait`], with a limit of its own.
    pub(super) async fn wait_for<T>(
        &self,
        limit: Duration,
        expected: &str,
        probe: impl FnMut() -> Result<T, String>,
    ) -> Result<T, Missed> {
        eventually(self.end.min(Instant::now() + limit), expected, probe).await
    }
}

async fn eventually<T>(
    limit: Instant,
    expected: &str,
    mut probe: impl FnMut() -> Result<T, String>,
) -> Result<T, Missed> {
    loop {
        match probe() {
            Ok(seen) => return Ok(seen),
            Err(found) if Instant::now() >= limit => return Err(Missed::new(expected, found)),
            Err(_) => sleep(POLL).await,
        }
    }
}

impl From<SceneError> for Missed {
    fn from(error: SceneError) -> Self {
        Self::new("the program starts", error.to_string())
    }
}

/// Returns true for an actor with nothing to do. If its ManagedResource has a problem, it is failing meanwhile.
pub(super) fn rests(actor: &ActorState) -> bool {
    matches!(actor.activity, Activity::Idle | Activity::Failing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wait_fails_with_the_actual_state() {
        let mut looks = 0;
        let begin = Instant::now();

        let result = eventually(begin + LIMIT, "a miracle", || {
            looks += 1;
            Err::<(), _>(format!("nothing, {looks} times"))
        })
        .await;

        assert_eq!(begin.elapsed(), LIMIT);
        assert_eq!(result, Err(Missed::new("a miracle", format!("nothing, {looks} times"))));
    }
}
