//! Logs: one record per line on stderr, in the two formats of spec 70 §10.
//!
//! * `record.rs`: a record as text, pure: JSON or tab-separated;
//! * `layer.rs`: collects a record's fields from the event and the spans around it;
//! * `switch.rs`: more records, and fewer again, while the process runs;
//! * `writer.rs`: a thread and a bounded queue before the stream, so that a stalled reader of stderr stalls nobody.
//!
//! Rules for those who log:
//!
//! * Messages are constants, everything variable is a field; the field `error` holds errors. Durations are strings
//!   (`1m0s`): format them before.
//! * A dotted field becomes an object: `object.name = %name, object.namespace = %namespace` is written as
//!   `"object":{"name":…,"namespace":…}`.
//! * The field `logger` (of the event or of a span around it) names the logger; else it is the module, e.g.
//!   `dashboard.server` or `managed-resource.apply`.
//! * No field is called `message`: that is the text itself. `detail` says more.
//! * What happens in a pass or a review needs no field to say which: the span around it has them.
//! * There are the levels `debug`, `info` and `error`, as log parsers know them. `WARN` is written as `info`.
//!
//! Start reading in [`init`].

mod layer;
mod record;
mod switch;
mod writer;

#[cfg(test)]
mod tests;

use std::{any::Any, fmt, io::Write, str::FromStr, sync::Arc};

use jiff::Timestamp;
use tracing::{Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{
    Registry,
    filter::{FilterFn, filter_fn},
    layer::{Layer, SubscriberExt as _},
    registry::LookupSpan,
    reload,
    util::{SubscriberInitExt as _, TryInitError},
};

pub use record::is_own_target;
pub use switch::Switch;
pub use writer::Handle;

/// The least important records that are written: `logLevel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// Everything this program says; libraries from `info` on.
    Debug,
    /// What an operator wants to know. `WARN` counts as this.
    #[default]
    Info,
    /// Errors alone.
    Error,
}

/// How records are written: `logFormat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// A JSON object with `level`, `ts`, `logger`, `msg`, then the fields.
    #[default]
    Json,
    /// Tab-separated: timestamp, level, logger, message, JSON object of the fields.
    Text,
}

/// A level or format that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value {0:?}")]
pub struct UnknownValue(String);

/// A level as a filter. All levels are filters of one type, so that one can take the place of another.
type LevelFilterFn = FilterFn<fn(&Metadata<'_>) -> bool>;

/// A receiver of spans.
pub type SpanLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Asks for the wall time of a record.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Sends all records of the process to stderr, and its spans to `spans`. Keep the handle until the end: dropping it writes
/// what still waits. The switch changes `level` later.
///
/// # Errors
///
/// There is a receiver of records already.
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

/// The receiver of records alone, with another stream than stderr.
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

/// The receiver of records with a level that can be changed.
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

/// Logs panics as records of level `error` instead of the default text, which is not one line.
///
/// The message is written only when it is a constant: one that was put together may hold what must not be logged.
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
    /// Libraries log each frame they send at `debug`; that helps nobody here.
    fn admits(self, metadata: &Metadata<'_>) -> bool {
        let own = record::is_own_target(metadata.target());
        let limit = if own { self.most_verbose() } else { self.most_verbose().min(LevelFilter::INFO) };
        *metadata.level() <= limit
    }

    /// Lets pass what this level admits.
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
