//! The demonstration, as a user runs it after cloning the repository.
#![cfg(feature = "sim")]

mod support;

use std::{
    fs::File,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::bail;
use support::eventually;

const LIMIT: Duration = Duration::from_secs(20);

const TITLES: [&str; 9] = [
    "1. The program starts",
    "2. Two bundles are applied",
    "3. An object is edited by hand",
    "4. An object is deleted by hand",
    "5. A manifest does not decode",
    "6. An object leaves its bundle",
    "7. An actor panics",
    "8. The program starts again",
    "9. A bundle is deleted",
];

#[tokio::test]
async fn demo_shows_each_step_and_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let printed = folder.path().join("printed");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_gardener-resource-manager"))
        .arg("demo")
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(File::create(&printed).unwrap())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();

    let ended = eventually("the demonstration ends", LIMIT, async || match demo.try_wait()? {
        Some(status) => Ok(status),
        None => bail!("it still runs"),
    });
    let ended = ended.await;
    demo.kill().ok();

    let text = std::fs::read_to_string(&printed).unwrap();
    assert_eq!(ended.ok().and_then(|status| status.code()), Some(0), "{text}");
    let headings: Vec<_> = text.lines().filter(|line| TITLES.contains(line)).collect();
    assert_eq!(headings, TITLES);
    assert_eq!(text.lines().filter(|line| line.starts_with("   ✓ ")).count(), TITLES.len(), "{text}");
    assert!(text.contains("http://127.0.0.1:") && text.contains("/dashboard"), "{text}");
    assert!(text.contains("reason: DecodingFailed") && text.contains(" requests, no write"), "{text}");
    assert!(!text.contains('\x1b'), "no colours without a terminal");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
