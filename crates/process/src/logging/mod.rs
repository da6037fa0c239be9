//! Logs: one record per line on stderr, in the two formats of spec 70 §10. `record.rs` writes a record as text,
//! `layer.rs` collects its fields, `switch.rs` changes the level while the process runs, and `writer.rs` has a thread
//! and a bounded queue, so that a stalled reader of stderr stalls nothing else. Start reading in [`init`].
//! Rules for log statements:
//! * Messages are constants, everything variable is a field; the field `error` holds errors. Durations are strings
//!   (`1m0s`): format them before.
//! * A dotted field becomes an object: `object.name = %name, object.namespace = %namespace` is written as
//!   `"object":{"name":…,"namespace":…}`.
//! * The field `logger` (of the event or of a span around it) names the logger; the default is the module, e.g.
//!   `dashboard.server` or `managed-resource.apply`.
//! * No field is called `message`: that is the text itself. `detail` says more.
//! * Records in a reconcile or review need no fields to identify it: the span around them has these fields.
//! * The levels are `debug`, `info` and `error`, as log parsers know them. `WARN` is written as `info`.

mod layer;
mod record;
mod switch;
mod writer;

#[cfg(test)]
mod tests;

use std::{any::Any, fmt, io::Write, str::FromStr, sync::Arc};

use jiff::Timestamp;
pub use record::is_own_target;
pub use switch::Switch;
use tracing::{Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Registry,
    filter::{FilterFn, filter_fn},
    layer::{Layer, SubscriberExt as _},
    registry::LookupSpan,
    reload,
    util::{SubscriberInitExt as _, TryInitError},
};
pub use writer::Handle;

/// `logLevel`: the least important records that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// All records of this program; those of libraries from `info` on.
    Debug,
    /// Records for operators, including `WARN`.
    #[default]
    Info,
    /// Errors only.
    Error,
}

/// `logFormat`: the form of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A JSON object with `level`, `ts`, `logger`, `msg`, then the fields.
    #[default]
    Json,
    /// Tab-separated: timestamp, level, logger, message, JSON object of the fields.
    Text,
}

/// An unknown level or format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value {0:?}")]
pub struct UnknownValue(String);

/// A level as a filter. All levels have one filter type, so that they can replace each other.
type LevelFilterFn = FilterFn<fn(&Metadata<'_>) -> bool>;

/// A receiver of spans.
pub type SpanLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Returns the wall time for a record.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Sends all records to stderr, and spans to `spans`. Keep the handle until the end: dropping it writes the waiting
/// records. The switch changes `level` later. Fails if the process has a receiver of records already.
pub fn init(
    level: Level,
    format: Format,
    now: NowFn,
    spans: Option<SpanLayer<Registry>>,
) -> Result<(Handle, Switch), TryInitError> {
    let (layer, handle, switch) = switchable(level, format, now, std::io::stderr());
    tracing_subscriber::registry().with(spans).with(layer).try_init()?;
    Ok((handle, switch))
}

/// The receiver of records only, with another stream than stderr.
pub fn layer<S>(
    level: Level,
    format: Format,
    now: NowFn,
    stream: impl Write + Send + 'static,
) -> (impl Layer<S> + Send + Sync + 'static, Handle)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let (sender, handle) = writer::start(stream);
    (layer::LogLayer::new(format, now, sender).with_filter(level.filter()), handle)
}

fn switchable<S>(
    level: Level,
    format: Format,
    now: NowFn,
    stream: impl Write + Send + 'static,
) -> (impl Layer<S> + Send + Sync + 'static, Handle, Switch)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let (sender, handle) = writer::start(stream);
    let (filter, changes) = reload::Layer::new(level.filter());
    let switch = Switch::new(level, move |level: Level| changes.reload(level.filter()).is_ok());
    (layer::LogLayer::new(format, now, sender).with_filter(filter), handle, switch)
}

/// Logs panics as records of level `error` instead of the default text, which has several lines. The message is written
/// only if it is a constant: a formatted message may contain secrets.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let location = info.location().map(ToString::to_string).unwrap_or_default();
        let message = constant_message(info.payload());
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        tracing::error!(error = message, location, thread, "Panicked");
    }));
}

fn constant_message(payload: &(dyn Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("message withheld")
}

impl Level {
    /// At `debug`, libraries log each frame that they send, which does not help.
    fn admits(self, metadata: &Metadata<'_>) -> bool {
        let own = record::is_own_target(metadata.target());
        let limit = if own { self.most_verbose() } else { self.most_verbose().min(LevelFilter::INFO) };
        *metadata.level() <= limit
    }

    fn filter(self) -> LevelFilterFn {
        let admits: fn(&Metadata<'_>) -> bool = match self {
            Self::Debug => |metadata| Self::Debug.admits(metadata),
            Self::Info => |metadata| Self::Info.admits(metadata),
            Self::Error => |metadata| Self::Error.admits(metadata),
        };
        filter_fn(admits).with_max_level_hint(self.most_verbose())
    }

    fn most_verbose(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Error => LevelFilter::ERROR,
        }
    }
}

impl FromStr for Level {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "debug" => Ok(Self::Debug),
            "info" => Ok(Self::Info),
            "error" => Ok(Self::Error),
            other => Err(UnknownValue(other.to_owned())),
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Error => "error",
        })
    }
}

impl From<&tracing::Level> for Level {
    fn from(level: &tracing::Level) -> Self {
        match *level {
            tracing::Level::ERROR => Self::Error,
            tracing::Level::WARN | tracing::Level::INFO => Self::Info,
            tracing::Level::DEBUG | tracing::Level::TRACE => Self::Debug,
        }
    }
}

impl FromStr for Format {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, UnknownValue> {
        match text {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            other => Err(UnknownValue(other.to_owned())),
        }
    }
}
