use std::io::Write;

use anyhow::Result;
use futures::future::{FutureExt, LocalBoxFuture};

use crate::api::Api;

pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cite: &'static str,
    pub(crate) plane: Plane,
    /// It holds for the oldest supported version of Kubernetes, too.
    holds_for_the_oldest: bool,
    holds_for_the_newest: bool,
    check: Box<dyn Fn(Api) -> LocalBoxFuture<'static, Result<()>>>,
}

/// What runs beside the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Nothing: the API server alone shows it.
    Apiserver,
    /// Nothing, and no other row: the server loses its history on the way, which takes a restart.
    Alone,
    Controllers,
}

/// Minor version of the oldest supported Kubernetes.
const OLDEST: u16 = 32;

/// Minor version of the newest supported Kubernetes.
const NEWEST: u16 = 37;

/// The minor version that the simulator behaves like.
#[cfg(feature = "sim")]
const SIMULATED: u16 = 36;

#[derive(Default)]
pub(crate) struct Outcome {
    ran: usize,
    /// Rows that hold for other versions of Kubernetes only.
    others: usize,
    failures: Vec<String>,
}

pub(crate) fn row<F, R>(name: impl Into<String>, cite: &'static str, check: F) -> Row
where
    F: Fn(Api) -> R + 'static,
    R: Future<Output = Result<()>> + 'static,
{
    let check = Box::new(move |api| check(api).boxed_local());
    Row {
        name: name.into(),
        cite,
        plane: Plane::Apiserver,
        holds_for_the_oldest: true,
        holds_for_the_newest: true,
        check,
    }
}

async fn run_row(row: &Row, api: Api) -> Result<()> {
    let namespace = serde_json::json!({"metadata": {"name": api.namespace}});
    api.create("/api/v1/namespaces", &namespace).await?;
    (row.check)(api).await
}

fn wanted(module: &str, row: &Row) -> bool {
    let Ok(text) = std::env::var("CONTRACT") else { return true };
    module == text || row.name.contains(&text)
}

impl Row {
    pub(crate) fn with_controllers(mut self) -> Self {
        self.plane = Plane::Controllers;
        self
    }

    /// The same row without the oldest supported version of Kubernetes, which answers differently (facts §11).
    /// Neither program may rely on such a row.
    pub(crate) fn not_for_the_oldest(mut self) -> Self {
        self.holds_for_the_oldest = false;
        self
    }

    /// The same row without the newest supported version of Kubernetes, which answers differently (facts §12).
    /// Neither program may rely on such a row.
    pub(crate) fn not_for_the_newest(mut self) -> Self {
        self.holds_for_the_newest = false;
        self
    }

    /// `minor` is 36 for Kubernetes 1.36.
    fn holds_for(&self, minor: u16) -> bool {
        (self.holds_for_the_oldest || minor > OLDEST) && (self.holds_for_the_newest || minor < NEWEST)
    }

    /// The same row without other rows beside it, so that it may forget history.
    pub(crate) fn alone(mut self) -> Self {
        self.plane = Plane::Alone;
        self
    }
}

impl Outcome {
    fn add(&mut self, module: &str, row: &Row, result: Result<()>) {
        self.ran += 1;
        if let Err(error) = result {
            self.failures.push(format!("{module}: {} ({})\n    {error:#}", row.name, row.cite));
        }
    }

    fn finish(self, server: &str) {
        let Self { ran, others, failures } = self;
        // Straight to stderr: the test harness hides the output of a test that passes.
        let failed = failures.len();
        let _ =
            writeln!(std::io::stderr(), "{server}: {ran} rows ran, {failed} failed, {others} hold for other versions");
        assert!(ran > 0, "no row matches the filter");
        assert!(failures.is_empty(), "{failed} of {ran} rows failed on {server}:\n\n{}\n", failures.join("\n\n"));
    }
}

/// Rows against a real control plane: one with and one without controllers, a namespace per row.
#[cfg(feature = "e2e")]
pub(crate) mod real {
    use std::rc::Rc;

    use futures::stream::{self, StreamExt};
    use tokio::sync::Mutex;

    use super::{Api, Outcome, Plane, Row, run_row, wanted};
    use crate::{
        api::Forget,
        support::{ControlPlane, Options, User},
    };

    /// Most rows wait for the server most of the time; more at once gain nothing on two cores.
    const ROWS_AT_ONCE: usize = 8;

    pub(crate) fn run(table: Vec<(&'static str, Vec<Row>)>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut outcome = Outcome::default();
        for (options, planes) in [
            (Options::default(), [Plane::Apiserver, Plane::Alone].as_slice()),
            (Options::with_controllers(), &[Plane::Controllers]),
        ] {
            let rows = table.iter().flat_map(|(module, rows)| rows.iter().map(|row| (*module, row)));
            let rows: Vec<_> =
                rows.filter(|(module, row)| planes.contains(&row.plane) && wanted(module, row)).collect();
            if !rows.is_empty() {
                runtime.block_on(run_on(options, &rows, &mut outcome));
            }
        }
        outcome.finish("the real control plane");
    }

    async fn run_on(options: Options, rows: &[(&'static str, &Row)], outcome: &mut Outcome) {
        let server = ControlPlane::start(options).await.expect("a control plane starts");
        let client = server.client(User::Admin).await.expect("a client of it");
        let version = client.apiserver_version().await.expect("the server tells its version");
        let minor = version.minor.trim_end_matches('+').parse().expect("the minor version is a number");
        let (rows, others): (Vec<_>, Vec<_>) = rows.iter().partition(|(_, row)| row.holds_for(minor));
        outcome.others += others.len();
        let server = Rc::new(Mutex::new(server));
        let forget: Forget = Rc::new(move || {
            let server = Rc::clone(&server);
            Box::pin(async move {
                let mut server = server.lock().await;
                server.etcd().compact()?;
                server.restart_apiserver().await
            })
        });
        let checks = rows.iter().enumerate().map(|(number, (module, row))| {
            let api = Api::new(client.clone(), format!("row-{number:03}"), Rc::clone(&forget));
            let check = async move { (*module, *row, run_row(row, api).await) };
            (row.plane, check)
        });
        let (alone, together): (Vec<_>, Vec<_>) = checks.partition(|(plane, _)| *plane == Plane::Alone);
        for (checks, at_once) in [(together, ROWS_AT_ONCE), (alone, 1)] {
            let mut results = stream::iter(checks.into_iter().map(|(_, check)| check)).buffered(at_once);
            while let Some((module, row, result)) = results.next().await {
                outcome.add(module, row, result);
            }
        }
    }
}

/// Rows against the simulator: a fresh one for each row, on one thread, in virtual time.
#[cfg(feature = "sim")]
pub(crate) mod simulated {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        rc::Rc,
    };

    use anyhow::{Result, anyhow};
    use kit::{Clock, Random};
    use sim::{Behaviour, ClientOptions, Process, Sim, SimOptions};

    use super::{Api, Outcome, Plane, Row, SIMULATED, run_row, wanted};

    pub(crate) fn run(table: Vec<(&'static str, Vec<Row>)>) {
        let mut outcome = Outcome::default();
        for (module, rows) in &table {
            for row in rows.iter().filter(|row| row.holds_for(SIMULATED) && wanted(module, row)) {
                let result = catch_unwind(AssertUnwindSafe(|| run_one(row)));
                outcome.add(module, row, result.unwrap_or_else(|_| Err(anyhow!("it panicked, see above"))));
            }
        }
        outcome.finish("the simulator");
    }

    fn run_one(row: &Row) -> Result<()> {
        // Without I/O: an accidental socket is an error at once.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let start = "2030-01-01T00:00:00Z".parse()?;
            let mut options = SimOptions::new(Clock::starting_at(start), Random::seeded(1));
            options.behaviour = match row.plane {
                Plane::Apiserver | Plane::Alone => Behaviour::without_controllers(),
                Plane::Controllers => {
                    Behaviour { namespace_contents: Some("bundle".to_owned()), ..Behaviour::default() }
                }
            };
            let sim = Sim::new(options);
            // The simulator checks no rights. Only members of system:masters are allowed everything.
            sim.set_reviewer(|spec| (spec["groups"].to_string().contains("system:masters"), String::new()));
            let client = sim.client_of(ClientOptions {
                user: "admin".to_owned(),
                groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
                user_agent: "contract".to_owned(),
                process: Process::new(),
            });
            let api = Api::new(
                client,
                "row-000".to_owned(),
                Rc::new(move || {
                    sim.compact();
                    Box::pin(async { Ok(()) })
                }),
            );
            run_row(row, api).await
        })
    }
}
