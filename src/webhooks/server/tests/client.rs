use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::Value;

#[derive(Clone)]
pub(super) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    address: SocketAddr,
    seen: Arc<Witness>,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) retry_after: String,
    body: Bytes,
}

#[derive(Debug, Default)]
struct Witness(Mutex<Vec<u8>>);

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        let seen = Arc::<Witness>::default();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls(seen.clone())).https_only().enable_http1();
        let http = HttpClient::builder(TokioExecutor::new()).build(connector.build());
        Self { http, address, seen }
    }

    pub(super) async fn post(&self, path: &str, content_type: &str, body: String) -> Answer {
        self.try_post(path, content_type, body).await.unwrap()
    }

    pub(super) async fn try_post(&self, path: &str, content_type: &str, body: String) -> Result<Answer, String> {
        let mut request = http::Request::post(format!("https://{}{path}", self.address));
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        let response =
            self.http.request(request.body(body.into()).unwrap()).await.map_err(|error| format!("{error:?}"))?;
        let (head, body) = response.into_parts();
        let text =
            |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        Ok(Answer {
            status: head.status.as_u16(),
            content_type: text("content-type"),
            retry_after: text("retry-after"),
            body: body.collect().await.map_err(|error| format!("{error:?}"))?.to_bytes(),
        })
    }

    pub(super) async fn review(&self, path: &str, uid: &str) -> Answer {
        self.post(path, "application/json", super::review(uid)).await
    }

    pub(super) async fn certificate_after_review(&self, path: &str) -> Vec<u8> {
        assert_eq!(self.review(path, "u").await.status, 200);
        self.seen.0.lock().unwrap().clone()
    }
}

pub(super) fn any_tls() -> ClientConfig {
    tls(Arc::default())
}

fn tls(seen: Arc<Witness>) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(seen)
        .with_no_client_auth()
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.0.lock().unwrap() = certificate.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
