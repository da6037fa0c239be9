//! The demonstration, as a user runs it after cloning the repository.
#![cfg(feature = "sim")]

mod support;

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Result, anyhow, ensure};
use serde_json::Value;
use support::{eventually, request};
use tempfile::TempDir;

/// The story waits for a run of the garbage collector, and builds may run beside this test.
const LIMIT: Duration = Duration::from_secs(90);

const TITLES: [&str; 14] = [
    "1. The program starts",
    "2. Two bundles are applied",
    "3. An object is edited by hand",
    "4. An object is deleted by hand",
    "5. A manifest does not decode",
    "6. An object leaves its bundle",
    "7. A token is requested",
    "8. A Service gets its policies",
    "9. A certificate is approved",
    "10. A webhook changes a Pod",
    "11. An actor panics",
    "12. The program starts again",
    "13. A bundle is deleted",
    "14. Garbage is collected",
];

struct Demo {
    child: Child,
    printed: PathBuf,
    folder: TempDir,
}

impl Demo {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let printed = folder.path().join("printed");
        let child = Command::new(env!("CARGO_BIN_EXE_gardener-resource-manager"))
            .arg("demo")
            .args(arguments)
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(File::create(&printed).expect("the file is made"))
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the program starts");
        Self { child, printed, folder }
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.printed).expect("the output is a text")
    }

    async fn ended(&mut self) -> Result<ExitStatus> {
        let child = &mut self.child;
        eventually("the demonstration ends", LIMIT, async || child.try_wait()?.ok_or_else(|| anyhow!("it still runs")))
            .await
    }

    fn interrupt(&self) {
        let kill =
            Command::new("sh").args(["-c", r#"kill -s INT "$1""#, "kill", &self.child.id().to_string()]).status();
        assert!(kill.expect("a shell runs").success());
    }

    fn port(&self) -> Result<u16> {
        let text = self.text();
        let port = text.split_once("http://127.0.0.1:").and_then(|(_, rest)| rest.split('/').next());
        Ok(port.ok_or_else(|| anyhow!("no address in\n{text}"))?.parse()?)
    }

    fn problems(&self) -> Result<Vec<(String, String)>> {
        let actors = request(self.port()?, "/dashboard/actors", None, None)?.json()?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let actors = actors["actors"].as_array().cloned().unwrap_or_default();
        let bundles = actors.iter().filter(|actor| text(&actor["path"]).starts_with("managedresource/"));
        Ok(bundles.map(|actor| (text(&actor["path"]), text(&actor["problem"]))).collect())
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn demo_shows_each_step_and_ends_by_itself() {
    let mut demo = Demo::start(&[]);

    let ended = demo.ended().await;

    let text = demo.text();
    assert_eq!(ended.ok().and_then(|status| status.code()), Some(0), "{text}");
    let headings: Vec<_> = text.lines().filter(|line| TITLES.contains(line)).collect();
    assert_eq!(headings, TITLES);
    assert_eq!(text.lines().filter(|line| line.starts_with("   ✓ ")).count(), TITLES.len(), "{text}");
    assert!(text.contains("http://127.0.0.1:") && text.contains("/dashboard"), "{text}");
    assert!(text.contains("reason: DecodingFailed") && text.contains(" requests, no write"), "{text}");
    assert!(!text.contains('\x1b'), "no colours without a terminal");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[tokio::test]
async fn demo_with_bundles_shows_each_problem_changes_something_and_ends_after_ctrl_c() {
    let mut demo = Demo::start(&["--bundles", "100", "--keep", "--changes-per-second", "5"]);

    let shown = eventually("the dashboard shows each problem", LIMIT, async || {
        ensure!(demo.text().contains("stays up"), "{}", demo.text());
        let problems = demo.problems()?;
        for expected in ["DecodingFailed", "ApplyFailed", "DeploymentUnhealthy", "CannotReadSecret"] {
            ensure!(problems.iter().any(|(_, problem)| problem.contains(expected)), "{expected}: {problems:?}");
        }
        ensure!(problems.len() == 100, "{} bundles", problems.len());
        Ok(())
    });
    shown.await.unwrap();
    let changed = eventually("a user breaks another bundle", LIMIT, async || {
        let problems = demo.problems()?;
        let undecodable = problems.iter().filter(|(_, problem)| problem.contains("DecodingFailed")).count();
        ensure!(undecodable > 1, "{problems:?}");
        Ok(())
    });
    changed.await.unwrap();
    demo.interrupt();

    let ended = demo.ended().await;

    let text = demo.text();
    assert_eq!(ended.ok().and_then(|status| status.code()), Some(0), "{text}");
    assert!(text.contains("1  being deleted") && text.contains("2  ignored or suspended"), "{text}");
    assert!(text.trim_end().ends_with("Stopping."), "{text}");
}

#[tokio::test]
async fn demo_that_is_interrupted_stops_and_leaves_no_key() {
    let mut demo = Demo::start(&[]);
    let begun = eventually("the program starts", LIMIT, async || demo.port());
    begun.await.unwrap();
    demo.interrupt();

    let ended = demo.ended().await;

    assert_eq!(ended.ok().and_then(|status| status.code()), Some(130), "{}", demo.text());
    let left = std::fs::read_dir(demo.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
    assert!(left.iter().all(|name| name == "printed" || name.ends_with(".log")), "{left:?}");
}

#[tokio::test]
async fn demo_without_keep_ends_when_all_bundles_are_reconciled() {
    let mut demo = Demo::start(&["--bundles", "3"]);

    let ended = demo.ended().await;

    assert_eq!(ended.ok().and_then(|status| status.code()), Some(0), "{}", demo.text());
    assert!(demo.text().contains("3  ApplySucceeded"), "{}", demo.text());
}
