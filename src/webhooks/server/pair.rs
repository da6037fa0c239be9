//! The serving certificate and its key as files (spec 70 §11).

use std::path::{Path, PathBuf};

use cluster::files;
use jiff::Timestamp;
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
    sign::CertifiedKey,
};
use x509_cert::{Certificate, der::Decode as _};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// Bound of a file's size: the files usually come from a Secret, which holds no more.
const LARGEST: u64 = 1 << 20;
pub(super) const FILES: [&str; 2] = [CERTIFICATE, KEY];

/// Why the pair is unusable. Texts contain nothing of the key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file is missing, unreadable or has no matching PEM block.
    #[error("cannot read the serving certificate: {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
    /// The key has an unsupported type, or does not belong to the certificate.
    #[error("cannot use the serving certificate in {}: {cause}", directory.display())]
    Pair {
        /// Directory of the pair.
        directory: PathBuf,
        /// The cause.
        #[source]
        cause: rustls::Error,
    },
}

/// Reads the pair in a directory. Fails if a file is missing or broken, or if key and certificate do not match.
pub fn read_certificate(directory: &Path) -> Result<CertifiedKey, CertificateError> {
    let path = directory.join(CERTIFICATE);
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(&path)?).collect();
    let chain = match chain {
        Ok(chain) if chain.is_empty() => Err(pem::Error::NoItemsFound),
        other => other,
    };
    let chain = chain.map_err(|error| CertificateError::of_file(path, &error))?;
    let path = directory.join(KEY);
    let key = PrivateKeyDer::from_pem_slice(&read(&path)?).map_err(|error| CertificateError::of_file(path, &error))?;
    let unusable = |cause| CertificateError::Pair { directory: directory.to_owned(), cause };
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(unusable)
}

/// Returns when the certificate expires; `None` if that is unreadable. A certificate without an end (RFC 5280: the year 9999)
/// expires at the last time that can be represented.
pub(crate) fn expiration(pair: &CertifiedKey) -> Option<Timestamp> {
    let certificate = Certificate::from_der(pair.cert.first()?).ok()?;
    let seconds = certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs();
    Some(Timestamp::from_second(i64::try_from(seconds).ok()?).unwrap_or(Timestamp::MAX))
}

fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let failed = |error: std::io::Error| CertificateError::File { path: path.to_owned(), cause: error.to_string() };
    files::read_regular(path, LARGEST).map_err(failed)
}

impl CertificateError {
    /// Reports only the kind of error, because a parser may quote the key.
    fn of_file(path: PathBuf, error: &pem::Error) -> Self {
        let cause = match error {
            pem::Error::NoItemsFound => "no PEM block of the right kind found".to_owned(),
            _ => "it is not valid PEM".to_owned(),
        };
        Self::File { path, cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 scenario 26
    #[test]
    fn certificate_error_names_the_missing_file() {
        let directory = tempfile::tempdir().unwrap();

        let error = read_certificate(directory.path()).unwrap_err().to_string();

        assert!(error.contains("tls.crt") && error.contains("No such file"), "{error}");
    }

    /// spec 70 §11
    #[test]
    fn certificate_that_is_a_pipe_or_without_end_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(CERTIFICATE);
        let refusal = || read_certificate(directory.path()).unwrap_err().to_string();

        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(refusal().ends_with("tls.crt: it is not a regular file"), "{}", refusal());

        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(refusal().ends_with("tls.crt: it is not a regular file"), "{}", refusal());

        std::fs::remove_file(&path).unwrap();
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(refusal().ends_with("tls.crt: file is larger than 1 MiB"), "{}", refusal());
    }

    #[test]
    fn certificate_error_contains_nothing_of_the_files() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n";
        let cases = [
            ("", "", "no PEM block of the right kind found"),
            ("-----BEGIN CERTIFICATE-----\nc2Vj*mV0", "", "not valid PEM"),
            (certificate, "", "tls.key"),
            (certificate, key, "cannot use the serving certificate"),
        ];

        for (certificate, key, expected) in cases {
            std::fs::write(directory.path().join(CERTIFICATE), certificate).unwrap();
            std::fs::write(directory.path().join(KEY), key).unwrap();

            let error = read_certificate(directory.path()).unwrap_err().to_string();

            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret") && !error.contains("c2Vj"), "{error}");
        }
    }
}
