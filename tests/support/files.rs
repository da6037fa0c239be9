//! Folders, files and ports that processes need before they start.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

pub(crate) fn folder(prefix: &str) -> Result<TempDir> {
    let mut folder = tempfile::Builder::new().prefix(prefix).tempdir().context("create a folder for a process")?;
    if std::env::var_os("KEEP").is_some() {
        folder.disable_cleanup(true);
        eprintln!("kept: {}", folder.path().display());
    }
    Ok(folder)
}

/// Ports within the range of [`free_port`] that programs have by the rules of their deployers (spec 71 §1).
const DEPLOYED: [u16; 3] = [10_250, 11_587, 19_250];

/// Returns a free loopback port below the range of outgoing connections, whose ports may be taken before they are used.
pub(crate) fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(10_000..32_000);
        if !DEPLOYED.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port on 127.0.0.1 between 10000 and 32000")
}

pub(super) fn write(folder: &Path, name: &str, content: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}
