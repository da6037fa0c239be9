//! The demonstration with a filled cluster.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::support::{Process, eventually};

/// A debug build needs some seconds for a hundred bundles.
const LIMIT: Duration = Duration::from_secs(600);
/// Each problem occurs from this number on.
const BUNDLES: usize = 100;
const CHANGES_PER_SECOND: usize = 2;

pub(crate) struct Demo {
    pub(crate) dashboard: String,
    pub(crate) bundles: usize,
    _process: Process,
    _folder: TempDir,
}

impl Demo {
    /// The demonstration of all tests: the page only reads. It ends with the process of the tests.
    pub(crate) async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Demo> = OnceCell::const_new();
        let bundles = match std::env::var("BUNDLES") {
            Ok(number) => number.parse().context("BUNDLES is no number")?,
            Err(_) => BUNDLES,
        };
        SHARED.get_or_try_init(|| Self::start(bundles, CHANGES_PER_SECOND)).await
    }

    /// Starts a demonstration in which users change something so often.
    pub(crate) async fn start(bundles: usize, changes_per_second: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (bundles_text, changes) = (bundles.to_string(), changes_per_second.to_string());
        let arguments = ["demo", "--keep", "--bundles", &bundles_text, "--changes-per-second", &changes];
        let mut process = Process::spawn(
            Path::new(env!("CARGO_BIN_EXE_gardener-resource-manager")),
            &arguments.map(str::to_owned),
            &[("TMPDIR".to_owned(), folder.path().display().to_string())],
            &folder.path().join("printed"),
        )?;
        let dashboard = eventually("the demonstration is filled", LIMIT, async || {
            if let Err(ended) = process.check_running() {
                return Ok(Err(ended));
            }
            let printed = process.log();
            let (_, address) = printed.split_once("dashboard: ").context("it has not started yet")?;
            printed.contains("What the conditions say:").then_some(()).context("it is not filled yet")?;
            Ok(Ok(address.split_whitespace().next().unwrap_or_default().to_owned()))
        });
        let dashboard = dashboard.await??;
        Ok(Self { dashboard, bundles, _process: process, _folder: folder })
    }
}
