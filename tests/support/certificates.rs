//! Keys and certificates, made by the `openssl` command.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, anyhow, bail};
use rustls::pki_types::{CertificateDer, pem::PemObject};

#[derive(Debug)]
pub(crate) struct Authority {
    certificate: PathBuf,
    key: PathBuf,
}

/// A folder with `tls.crt` and `tls.key` as a kubelet mounts a Secret: links into a folder that is replaced as a whole.
#[derive(Debug)]
pub(super) struct Pair {
    folder: PathBuf,
}

const DATA: &str = "..data";

/// Creates an RSA key, which kube-apiserver needs for the tokens of ServiceAccounts.
pub(super) fn rsa_key(path: &Path) -> Result<()> {
    openssl(&["genrsa", "-out", &text(path), "2048"])
}

impl Authority {
    /// An authority that [`Self::create`] has written to `folder`.
    pub(super) fn at(folder: &Path, name: &str) -> Self {
        Self { certificate: folder.join(format!("{name}.crt")), key: folder.join(format!("{name}.key")) }
    }

    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self> {
        let created = Self::at(folder, name);
        let (out, keyout, subject) = (text(&created.certificate), text(&created.key), format!("/CN={name}"));
        let new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
        openssl(&[&new[..], &["-subj", &subject, "-out", &out, "-keyout", &keyout]].concat())?;
        Ok(created)
    }

    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    pub(crate) fn pem(&self) -> Result<String> {
        fs::read_to_string(&self.certificate).with_context(|| format!("read {}", self.certificate.display()))
    }

    /// Issues a serving certificate for loopback.
    pub(super) fn issue(&self, certificate: &Path, key: &Path) -> Result<()> {
        let names = "subjectAltName=DNS:localhost,DNS:gardener-resource-manager,IP:127.0.0.1";
        self.issue_for("/CN=gardener-resource-manager", names, certificate, key)
    }

    /// Issues a serving certificate for loopback. Returns it and its key as PEM.
    pub(crate) fn serving_pair(&self) -> Result<[String; 2]> {
        pems(|certificate, key| self.issue(certificate, key))
    }

    /// Issues a certificate for a client, whose subject is such as `/O=group/CN=user`. Returns it and its key as PEM.
    pub(crate) fn client_pair(&self, subject: &str) -> Result<[String; 2]> {
        pems(|certificate, key| self.issue_for(subject, "extendedKeyUsage=clientAuth", certificate, key))
    }

    /// The key is a P-256 key because those are made fast.
    fn issue_for(&self, subject: &str, extension: &str, certificate: &Path, key: &Path) -> Result<()> {
        let (out, keyout) = (text(certificate), text(key));
        let (authority, authority_key) = (text(&self.certificate), text(&self.key));
        let arguments = [
            &["req", "-x509", "-CA", &authority, "-CAkey", &authority_key, "-days", "2"][..],
            &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-out", &out, "-keyout", &keyout],
            &["-subj", subject, "-addext", "basicConstraints=critical,CA:FALSE", "-addext", extension],
        ];
        openssl(&arguments.concat())
    }
}

impl Pair {
    pub(super) fn create(folder: PathBuf, authority: &Authority) -> Result<Self> {
        fs::create_dir(&folder).with_context(|| format!("create {}", folder.display()))?;
        let pair = Self { folder };
        pair.renew(authority)?;
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new(DATA).join(name), pair.folder.join(name))?;
        }
        Ok(pair)
    }

    pub(super) fn renew(&self, authority: &Authority) -> Result<Vec<u8>> {
        let data = tempfile::Builder::new().prefix("..").tempdir_in(&self.folder)?.keep();
        let certificate = data.join("tls.crt");
        authority.issue(&certificate, &data.join("tls.key"))?;
        let link = self.folder.join("..data_tmp");
        symlink(&data, &link)?;
        fs::rename(&link, self.folder.join(DATA))?;
        let issued =
            CertificateDer::from_pem_file(&certificate).map_err(|error| anyhow!("read the certificate: {error}"))?;
        Ok(issued.to_vec())
    }
}

fn pems(issue: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<[String; 2]> {
    let folder = tempfile::tempdir()?;
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    issue(&certificate, &key)?;
    Ok([fs::read_to_string(certificate)?, fs::read_to_string(key)?])
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
