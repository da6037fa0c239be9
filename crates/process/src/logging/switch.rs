use super::Level;

/// Turns `debug` on and off.
pub struct Switch {
    configured: Level,
    current: Level,
    set: Box<dyn Fn(Level) -> bool + Send>,
}

impl Switch {
    /// `set` makes a level the current one, and returns whether it could.
    pub(super) fn new(configured: Level, set: impl Fn(Level) -> bool + Send + 'static) -> Self {
        Self { configured, current: configured, set: Box::new(set) }
    }

    /// Switches between the configured level and `debug` (if that is `debug`: `info`). Always logs the change.
    pub fn toggle(&mut self) {
        let next = match (self.current == self.configured, self.configured) {
            (false, configured) => configured,
            (true, Level::Debug) => Level::Info,
            (true, Level::Info | Level::Error) => Level::Debug,
        };
        if next == Level::Error {
            tracing::info!(now = %next, "The level of the log changes"); // not visible afterwards
        }
        if (self.set)(next) {
            self.current = next;
        }
        if next != Level::Error {
            tracing::info!(now = %self.current, "The level of the log changes");
        }
    }
}
