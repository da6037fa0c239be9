//! Traces for an OpenTelemetry collector: reconciles, reviews, and their requests to API servers (feature `otel`).
//! `OTEL_EXPORTER_OTLP_ENDPOINT` turns them on. The SDK reads it and its other variables (headers, sampler, sizes of
//! the queue) itself. Spans wait in its bounded queue, and its own thread sends them, as protobuf over HTTP: a slow or
//! absent collector costs spans, but no other time.

use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;

use crate::logging::SpanLayer;

#[cfg(feature = "otel")]
mod export;

/// Address of the collector, e.g. `http://collector:4318`. Without it there are no traces.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Why there are no traces although they are turned on.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The variable is set, but this build cannot export.
    #[error("this build exports no traces — build it with the feature otel, or unset {ENDPOINT}")]
    NotBuilt,
    /// The exporter does not accept its settings.
    #[error("{0} — correct the variables OTEL_*")]
    Settings(String),
}

/// Keeps the export running.
#[must_use = "without its end the last spans are lost"]
#[derive(Debug, Default)]
pub struct Traces {
    #[cfg(feature = "otel")]
    export: Option<export::Export>,
}

/// Returns the receiver of spans, if traces are turned on. `service` is the name of the service without
/// `OTEL_SERVICE_NAME`. `env` reads the environment. Fails if they are turned on but
/// not possible; the program does its work all the same.
pub fn start<S>(
    service: &'static str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<SpanLayer<S>>, Traces), TracesError>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    if env(ENDPOINT).is_none_or(|endpoint| endpoint.is_empty()) {
        return Ok((None, Traces::default()));
    }
    #[cfg(feature = "otel")]
    return export::start(service, env).map(|(layer, export)| (Some(layer), Traces { export: Some(export) }));
    #[cfg(not(feature = "otel"))]
    let _ = service;
    #[cfg(not(feature = "otel"))]
    Err(TracesError::NotBuilt)
}

impl Traces {
    /// Sends the waiting spans, for at most `limit`; later spans are lost.
    pub fn finish(&self, limit: std::time::Duration) {
        #[cfg(feature = "otel")]
        if let Some(export) = &self.export {
            export.finish(limit);
        }
        let _ = limit;
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::Registry;

    use super::*;

    #[test]
    fn traces_are_off_without_an_address() {
        for value in [None, Some(String::new())] {
            let started = start::<Registry>("program", &|_| value.clone());

            assert!(matches!(started, Ok((None, _))));
        }
    }

    #[cfg(not(feature = "otel"))]
    #[test]
    fn traces_error_names_the_missing_feature() {
        let error = start::<Registry>("program", &|_| Some("http://collector:4318".to_owned())).map(drop).unwrap_err();

        assert!(error.to_string().contains("feature otel"), "{error}");
    }
}
