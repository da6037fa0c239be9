//! The production process, in the order of spec 70 §7.

use std::{io, io::Write as _, path::Path, rc::Rc, sync::Arc, time::Duration};

use actix::System;
use cluster::{Connection, ConnectionError, user_agent};
use futures::future::join;
use kit::{Clock, Cpu, Deadline, Env, Fatal, Random, StatusRegistry, json};
use rustls::sign::CertifiedKey;
use tokio::time::timeout_at;

use super::{
    ConnectError, Connections, GRACE_PERIOD, Link, Observing, Process, ProcessError, ProcessParts, Vitals, announce,
    connections, identity, limits,
    signals::{self, Impatience, Signals},
    watchdog,
};
use crate::{
    actors::{
        leader::{ElectionError, Leadership},
        root::PATIENCE,
    },
    api::config::{Config, Endpoint, Loaded, LogFormat, LogLevel, Logging},
    cli::{self, Cli, PROGRAM, RunOptions, StartError},
    dashboard::server::{
        self, Bind, Leadership as ShownLeadership, ProcessInfo, ServeError, ServerHandles, ServerOptions, Sources,
    },
    http::probes::Checks,
    logging,
    metrics::Metrics,
    profiling, traces,
    webhooks::{
        registry,
        server::{Bound, CertificateError, Presence, ServerError, ServerParts, WebhookServer, read_certificate},
    },
};

const CPU_JOBS: usize = 2;
/// Rest of the grace period for probes and metrics after the last reviews are cut off.
const SERVERS_END: Duration = Duration::from_millis(500);
const LAST_RECORDS: Duration = Duration::from_millis(500);
const LAST_SPANS: Duration = Duration::from_secs(1);

/// Why the process ends with exit code 1 after the log is set up.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Webhooks(#[from] ServerError),
    #[error(transparent)]
    Election(#[from] ElectionError),
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Spec 70 §13.
    #[error("failed waiting for all runnables to end within grace period of 5s: context deadline exceeded")]
    GracePeriod,
}

/// Runs controllers and webhooks until the end; returns the exit code (spec 70 §13).
pub fn run(options: &RunOptions) -> i32 {
    let loaded = match cli::load(options, &cli::load::read_file) {
        Ok(loaded) => loaded,
        Err(error) => return refuse_start(&error),
    };
    let heap_profiles = if loaded.config.debugging.profiling {
        profiling::prepare(options.config.as_deref().map(Path::new))
    } else {
        Ok(())
    };
    let (level, format) = log_settings(loaded.config.logging);
    let (spans, traces) = match traces::start(&|variable| std::env::var(variable).ok()) {
        Ok((spans, traces)) => (spans, Ok(traces)),
        Err(error) => (None, Err(error)),
    };
    let (log, switch) = match logging::init(level, format, Arc::new(Clock::system_wall), spans) {
        Ok((log, switch)) => (Arc::new(log), switch),
        Err(error) => return refuse(&error.to_string()),
    };
    logging::log_panics();
    if let Err(error) = &traces {
        tracing::warn!(%error, "There are no traces");
    }
    if let Err(error) = &heap_profiles {
        tracing::warn!(%error, "There are no heap profiles");
    }
    let result = start(options, &loaded, &log, switch);
    if let Err(error) = &result {
        report(error);
    }
    if let Ok(traces) = traces {
        traces.finish(LAST_SPANS);
    }
    log.finish(LAST_RECORDS);
    i32::from(result.is_err())
}

/// Prints the effective configuration and warnings about it; returns the exit code.
pub fn print_config(options: &RunOptions) -> i32 {
    match cli::load(options, &cli::load::read_file) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                writeln!(io::stderr(), "{}: {}", warning.path, warning.message()).ok();
            }
            print_or_fail(&loaded.to_yaml())
        }
        Err(error) => refuse_start(&error),
    }
}

fn start(
    options: &RunOptions,
    loaded: &Loaded,
    log: &Arc<logging::Handle>,
    mut switch: logging::Switch,
) -> Result<(), RunError> {
    let for_the_end = log.clone();
    let signals = signals::listen(move |why| end(why, &for_the_end), move || switch.toggle())?;
    announce::start(options, loaded);
    limits::raise();
    rustls::crypto::ring::default_provider().install_default().ok();
    tracing::info!("Getting rest configs");
    let connections = connections(&loaded.config, &options.environment, options.is_flag_mode())?;
    // The pool's threads decode bundles and need large stacks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(json::STACK).build()?;
    System::with_tokio_rt(|| runtime).block_on(serve(options, loaded.config.clone(), connections, signals))
}

async fn serve(
    options: &RunOptions,
    config: Config,
    connections: Connections,
    mut signals: Signals,
) -> Result<(), RunError> {
    let status_registry = StatusRegistry::default();
    let metrics = Metrics::new(&options.version.version, status_registry.clone());
    metrics.config_hash(&config.hash());
    let certificate_directory = config.servers.cert_dir(&std::env::temp_dir());
    let certificate = check_certificate(&certificate_directory, &metrics)?;

    let host = host_name();
    let vitals = Vitals::default();
    tracing::info!("Setting up manager");
    let presence = Presence::default();
    let readiness = presence.add_to(vitals.readiness());
    let servers = serve_http(&options.version.version, &config, &host, &vitals, readiness, &metrics, &status_registry)?;
    let webhook_server = Bound::to(&bind(&config.servers.webhooks))?;
    let webhooks = registry::enabled(&config.webhooks);
    let _watchdog = watchdog::start(metrics.clone())?;
    let observing = Rc::new(Observing::new(&metrics));
    let env = Env {
        clock: Clock::system(),
        random: Random::from_entropy(),
        status_registry: status_registry.clone(),
        cpu: Cpu::pool(CPU_JOBS),
        observers: observing.clone(),
        fatal: Fatal::default(),
        sync_timeout: config.cache_sync_timeout,
    };
    show_leadership(&config, &vitals, &metrics);

    tracing::info!("Starting manager");
    let agent = |election| user_agent(&options.version.version, &options.version.git_commit, election);
    let link = |connection: &Connection| -> Result<Link, ConnectionError> {
        Ok(Link { client: connection.client(&agent(false))?, host: connection.host(), ca: connection.ca().into() })
    };
    let mut process = Process::start(ProcessParts {
        source: link(&connections.source)?,
        target: connections.target.as_ref().map(link).transpose()?,
        election: Some(connections.source.client(&agent(true))?),
        identity: identity(&host, &env),
        config,
        env,
        requests: observing,
        vitals,
    })?;
    let webhook_server = webhook_server.run(ServerParts {
        webhooks,
        knowledge: process.knowledge(),
        certificate,
        certificate_directory,
        metrics,
        status_registry,
        presence,
        descriptors: limits::descriptors(),
    })?;

    let error = tokio::select! {
        biased;
        error = process.ended() => error,
        () = signals.first() => return stop(process, webhook_server, servers).await,
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
async fn stop(process: Process, webhooks: WebhookServer, servers: ServerHandles) -> Result<(), RunError> {
    tracing::info!("Received a signal, stopping");
    let deadline = Deadline::after(GRACE_PERIOD);
    let finished = process.stop_work(PATIENCE).await;
    let last_answers = async {
        webhooks.stop(deadline.0 - SERVERS_END).await;
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

/// The certificate must exist even if no webhook is enabled (spec 70 §11).
fn check_certificate(directory: &Path, metrics: &Metrics) -> Result<CertifiedKey, CertificateError> {
    let pair = read_certificate(directory);
    metrics.certificate_read(pair.is_ok());
    pair
}

pub(crate) fn serve_http(
    version: &str,
    config: &Config,
    host: &str,
    vitals: &Vitals,
    readiness: Checks,
    metrics: &Metrics,
    status_registry: &StatusRegistry,
) -> Result<ServerHandles, ServeError> {
    let shown = {
        let (leadership, elected) = (vitals.leadership(), config.leader_election.is_some());
        move || match *leadership.borrow() {
            _ if !elected => ShownLeadership::Unneeded,
            Leadership::Leader => ShownLeadership::Leading,
            Leadership::Candidate | Leadership::Lost | Leadership::Released => ShownLeadership::Standby,
        }
    };
    let sources = Sources {
        liveness: vitals.liveness(),
        readiness,
        metrics: metrics.clone(),
        status_registry: status_registry.clone(),
        leadership: Arc::new(shown),
        now: Arc::new(Clock::system_wall),
    };
    let process = ProcessInfo {
        name: PROGRAM.to_owned(),
        version: version.to_owned(),
        host: host.to_owned(),
        started: Clock::system_wall(),
    };
    let options = ServerOptions {
        probes: config.servers.health_probes.as_ref().map(bind),
        metrics: config.servers.metrics.as_ref().map(bind),
        profiling: config.debugging.profiling,
        process,
        descriptors: limits::descriptors(),
    };
    server::serve(options, Arc::new(sources))
}

fn bind(endpoint: &Endpoint) -> Bind {
    Bind { address: endpoint.host.clone(), port: endpoint.port }
}

fn show_leadership(config: &Config, vitals: &Vitals, metrics: &Metrics) {
    let Some(election) = &config.leader_election else { return };
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

fn log_settings(logging: Logging) -> (logging::Level, logging::Format) {
    let level = match logging.level {
        LogLevel::Debug => logging::Level::Debug,
        LogLevel::Info => logging::Level::Info,
        LogLevel::Error => logging::Level::Error,
    };
    let format = match logging.format {
        LogFormat::Json => logging::Format::Json,
        LogFormat::Text => logging::Format::Text,
    };
    (level, format)
}

fn refuse_start(error: &StartError) -> i32 {
    refuse(&error.to_string())
}

/// Prints why the process does not start; returns the exit code.
pub fn refuse(text: &str) -> i32 {
    let printed = cli::failure_before_logging(text, &Cli::usage());
    io::stderr().write_all(printed.stderr.as_bytes()).ok();
    print(&printed.stdout);
    1
}

fn report(error: &RunError) {
    tracing::error!(%error, "Ended with an error");
    print(&cli::failure_after_logging(&error.to_string()).stdout);
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
