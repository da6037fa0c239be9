//! The commands: functions from their input to a text and an exit code. [`run`], and [`run_controller_manager`] of the
//! second program, read files, open connections and print. `diff/`, `get/`, `inspect/`, `referrers.rs` and `extensions.rs` read clusters
//! through a [`kube::Client`] that is passed in; `annotate.rs` writes annotations, and `waiting.rs` waits for what follows.
//! `diff/`, `inspect/`, `referrers.rs`, `hibernation.rs` and `maintenance.rs` call the controllers' own functions. `get/`,
//! `diff/` and `annotate.rs` print while they run, on a [`Screen`]. `selection.rs` has the grammar of names, `report.rs` the output for programs. `bundles.rs`
//! separates bundles from other manifests. `cli/tools.rs` declares the flags.

mod annotate;
mod bundles;
mod check;
pub(crate) mod colours;
mod columns;
mod connect;
mod decoding;
pub mod diff;
mod extensions;
mod garbage;
mod get;
mod hibernation;
mod input;
mod inspect;
mod maintenance;
mod manual;
mod output;
mod pack;
mod policies;
mod referrers;
mod registration;
mod report;
mod review;
mod screen;
mod selection;
mod unpack;
mod validate;
mod waiting;
mod webhook_list;

#[cfg(test)]
mod tests;

use std::{
    io::{self, IsTerminal as _, Read},
    path::Path,
    slice,
};

use cluster::object::NamespacedName;
use kit::{Clock, Random};
use process::BuildInfo;
use serde_json::Value;

use self::{
    annotate::{AnnotateError, Request, Steps},
    connect::{ConnectError, Connected, named},
    get::GetError,
    input::InputError,
    inspect::{Clusters, InspectError},
    output::OutputError,
    screen::{Content, Look, Screen},
    selection::Selection,
    waiting::USUAL_LIMIT,
};
use crate::{
    actors::resource_manager::garbage_collector::survey::SurveyError,
    api::resources::side::Side,
    cli::{
        self, ClustersOptions, ConnectionOptions, DescribeOptions, DiffOptions, EventsOptions, GarbageOptions,
        GetOptions, PackOptions, PoliciesOptions, RegistrationOptions, ReportFormat, RequestOptions, ReviewOptions,
        SelectionOptions, Tool, TraceOptions, UnpackOptions, ValidateOptions, VersionOptions, WaitOptions,
        WebhookListOptions, WebhookTool, completion,
        controller_manager::{self, ExtensionsOptions, HibernationOptions, MaintenanceOptions, ReferrersOptions},
    },
    jsonpath::TooMuch,
};

/// Exit code of success.
pub const OK: i32 = 0;
/// Exit code: a difference, mistakes in the input, or a name that does not exist.
pub const DIFFERENT: i32 = 1;
/// Exit code: wrong usage, or a failure.
pub const FAILED: i32 = 2;

/// Why a command failed. Texts hold names and positions, never content.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Report(#[from] TooMuch),
    #[error(transparent)]
    Diff(#[from] diff::DiffError),
    #[error(transparent)]
    Get(#[from] get::GetError),
    #[error("{0} — it is not known what would be deleted")]
    Garbage(#[from] SurveyError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Annotate(#[from] AnnotateError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Referrers(#[from] referrers::ReferrersError),
    #[error(transparent)]
    Extensions(#[from] extensions::ExtensionsError),
    #[error("{error} — {hint}")]
    Of { error: Box<CommandError>, hint: String },
    #[error("{0}")]
    Usage(String),
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    out: String,
    content: Content,
    remarks: Vec<String>,
    code: i32,
}

/// Runs a command on the streams of this process and returns the exit code.
pub fn run(tool: &Tool, env: &dyn Fn(&str) -> Option<String>) -> i32 {
    let (stdin, mut stdout, mut stderr) = (&mut io::stdin(), io::stdout(), io::stderr());
    let (is_terminal, colours) = (stdout.is_terminal(), colours::wanted());
    let columns = (is_terminal && matches!(tool, Tool::Get(_))).then(|| screen::columns(env));
    let mut screen = Screen::new(&mut stdout, &mut stderr, Look { is_terminal, colours, columns });
    let said = match tool {
        Tool::Pack(options) => pack(options, stdin),
        Tool::Unpack(options) => unpack(options, env, stdin),
        Tool::Validate(options) => validate(options, stdin),
        Tool::Diff(options) => diff(options, env, stdin, &mut screen),
        Tool::Describe(options) => describe(options, env, colours),
        Tool::Events(options) => events(options, env, colours),
        Tool::Trace(options) => trace(options, env, colours),
        Tool::Suspend(options) => request(options, env, Request::Suspend, &mut screen),
        Tool::Resume(options) => request(options, env, Request::Resume, &mut screen),
        Tool::Reconcile(options) => request(options, env, Request::Reconcile, &mut screen),
        Tool::Wait(options) => wait(options, env, &mut screen),
        Tool::Garbage(options) => garbage(options, env),
        Tool::Check(options) => check::of_resource_manager(options, env, colours),
        Tool::Policies(options) => policies(options, env, stdin),
        Tool::Version(options) => version(options),
        Tool::Man(options) => manual::write(&options.directory, &cli::manual::pages()).map_err(Into::into),
        Tool::Completion(options) => Ok(Said { out: completion::script(options.shell), ..Said::default() }),
        Tool::Webhook(WebhookTool::List(options)) => webhook_list(options, stdin),
        Tool::Webhook(WebhookTool::Review(options)) => review(options, stdin),
        Tool::Webhook(WebhookTool::Registration(options)) => registration(options, stdin),
        Tool::Get(options) => get(options, env, &mut screen),
    };
    print(said, &mut screen)
}

/// Runs a command of gardener-controller-manager on the streams of this process and returns the exit code.
pub fn run_controller_manager(tool: &controller_manager::Tool, env: &dyn Fn(&str) -> Option<String>) -> i32 {
    use controller_manager::Tool;

    let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
    let look = Look { is_terminal: stdout.is_terminal(), colours: colours::wanted(), columns: None };
    let said = match tool {
        Tool::Referrers(options) => referrers(options, env, look.colours),
        Tool::Extensions(options) => extensions(options, env, look.colours),
        Tool::Hibernation(options) => hibernation(options, &mut io::stdin(), look.colours),
        Tool::Maintenance(options) => maintenance(options, &mut io::stdin()),
        Tool::Check(options) => check::of_controller_manager(options, env, look.colours),
        Tool::Version(options) => version(options),
        Tool::Man(options) => {
            manual::write(&options.directory, &cli::manual::controller_manager_pages()).map_err(Into::into)
        }
        Tool::Completion(options) => {
            Ok(Said { out: completion::controller_manager_script(options.shell), ..Said::default() })
        }
    };
    print(said, &mut Screen::new(&mut stdout, &mut stderr, look))
}

/// Prints what a command says and returns the exit code.
fn print(said: Result<Said, CommandError>, screen: &mut Screen<'_>) -> i32 {
    let said =
        said.unwrap_or_else(|error| Said { remarks: vec![format!("error: {error}")], code: FAILED, ..Said::default() });
    let Said { out, content, mut remarks, mut code } = said;
    screen.say(&out, content);
    // A closed pipe is not a failure: the reader has seen enough.
    if let Some(error) = screen.take_failure()
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        remarks.push(format!("error: cannot write the result: {error}"));
        code = FAILED;
    }
    for remark in &remarks {
        screen.remark(remark);
    }
    code
}

fn pack(options: &PackOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    let paths = [options.paths.as_slice(), &options.files].concat();
    if let Some(path) = &options.output_file {
        output::check(path, &paths)?;
    }
    let mut said = pack::pack(options, &input::read(&paths, stdin)?);
    if let Some(path) = options.output_file.as_ref().filter(|_| said.code == OK) {
        output::write(path, &std::mem::take(&mut said.out))?;
    }
    Ok(said)
}

fn unpack(
    options: &UnpackOptions,
    env: &dyn Fn(&str) -> Option<String>,
    stdin: &mut dyn Read,
) -> Result<Said, CommandError> {
    let format = options.report.output.as_ref();
    let Some(name) = &options.name else {
        return Ok(unpack::from_files(&input::read(&options.files, stdin)?).said(options.list, format)?);
    };
    with_clusters(&options.connection, &None, env, async |clusters| {
        match clusters.bundle(name, options.namespace.as_deref()).await? {
            (_, Some(secrets)) => Ok(unpack::secrets(&secrets).said(options.list, format)?),
            (key, None) => {
                let text = format!("{}; files are given with -f", inspect::missing(&key));
                Ok(Said { remarks: vec![text], code: DIFFERENT, ..Said::default() })
            }
        }
    })
}

fn validate(options: &ValidateOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    let paths = [options.paths.as_slice(), &options.files].concat();
    Ok(validate::validate(&input::read(&paths, stdin)?))
}

fn review(options: &ReviewOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    input::refuse_stdin_twice([options.config.as_slice(), &options.files, &options.objects].concat().iter())?;
    refuse_folders(options.config.as_slice())?;
    let config = input::read(options.config.as_slice(), stdin)?;
    let reviews = input::read(&options.files, stdin)?;
    let objects = input::read(&options.objects, stdin)?;
    review::review(&review::Input { path: &options.path, reviews: &reviews, config: config.first(), objects: &objects })
}

fn webhook_list(options: &WebhookListOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    refuse_folders(options.config.as_slice())?;
    let config = input::read(options.config.as_slice(), stdin)?;
    webhook_list::list(config.first(), options.output)
}

fn registration(options: &RegistrationOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    let sources = input::read(&[slice::from_ref(&options.ca_file), options.config.as_slice()].concat(), stdin)?;
    let [ca, config @ ..] = &*sources else { return Ok(Said::default()) };
    registration::registration(options, config.first(), ca)
}

fn diff(
    options: &DiffOptions,
    env: &dyn Fn(&str) -> Option<String>,
    stdin: &mut dyn Read,
    screen: &mut Screen<'_>,
) -> Result<Said, CommandError> {
    let request = diff::Request::new(options, &input::read(&options.files, stdin)?)?;
    let ClustersOptions { target_kubeconfig, connection } = &options.clusters;
    connect::with_client(connection, env, async |source| {
        let (target, endpoint) = match target_kubeconfig {
            Some(_) => {
                let Connected { client, endpoint } =
                    connect::client(&target_of(connection, target_kubeconfig), env).await?;
                (client, Some(endpoint))
            }
            None => (source.clone(), None),
        };
        let mut printer = diff::Printer::new(screen, options.report.output.as_ref(), request.may_be_several());
        let compared = diff::compare(source, target, request, |report| printer.take(report)).await;
        compared.map_err(|error| match endpoint {
            Some(endpoint) => named(error.into(), &format_args!("the source, or the target {endpoint}")),
            None => error.into(),
        })?;
        Ok(Said { code: printer.end()?, ..Said::default() })
    })
}

fn garbage(options: &GarbageOptions, env: &dyn Fn(&str) -> Option<String>) -> Result<Said, CommandError> {
    connect::with_client(&options.connection, env, async |client| {
        let clock = Clock::system();
        let now = clock.wall();
        let cluster = connect::read_only(client, Side::Target, clock, Random::from_entropy());
        let cluster = cluster.limited(options.connection.request_timeout.get());
        garbage::garbage(&cluster, now, options.report.output.as_ref()).await
    })
}

fn policies(
    options: &PoliciesOptions,
    env: &dyn Fn(&str) -> Option<String>,
    stdin: &mut dyn Read,
) -> Result<Said, CommandError> {
    // Read everything in one call, because standard input can be read once only.
    let config = options.config.as_slice();
    refuse_folders(config)?;
    let sources = input::read(&[config, &options.files].concat(), stdin)?;
    let (config, files) = sources.split_at(config.len());
    let rules = policies::rules(config.first())?;
    let format = options.output;
    let (service, namespace) = (options.service.as_deref(), options.namespace.as_deref());
    if !options.files.is_empty() {
        let (snapshot, remarks) = policies::from_files(files, &rules, namespace)?;
        let services = policies::meant(&snapshot, service, namespace);
        let mut said = match services.is_empty() {
            true => policies::missing(&snapshot, service, namespace),
            false => policies::show(&snapshot, &services, &rules, policies::Shown { format, compared: false }),
        };
        said.remarks.splice(0..0, remarks);
        return Ok(said);
    }
    let service = service.unwrap_or_default();
    connect::with_client(&options.connection, env, async |client| {
        let name = match service.split_once('/') {
            Some((namespace, name)) => NamespacedName::new(namespace, name),
            None => NamespacedName::new(namespace.unwrap_or_else(|| client.default_namespace()), service),
        };
        let cluster = connect::read_only(client, Side::Target, Clock::system(), Random::from_entropy());
        let cluster = cluster.limited(options.connection.request_timeout.get());
        Ok(match policies::gather(&cluster, &name, &rules).await? {
            None => {
                let text = format!("error: there is no Service {} in namespace {}", name.name, name.namespace);
                Said { remarks: vec![text], code: DIFFERENT, ..Said::default() }
            }
            Some(snapshot) => policies::show(&snapshot, &[name], &rules, policies::Shown { format, compared: true }),
        })
    })
}

fn get(
    options: &GetOptions,
    env: &dyn Fn(&str) -> Option<String>,
    screen: &mut Screen<'_>,
) -> Result<Said, CommandError> {
    connect::with_client(&options.connection, env, async |client| {
        let code = match get::get(client, (Clock::system(), Random::from_entropy()), options, screen).await {
            Err(GetError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => OK,
            result => result?,
        };
        Ok(Said { code, ..Said::default() })
    })
}

fn describe(
    options: &DescribeOptions,
    env: &dyn Fn(&str) -> Option<String>,
    colours: bool,
) -> Result<Said, CommandError> {
    let ClustersOptions { connection, target_kubeconfig } = &options.clusters;
    with_clusters(connection, target_kubeconfig, env, async |clusters| {
        Ok(inspect::describe::describe(&clusters, options, colours).await?)
    })
}

fn events(options: &EventsOptions, env: &dyn Fn(&str) -> Option<String>, colours: bool) -> Result<Said, CommandError> {
    with_clusters(&options.connection, &None, env, async |clusters| {
        Ok(inspect::events::events(&clusters, options, colours).await?)
    })
}

fn trace(options: &TraceOptions, env: &dyn Fn(&str) -> Option<String>, colours: bool) -> Result<Said, CommandError> {
    let ClustersOptions { connection, target_kubeconfig } = &options.clusters;
    with_clusters(connection, target_kubeconfig, env, async |clusters| {
        Ok(inspect::trace::trace(&clusters, options, colours).await?)
    })
}

fn referrers(
    options: &ReferrersOptions,
    env: &dyn Fn(&str) -> Option<String>,
    colours: bool,
) -> Result<Said, CommandError> {
    connect::with_client(&options.connection, env, async |client| {
        let environment = (Clock::system(), Random::from_entropy());
        Ok(referrers::referrers(client, environment, options, colours).await?)
    })
}

fn extensions(
    options: &ExtensionsOptions,
    env: &dyn Fn(&str) -> Option<String>,
    colours: bool,
) -> Result<Said, CommandError> {
    connect::with_client(&options.connection, env, async |client| {
        let environment = (Clock::system(), Random::from_entropy());
        Ok(extensions::extensions(client, environment, options, colours).await?)
    })
}

fn hibernation(options: &HibernationOptions, stdin: &mut dyn Read, colours: bool) -> Result<Said, CommandError> {
    let file = slice::from_ref(&options.shoot);
    refuse_folders(file)?;
    let from = options.at.unwrap_or_else(|| Clock::system().wall());
    hibernation::hibernation(&input::read(file, stdin)?, from, options.report.output.as_ref(), colours)
}

fn maintenance(options: &MaintenanceOptions, stdin: &mut dyn Read) -> Result<Said, CommandError> {
    let MaintenanceOptions { shoot, cloudprofile, objects, config, at, report } = options;
    let files = [slice::from_ref(shoot), slice::from_ref(cloudprofile), config.as_slice()].concat();
    input::refuse_stdin_twice(files.iter().chain(objects))?;
    refuse_folders(&files)?;
    let sources = input::read(&[files, objects.clone()].concat(), stdin)?;
    let [shoot, profile, rest @ ..] = &*sources else { return Ok(Said::default()) };
    let (shoot, profile) = (slice::from_ref(shoot), slice::from_ref(profile));
    let (config, objects) = rest.split_at_checked(config.as_slice().len()).unwrap_or((rest, &[]));
    let at = at.unwrap_or_else(Clock::system_wall);
    maintenance::maintenance(&maintenance::Input { shoot, profile, objects, config, at }, report.output.as_ref())
}

fn with_clusters(
    connection: &ConnectionOptions,
    target: &Option<String>,
    env: &dyn Fn(&str) -> Option<String>,
    work: impl AsyncFnOnce(Clusters) -> Result<Said, CommandError>,
) -> Result<Said, CommandError> {
    connect::with_client(connection, env, async |source| {
        let (target, endpoint) = match target {
            Some(_) => {
                let Connected { client, endpoint } = connect::client(&target_of(connection, target), env).await?;
                (Some(client), Some(endpoint))
            }
            None => (None, None),
        };
        let environment = (Clock::system(), Random::from_entropy());
        let done = work(Clusters::new(source, target, environment, connection.request_timeout)).await;
        done.map_err(|error| match (error, endpoint) {
            (error @ CommandError::Inspect(InspectError::ReadTarget { .. }), Some(endpoint)) => named(error, &endpoint),
            (error, _) => error,
        })
    })
}

/// The connection to a target cluster with a kubeconfig of its own. `--context`, `--cluster` and `--user` are of the
/// source's kubeconfig.
fn target_of(connection: &ConnectionOptions, kubeconfig: &Option<String>) -> ConnectionOptions {
    let (kubeconfig, request_timeout) = (kubeconfig.clone(), connection.request_timeout);
    ConnectionOptions { kubeconfig, request_timeout, ..ConnectionOptions::default() }
}

fn request(
    options: &RequestOptions,
    env: &dyn Fn(&str) -> Option<String>,
    request: Request,
    screen: &mut Screen<'_>,
) -> Result<Said, CommandError> {
    let wait = options.wait.then(|| (request.goal(), options.timeout.unwrap_or(USUAL_LIMIT)));
    let steps = Steps { request: Some(request), wait };
    annotate((&options.selection, &options.connection), env, steps, options.report.output.as_ref(), screen)
}

fn wait(
    options: &WaitOptions,
    env: &dyn Fn(&str) -> Option<String>,
    screen: &mut Screen<'_>,
) -> Result<Said, CommandError> {
    let steps = Steps { request: None, wait: Some((options.goal.into(), options.timeout.unwrap_or(USUAL_LIMIT))) };
    annotate((&options.selection, &options.connection), env, steps, options.report.output.as_ref(), screen)
}

fn annotate(
    (selection, connection): (&SelectionOptions, &ConnectionOptions),
    env: &dyn Fn(&str) -> Option<String>,
    steps: Steps,
    format: Option<&ReportFormat>,
    screen: &mut Screen<'_>,
) -> Result<Said, CommandError> {
    connect::with_client(connection, env, async |client| {
        let namespace = client.default_namespace().to_owned();
        let (clock, random) = (Clock::system(), Random::from_entropy());
        let cluster = match steps.request {
            Some(_) => connect::writable(client, Side::Source, clock, random),
            None => connect::read_only(client, Side::Source, clock, random),
        };
        let cluster = cluster.limited(connection.request_timeout.get());
        let selection = Selection::new(selection, &namespace);
        Ok(annotate::annotate(&cluster, selection, steps, format, screen).await?)
    })
}

fn version(options: &VersionOptions) -> Result<Said, CommandError> {
    let build = BuildInfo::of_this_binary();
    let fields = build.fields();
    let out = match &options.report.output {
        None => fields.map(|(name, value)| format!("{name}: {value}\n")).concat(),
        Some(format) => {
            let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
            report::whole(&Value::Object(fields.into_iter().collect()), format)?
        }
    };
    Ok(Said { out, ..Said::default() })
}

fn refuse_folders(files: &[String]) -> Result<(), CommandError> {
    match files.iter().find(|path| Path::new(path).is_dir()) {
        Some(path) => Err(CommandError::Usage(format!("{path} is a folder — name a file"))),
        None => Ok(()),
    }
}
