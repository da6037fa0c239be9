//! Folders, ports, keys and certificates that the processes need before they start.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// A folder that is removed on drop, unless `KEEP` is set.
pub(super) fn folder(prefix: &str) -> Result<TempDir> {
    let mut folder = tempfile::Builder::new().prefix(prefix).tempdir().context("create a folder for a process")?;
    if std::env::var_os("KEEP").is_some() {
        folder.disable_cleanup(true);
        eprintln!("kept: {}", folder.path().display());
    }
    Ok(folder)
}

/// A free loopback port below the range of outgoing connections: one of that range may be taken before it is used.
pub(super) fn free_port() -> Result<u16> {
    for _ in 0..1000 {
        let port = fastrand::u16(10_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    bail!("no free port on 127.0.0.1 between 10000 and 32000")
}

/// Writes `content` to `folder/name`.
pub(super) fn write(folder: &Path, name: &str, content: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}

/// A new RSA key, as kube-apiserver wants it for the tokens of ServiceAccounts.
pub(super) fn rsa_key(path: &Path) -> Result<()> {
    openssl(&["genrsa", "-out", &text(path), "2048"])
}

/// A new certificate authority: `<stem>.crt` and `<stem>.key` in `folder`.
pub(super) fn authority(folder: &Path, stem: &str) -> Result<()> {
    self_signed(&folder.join(format!("{stem}.crt")), &folder.join(format!("{stem}.key")), stem, None)
}

/// A new serving certificate for loopback that is its own authority.
pub(super) fn serving_certificate(certificate: &Path, key: &Path, name: &str) -> Result<()> {
    let names = format!("subjectAltName=DNS:localhost,DNS:{name},IP:127.0.0.1");
    self_signed(certificate, key, name, Some(&names))
}

fn self_signed(certificate: &Path, key: &Path, name: &str, extension: Option<&str>) -> Result<()> {
    let subject = format!("/CN={name}");
    let (certificate, key) = (text(certificate), text(key));
    let mut arguments = vec!["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject];
    arguments.extend(["-out", &certificate, "-keyout", &key]);
    arguments.extend(extension.into_iter().flat_map(|extension| ["-addext", extension]));
    openssl(&arguments)
}

fn openssl(arguments: &[&str]) -> Result<()> {
    let output = Command::new("openssl").args(arguments).output().context("start openssl")?;
    if !output.status.success() {
        bail!("openssl {} failed: {}", arguments[0], String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
