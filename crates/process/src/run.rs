//! The production process, in the order of spec 70 §7.

use std::{io, io::Write as _, path::Path, rc::Rc, sync::Arc, time::Duration};

use actix::System;
use futures::future::join;
use kit::{Clock, Cpu, Deadline, Env, Fatal, Random, StatusRegistry, json};
use tokio::{sync::watch, time::timeout_at};

use crate::{
    BuildInfo, ConnectError, GRACE_PERIOD, PATIENCE, Process, ProcessError, ProcessParts, Program, Services,
    StartError, UserAgents, Vitals,
    command_line::SharedOptions,
    dashboard::server::{
        self, Leadership as ShownLeadership, ProcessInfo, ServeError, ServerHandles, ServerOptions, Sources,
    },
    http::probes::Checks,
    leader::{ElectionError, Leadership},
    limits, logging,
    metrics::Metrics,
    profiling,
    program::ServiceParts,
    settings::Settings,
    signals::{self, Impatience},
    traces, watchdog,
};

const CPU_JOBS: usize = 2;
/// Rest of the grace period for probes and metrics after the last reviews are cut off.
const SERVERS_END: Duration = Duration::from_millis(500);
const LAST_RECORDS: Duration = Duration::from_millis(500);
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Logs what is remarkable about a configuration.
pub type AnnounceFn<P> = dyn FnOnce(&<P as Program>::Config);

/// Finds the clusters of a program.
pub type ConnectFn<P> = Box<
    dyn FnOnce(&<P as Program>::Config, &UserAgents) -> Result<(<P as Program>::Links, kube::Client), ConnectError>,
>;

/// What a program found out before the process starts.
pub struct Start<P: Program> {
    /// The flags that all programs have.
    pub options: SharedOptions,
    /// `FLAG: --<name>=<value>` for each given flag, to log.
    pub flags: Vec<String>,
    /// The effective configuration as it is printed, without credentials, to log.
    pub configuration: String,
    /// Shown with an error before there is a log.
    pub usage: String,
    /// The effective configuration.
    pub config: P::Config,
    /// Logs what is remarkable about the configuration, as soon as there is a log.
    pub announce: Box<AnnounceFn<P>>,
    /// Finds the clusters. Returns the links, and the client of the leader election.
    pub connect: ConnectFn<P>,
}

/// Why the process ends with exit code 1 after the log is set up.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Services(#[from] StartError),
    #[error(transparent)]
    Election(#[from] ElectionError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Spec 70 §13.
    #[error("failed waiting for all runnables to end within grace period of 5s: context deadline exceeded")]
    GracePeriod,
}

/// Runs the program until the end; returns the exit code (spec 70 §13).
pub fn run<P: Program>(start: Start<P>) -> i32 {
    let settings = P::settings(&start.config);
    let heap_profiles = if settings.debugging.enable_profiling {
        profiling::prepare(start.options.config.as_deref().map(Path::new))
    } else {
        Ok(())
    };
    let (spans, traces) = match traces::start(P::NAME, &|variable| std::env::var(variable).ok()) {
        Ok((spans, traces)) => (spans, Ok(traces)),
        Err(error) => (None, Err(error)),
    };
    let (log, switch) = match logging::init(settings.logging, Arc::new(Clock::system_wall), spans) {
        Ok((log, switch)) => (Arc::new(log), switch),
        Err(error) => return refuse(&error.to_string(), &start.usage),
    };
    let _end = EndOfLog(log.clone());
    logging::log_panics();
    if let Err(error) = &traces {
        tracing::warn!(%error, "There are no traces");
    }
    if let Err(error) = &heap_profiles {
        tracing::warn!(%error, "There are no heap profiles");
    }
    let result = run_logged(start, settings, &log, switch);
    if let Err(error) = &result {
        report(error);
    }
    if let Ok(traces) = traces {
        traces.finish(LAST_SPANS);
    }
    i32::from(result.is_err())
}

/// Writes the waiting records at the end, also after a panic.
struct EndOfLog(Arc<logging::Handle>);

impl Drop for EndOfLog {
    fn drop(&mut self) {
        self.0.finish(LAST_RECORDS);
    }
}

fn run_logged<P: Program>(
    start: Start<P>,
    settings: Settings,
    log: &Arc<logging::Handle>,
    mut switch: logging::Switch,
) -> Result<(), RunError> {
    let Start { options, flags, configuration, config, announce, connect, .. } = start;
    let version = options.version;
    let for_the_end = log.clone();
    let signalled = signals::listen(move |why| end(why, &for_the_end), move || switch.toggle())?;
    tracing::info!(
        version = version.version,
        git_commit = version.git_commit,
        git_tree_state = version.git_tree_state,
        build_date = version.build_date,
        platform = version.platform,
        "Starting {}",
        P::NAME
    );
    for line in flags {
        tracing::info!("{line}");
    }
    tracing::info!(configuration, "Configuration in force");
    announce(&config);
    limits::raise();
    rustls::crypto::ring::default_provider().install_default().ok();
    // The pool's threads decode bundles and need large stacks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(json::STACK).build()?;
    System::with_tokio_rt(|| runtime).block_on(serve::<P>(config, settings, version, connect, signalled))
}

async fn serve<P: Program>(
    config: P::Config,
    settings: Settings,
    version: BuildInfo,
    connect: ConnectFn<P>,
    mut signalled: watch::Receiver<bool>,
) -> Result<(), RunError> {
    // Clients need the runtime.
    let (links, election) = connect(&config, &UserAgents::new(P::NAME, &version))?;
    let (config, version) = (Rc::new(config), version.version);
    let status_registry = StatusRegistry::default();
    let metrics = Metrics::new(P::METRICS, P::CLUSTERS, &version, status_registry.clone());
    metrics.config_hash(&settings.hash);

    let host = host_name();
    let vitals = Vitals::new::<P>();
    tracing::info!("Setting up manager");
    let mut readiness = vitals.readiness();
    let descriptors = limits::descriptors();
    let service_parts = ServiceParts {
        metrics: metrics.clone(),
        status_registry: status_registry.clone(),
        vitals: vitals.clone(),
        descriptors,
    };
    let mut services = P::Services::prepare(&config, service_parts, &mut readiness)?;
    let servers = serve_http::<P>(&version, &settings, &host, &vitals, readiness, &metrics, &status_registry)?;
    watchdog::start(metrics.clone())?;
    let env = Env {
        clock: Clock::system(),
        random: Random::from_entropy(),
        status_registry,
        cpu: Cpu::pool(CPU_JOBS),
        observers: Rc::new(metrics.clone()),
        fatal: Fatal::default(),
        sync_timeout: settings.cache_sync_timeout,
    };
    show_leadership(&settings, &vitals, &metrics);

    tracing::info!("Starting manager");
    let mut process = Process::<P>::start(ProcessParts {
        links,
        election: Some(election),
        host,
        config,
        env,
        requests: Rc::new(metrics),
        vitals,
    })?;
    services.start(&process)?;

    let first_signal = async move { drop(signalled.wait_for(|signalled| *signalled).await) };
    let error = tokio::select! {
        biased;
        error = process.ended() => error,
        () = first_signal => return stop(process, services, servers).await,
    };
    match &error {
        ProcessError::LeaderElectionLost => {} // another process may lead already
        // Running work is cut off, and the lease is free for the next attempt.
        ProcessError::Bootstrap(_) | ProcessError::Failed(_) | ProcessError::Panicked => {
            process.stop(Duration::ZERO).await;
        }
    }
    Err(error.into())
}

/// The graceful stop. Servers and lease end in parallel: a slow scrape or review must not cost the lease.
async fn stop<P: Program>(process: Process<P>, services: P::Services, servers: ServerHandles) -> Result<(), RunError> {
    tracing::info!("Received a signal, stopping");
    let deadline = Deadline::after(GRACE_PERIOD);
    let finished = process.stop_work(PATIENCE).await;
    let last_answers = async {
        services.stop(deadline.0 - SERVERS_END).await;
        servers.stop().await;
    };
    let (servers, _) = join(timeout_at(deadline.0, last_answers), process.leave(deadline)).await;
    if finished && servers.is_ok() { Ok(()) } else { Err(RunError::GracePeriod) }
}

fn end(why: Impatience, log: &logging::Handle) {
    match why {
        Impatience::SecondSignal => tracing::error!("Received a second signal, ending at once"),
        Impatience::GracePeriod => report(&RunError::GracePeriod),
    }
    log.finish(LAST_RECORDS);
    std::process::exit(1);
}

/// Starts the servers of probes and metrics.
pub fn serve_http<P: Program>(
    version: &str,
    settings: &Settings,
    host: &str,
    vitals: &Vitals,
    readiness: Checks,
    metrics: &Metrics,
    status_registry: &StatusRegistry,
) -> Result<ServerHandles, ServeError> {
    let shown = {
        let (leadership, elected) = (vitals.leadership(), settings.leader_election.is_some());
        move || match *leadership.borrow() {
            _ if !elected => ShownLeadership::Unneeded,
            Leadership::Leader => ShownLeadership::Leading,
            Leadership::Candidate | Leadership::Lost | Leadership::Released => ShownLeadership::Standby,
        }
    };
    let waiting = {
        let metrics = metrics.clone();
        move || {
            let waiting = metrics.waiting_controllers().into_iter();
            waiting.map(|name| format!("controller {name} waits for its caches")).collect()
        }
    };
    let leader = {
        let vitals = vitals.clone();
        move || vitals.holder()
    };
    let figures = {
        let (vitals, metrics) = (vitals.clone(), metrics.clone());
        move |now| vitals.figures::<P>(&metrics, now)
    };
    let sources = Sources {
        liveness: vitals.liveness(),
        readiness: readiness.remarking(Arc::new(waiting)),
        metrics: metrics.clone(),
        status_registry: status_registry.clone(),
        leadership: Arc::new(shown),
        leader: Arc::new(leader),
        figures: Arc::new(figures),
        config: settings.effective.as_str().into(),
        now: Arc::new(Clock::system_wall),
    };
    let process = ProcessInfo {
        name: P::NAME.to_owned(),
        version: version.to_owned(),
        host: host.to_owned(),
        started: Clock::system_wall(),
    };
    let options = ServerOptions {
        probes: settings.health_probes.clone(),
        metrics: settings.metrics.clone(),
        profiling: settings.debugging.enable_profiling,
        process,
        descriptors: limits::descriptors(),
    };
    server::serve(options, Arc::new(sources))
}

fn show_leadership(settings: &Settings, vitals: &Vitals, metrics: &Metrics) {
    let Some(election) = &settings.leader_election else { return };
    let (metrics, name, mut changes) = (metrics.clone(), election.resource_name.clone(), vitals.leadership());
    actix::spawn(async move {
        loop {
            metrics.leader(&name, *changes.borrow_and_update() == Leadership::Leader);
            if changes.changed().await.is_err() {
                return;
            }
        }
    });
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { std::env::var("HOSTNAME").unwrap_or_default() } else { name.to_owned() }
}

/// Prints why the process does not start, with its usage; returns the exit code (spec 70 §1.1).
pub fn refuse(text: &str, usage: &str) -> i32 {
    io::stderr().write_all(refusal(text, usage).as_bytes()).ok();
    print(&format!("{text}\n"));
    1
}

fn refusal(text: &str, usage: &str) -> String {
    format!("Error: {text}\n{}\n", usage.trim_end())
}

fn report(error: &RunError) {
    tracing::error!(%error, "Ended with an error");
    print(&format!("{error}\n"));
}

/// Writes to standard output; ignores a closed pipe.
fn print(text: &str) {
    let mut stdout = io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}

/// Writes a result to standard output and returns the exit code. A closed pipe is not a failure.
pub fn print_or_fail(text: &str) -> i32 {
    let mut stdout = io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            writeln!(io::stderr(), "cannot write the result: {error}").ok();
            1
        }
        Ok(()) | Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 §1.1
    #[test]
    fn refusal_before_logging_shows_the_error_and_the_usage() {
        assert_eq!(refusal("missing config file", "Usage: x\n"), "Error: missing config file\nUsage: x\n");
    }
}
