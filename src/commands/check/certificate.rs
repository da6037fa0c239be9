//! The serving certificate: whether clients accept it now, as far as that depends on time.

use std::path::Path;

use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use x509_cert::{Certificate, der::Decode as _};

use super::finding::{Finding, Outcome};
use crate::{
    api::config::resource_manager::Config,
    webhooks::server::{SOON, expiration, read_certificate},
};

/// Checks the files of the configuration. The program does not start without them.
pub(super) fn certificate(config: &Config, now: Timestamp) -> Finding {
    let directory = config.server.webhooks.tls.cert_dir(&std::env::temp_dir());
    let (outcome, detail) = state(&directory, now);
    Finding::new("certificate", "", directory.display().to_string(), outcome).because(detail)
}

fn state(directory: &Path, now: Timestamp) -> (Outcome, String) {
    let pair = match read_certificate(directory) {
        Ok(pair) => pair,
        Err(error) => return (Outcome::Missing, error.to_string()),
    };
    if let Some(begin) = beginning(&pair).filter(|begin| *begin > now) {
        let text = format!("it is not valid before {begin}: issue a new one, or correct the clock");
        return (Outcome::Missing, text);
    }
    match expiration(&pair) {
        None => (Outcome::Note, "its end cannot be read".to_owned()),
        Some(end) if end <= now => (Outcome::Missing, format!("it has expired at {end}: issue a new one")),
        Some(end) if end.duration_since(now) < SOON => {
            (Outcome::Note, format!("it expires soon, at {end}: issue a new one"))
        }
        Some(end) => (Outcome::Good, format!("it expires at {end}")),
    }
}

/// Returns when the certificate becomes valid; `None` if that is unreadable.
fn beginning(pair: &CertifiedKey) -> Option<Timestamp> {
    let certificate = Certificate::from_der(pair.cert.first()?).ok()?;
    let seconds = certificate.tbs_certificate().validity().not_before.to_unix_duration().as_secs();
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn certificate_is_judged_by_its_beginning_and_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        (params.not_before, params.not_after) = (date_time_ymd(2026, 2, 1), date_time_ymd(2026, 3, 1));
        let key = KeyPair::generate().unwrap();
        std::fs::write(directory.path().join("tls.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
        std::fs::write(directory.path().join("tls.key"), key.serialize_pem()).unwrap();

        for (day, outcome, text) in [
            (
                "2026-01-31",
                Outcome::Missing,
                "it is not valid before 2026-02-01T00:00:00Z: issue a new one, or correct the clock",
            ),
            ("2026-02-01", Outcome::Good, "it expires at 2026-03-01T00:00:00Z"),
            ("2026-02-27", Outcome::Note, "it expires soon, at 2026-03-01T00:00:00Z: issue a new one"),
            ("2026-03-01", Outcome::Missing, "it has expired at 2026-03-01T00:00:00Z: issue a new one"),
        ] {
            let now = format!("{day}T00:00:00Z").parse().unwrap();

            assert_eq!(state(directory.path(), now), (outcome, text.to_owned()), "{day}");
        }
    }
}
