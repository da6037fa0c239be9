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

use std::{any::Any, fmt, io::Write, sync::Arc};

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

/// A receiver of spans.
pub type SpanLayer<S> = Box<dyn Layer<S> + Send + Sync>;

/// Returns the wall time for a record.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Sends all records to stderr, and spans to `spans`. Keep the handle until the end: dropping it writes the waiting
/// records. The switch changes the level later. Fails if the process has a receiver of records already.
pub fn init(
    logging: Logging,
    now: NowFn,
    spans: Option<SpanLayer<Registry>>,
) -> Result<(Handle, Switch), TryInitError> {
    let (layer, handle, switch) = layer(logging, now, std::io::stderr());
    tracing_subscriber::registry().with(spans).with(layer).try_init()?;
    Ok((handle, switch))
}

/// The receiver of records only, with another stream than stderr.
pub fn layer<S>(
    Logging { level, format }: Logging,
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

/// Runs `work` without the records that it would write.
///
/// Spans and records of libraries are cheap because the most verbose level that anybody wants is known in one place. Each
/// further subscriber raises this level to TRACE, until somebody computes it anew.
#[expect(clippy::disallowed_types, reason = "the level is computed anew afterwards")]
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let result = tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::default(), work);
    tracing::callsite::rebuild_interest_cache();
    result
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

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logging {
    /// Least important level that is written.
    pub level: Level,
    /// Form of a record.
    pub format: Format,
}

impl Logging {
    /// The log with these names of the configuration; an unknown one counts as `info` or `json`.
    pub fn named(level: &str, format: &str) -> Self {
        Self {
            level: Level::from_name(level).unwrap_or_default(),
            format: Format::from_name(format).unwrap_or_default(),
        }
    }
}

impl Level {
    /// All names, in the order of messages.
    pub const NAMES: [&'static str; 3] = ["debug", "info", "error"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "error" => Some(Self::Error),
            _ => None,
        }
    }

    /// At `debug`, libraries log each frame that they send, which does not help.
    fn admits(self, metadata: &Metadata<'_>) -> bool {
        let own = record::is_own_target(metadata.target());
        let limit = if own { self.most_verbose() } else { self.most_verbose().min(LevelFilter::INFO) };
        *metadata.level() <= limit
    }

    /// All levels have one type of filter, so that they can replace each other.
    fn filter(self) -> FilterFn<impl Fn(&Metadata<'_>) -> bool> {
        filter_fn(move |metadata: &Metadata<'_>| self.admits(metadata)).with_max_level_hint(self.most_verbose())
    }

    fn most_verbose(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Error => LevelFilter::ERROR,
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

impl Format {
    /// All names, in the order of messages.
    pub const NAMES: [&'static str; 2] = ["json", "text"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}
