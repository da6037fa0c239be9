//! Keys and certificates of the demonstration. They are new in each run.

use std::{fs, io, net::Ipv4Addr, path::Path};

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use tempfile::TempDir;

/// The serving certificate of the webhooks in a folder, as production mounts it. The folder goes with this value.
pub(super) struct ServingCertificate {
    folder: TempDir,
    der: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CertificateError {
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot write the certificate: {0}")]
    Write(#[from] io::Error),
}

impl ServingCertificate {
    /// A certificate for loopback, signed by itself.
    pub(super) fn create() -> Result<Self, CertificateError> {
        let mut params = parameters("gardener-resource-manager", None);
        params.subject_alt_names = vec![SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let folder = tempfile::Builder::new().prefix("gardener-resource-manager-demo-").tempdir()?; // for its owner only
        fs::write(folder.path().join("tls.crt"), certificate.pem())?;
        fs::write(folder.path().join("tls.key"), key.serialize_pem())?;
        Ok(Self { folder, der: certificate.der().to_vec() })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The certificate for clients, which trust it as their only authority.
    pub(super) fn authority(&self) -> Vec<u8> {
        self.der.clone()
    }
}

/// Returns the PEM of a request for the serving certificate of a kubelet.
pub(super) fn kubelet_request(node: &str, addresses: &[Ipv4Addr]) -> Result<String, CertificateError> {
    let mut params = parameters(&format!("system:node:{node}"), Some("system:nodes"));
    params.subject_alt_names = vec![SanType::DnsName(node.try_into()?)];
    params.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress((*address).into())));
    Ok(params.serialize_request(&KeyPair::generate()?)?.pem()?)
}

fn parameters(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::server::read_certificate;

    #[test]
    fn certificate_is_read_by_the_webhook_server_and_goes_with_the_demonstration() {
        let certificate = ServingCertificate::create().unwrap();
        let folder = certificate.folder().to_owned();

        let pair = read_certificate(&folder).unwrap();

        assert_eq!(pair.cert[0].to_vec(), certificate.authority());
        drop(certificate);
        assert!(!folder.exists());
    }
}
