use std::fmt;

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record as SpanRecord},
};
use tracing_subscriber::{
    layer::{Context, Layer},
    registry::LookupSpan,
};

use super::{
    Format, Level, NowFn,
    record::{Fields, LogRecord},
    writer::Sender,
};

/// Turns events into lines. Fields of spans come first, from the outermost span on; the innermost of equal names wins.
pub(super) struct LogLayer {
    format: Format,
    now: NowFn,
    sender: Sender,
}

impl LogLayer {
    pub(super) fn new(format: Format, now: NowFn, sender: Sender) -> Self {
        Self { format, now, sender }
    }

    fn loss(&self, records: usize) -> String {
        let mut fields = Fields::default();
        fields.set_text("message", "Dropped log records because their reader is too slow");
        fields.set_plain("records", records);
        LogRecord { level: Level::Info, at: (self.now)(), target: module_path!(), fields: &fields }.line(self.format)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &SpanRecord<'_>, context: Context<'_, S>) {
        // A value's formatter may log, which reads the fields of the span: they must not be locked then.
        let mut fields = Fields::default();
        values.record(&mut fields);
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        match extensions.get_mut::<Fields>() {
            Some(known) => known.extend(&fields),
            None => extensions.insert(fields),
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(outer) = span.extensions().get::<Fields>() {
                fields.extend(outer);
            }
        }
        event.record(&mut fields);

        let metadata = event.metadata();
        let (level, target) = (metadata.level().into(), metadata.target());
        let record = LogRecord { level, at: (self.now)(), target, fields: &fields };
        self.sender.send(&record.line(self.format), level == Level::Error, |lost| self.loss(lost));
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.set_text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set_plain(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set_plain(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set_plain(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        match serde_json::Number::from_f64(value) {
            Some(number) => self.set_plain(field.name(), number),
            // JSON has no infinity and no NaN. Their names say more than null.
            None => self.set_text(field.name(), &value.to_string()),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.set_text(field.name(), &value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set_text(field.name(), &format!("{value:?}"));
    }
}
