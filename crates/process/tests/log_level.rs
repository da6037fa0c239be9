//! The level of the log, in a process of its own: it is a value of the whole process.

use std::sync::Arc;

use jiff::Timestamp;
use process::logging::{self, Format, Level, Logging};
use tracing::level_filters::LevelFilter;

/// Libraries make spans for each HTTP/2 frame. While the level is known, a span that nobody wants costs one comparison.
#[test]
fn log_level_stays_known_after_quiet_work() {
    let logging = Logging { level: Level::Info, format: Format::Json };
    let (_handle, _switch) = logging::init(logging, Arc::new(|| Timestamp::UNIX_EPOCH), None).unwrap();
    assert_eq!(LevelFilter::current(), LevelFilter::INFO);

    let sum = logging::quietly(|| {
        tracing::error!("nobody reads this");
        1 + 1
    });

    assert_eq!(sum, 2);
    assert_eq!(LevelFilter::current(), LevelFilter::INFO);
}
