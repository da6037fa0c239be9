//! The exporter of the OpenTelemetry SDK over the program's own HTTP and TLS.

use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::Uri;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
};
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::{Layer as _, filter::filter_fn, registry::LookupSpan};

use super::{ENDPOINT, TracesError};
use crate::{
    BuildInfo,
    logging::{SpanLayer, is_own_target},
};

/// As [`ENDPOINT`], for traces alone: with the path, and it wins.
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const TIMEOUT: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Export {
    provider: SdkTracerProvider,
}

/// The HTTP client of the thread that exports. It has its own runtime, because that thread has none.
#[derive(Debug)]
struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Runtime,
    /// Whether the last request failed: only the first failure in a row is logged.
    failing: AtomicBool,
}

type HttpError = Box<dyn std::error::Error + Send + Sync>;

pub(super) fn start<S>(
    service: &'static str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(SpanLayer<S>, Export), TracesError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let failed = |error: &dyn std::error::Error| TracesError::Settings(error.to_string());
    let collector = Collector::new(is_plain(env)).map_err(|error| failed(&error))?;
    let exporter = SpanExporter::builder().with_http().with_http_client(collector).build();
    let exporter = exporter.map_err(|error| failed(&error))?;
    let version = KeyValue::new("service.version", BuildInfo::of_this_binary().version);
    let mut resource = Resource::builder().with_attribute(version);
    if env("OTEL_SERVICE_NAME").is_none_or(|name| name.is_empty()) {
        resource = resource.with_service_name(service);
    }
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer(service))
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_exported));
    Ok((layer.boxed(), Export { provider }))
}

/// Whether the address of the collector is plain HTTP. The SDK prefers the variable for traces, and refuses what is no address.
fn is_plain(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let address = [TRACES_ENDPOINT, ENDPOINT].into_iter().filter_map(env).find(|address| !address.is_empty());
    let address = address.and_then(|address| address.parse::<Uri>().ok());
    address.is_some_and(|address| address.scheme_str() == Some("http"))
}

/// Our own spans, and our own records above `debug` inside them.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    is_own_target(metadata.target()) && (metadata.is_span() || *metadata.level() <= Level::INFO)
}

impl Export {
    pub(super) fn finish(&self, limit: Duration) {
        // The end of the process does not wait for a collector, and failures were logged already.
        self.provider.shutdown_with_timeout(limit).ok();
    }
}

impl Collector {
    /// Only HTTPS needs the certificate authorities of the system, which an image may lack.
    fn new(is_plain: bool) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (builder, provider) = (HttpsConnectorBuilder::new(), ring::default_provider());
        let builder = match is_plain {
            true => builder.with_tls_config(trusting_nobody(provider)?),
            false => builder.with_provider_and_native_roots(provider)?,
        };
        let connector = builder.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { client, runtime, failing: AtomicBool::new(false) })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.client.request(request.map(Full::new)).await?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST_ANSWER).collect().await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }

    fn note(&self, problem: Option<String>) {
        let failed_before = self.failing.swap(problem.is_some(), Ordering::Relaxed);
        match problem {
            Some(error) if !failed_before => tracing::warn!(error, "Traces cannot be exported"),
            None if failed_before => tracing::info!("Traces are exported again"),
            _ => {}
        }
    }
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let exchange = async { tokio::time::timeout(TIMEOUT, self.exchange(request)).await };
            let result = self.runtime.block_on(exchange).unwrap_or_else(|_| Err("no answer within 10 s".into()));
            let problem = match &result {
                Ok(answer) if answer.status().is_success() => None,
                Ok(answer) => Some(format!("HTTP status {}", answer.status())),
                Err(error) => Some(causes(&**error)),
            };
            self.note(problem);
            result
        })
    }
}

fn trusting_nobody(provider: CryptoProvider) -> io::Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
    let builder = builder.map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// An error with its causes: the first text alone says little about a refused connection.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let texts = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    texts.collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_authorities_are_needed_unless_the_address_that_counts_is_plain() {
        for (all, traces, expected) in [
            ("http://collector:4318", "", true),
            ("HTTP://collector:4318", "", true),
            ("https://collector:4318", "", false),
            ("https://collector:4318", "http://collector:4318/v1/traces", true),
            ("http://collector:4318", "https://collector:4318/v1/traces", false),
            ("collector:4318", "", false),
            ("http://collector:4318", "not an address", false),
            ("", "", false),
        ] {
            let env = |name: &str| Some(if name == TRACES_ENDPOINT { traces } else { all }.to_owned());

            assert_eq!(is_plain(&env), expected, "{all:?} {traces:?}");
        }
        assert!(!is_plain(&|_| None));
    }
}
