//! Metrics of a program's own, which its controllers set by name: [`kit::Env::figure`] knows no type of metric.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use prometheus::{CounterVec, GaugeVec, HistogramVec};

use super::{Declaration, NO_LABELS, Registrar};

/// A metric that controllers set by name. Only a gauge may have more than one label.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The name that controllers use.
    pub name: &'static str,
    /// What is done with a value.
    pub kind: FigureKind,
    /// The metric.
    pub declaration: &'static Declaration,
}

/// What is done with the values of a [`Figure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureKind {
    /// The metric is a gauge with the last value.
    Gauge,
    /// The metric is a counter that grows by the value. The value 0 makes its series.
    Counter,
    /// The metric is a histogram of all values.
    Histogram,
    /// The value is a time in seconds since 1970. The metric is a gauge with the time that remains until then, in seconds;
    /// it is absent while the value is not a number.
    Countdown,
}

pub(super) struct Families(Vec<Family>);

struct Family {
    figure: Figure,
    series: FigureSeries,
}

enum FigureSeries {
    Gauge(GaugeVec),
    Counter(CounterVec),
    Histogram(HistogramVec),
    Countdown { remaining: GaugeVec, end: Mutex<Option<f64>> },
}

impl Families {
    pub(super) fn new(registrar: &Registrar, figures: &[Figure]) -> Self {
        let family = |figure: &Figure| Family { figure: *figure, series: FigureSeries::new(figure, registrar) };
        Self(figures.iter().map(family).collect())
    }

    pub(super) fn set(&self, name: &str, label: &'static str, value: f64) {
        let Some(family) = self.0.iter().find(|family| family.figure.name == name) else { return };
        let labels: &[&str] = if family.figure.declaration.labels.is_empty() { &NO_LABELS } else { &[label] };
        match &family.series {
            FigureSeries::Gauge(gauge) => gauge.with_label_values(labels).set(value),
            // A counter never shrinks.
            FigureSeries::Counter(counter) => counter.with_label_values(labels).inc_by(value.max(0.0)),
            FigureSeries::Histogram(histogram) => histogram.with_label_values(labels).observe(value),
            FigureSeries::Countdown { end, .. } => {
                *end.lock().unwrap_or_else(PoisonError::into_inner) = Some(value).filter(|time| time.is_finite());
            }
        }
    }

    /// Sets a series of a gauge, or removes it. Labels that do not fit the declaration are ignored.
    pub(super) fn set_series(&self, name: &str, labels: &[&str], value: Option<f64>) {
        let Some(family) = self.0.iter().find(|family| family.figure.name == name) else { return };
        let FigureSeries::Gauge(gauge) = &family.series else { return };
        match value {
            Some(value) => {
                if let Ok(series) = gauge.get_metric_with_label_values(labels) {
                    series.set(value);
                }
            }
            // An error means that the series does not exist.
            None => drop(gauge.remove_label_values(labels)),
        }
    }

    pub(super) fn refresh(&self, now: Timestamp) {
        for family in &self.0 {
            let FigureSeries::Countdown { remaining, end } = &family.series else { continue };
            remaining.reset();
            if let Some(end) = *end.lock().unwrap_or_else(PoisonError::into_inner) {
                remaining.with_label_values(&NO_LABELS).set((end - now.as_duration().as_secs_f64()).round());
            }
        }
    }
}

impl FigureSeries {
    fn new(figure: &Figure, registrar: &Registrar) -> Self {
        let declaration = figure.declaration;
        match figure.kind {
            FigureKind::Gauge => Self::Gauge(declaration.float_gauges(registrar)),
            FigureKind::Counter => Self::Counter(declaration.float_counters(registrar)),
            FigureKind::Histogram => Self::Histogram(declaration.histograms(registrar)),
            FigureKind::Countdown => {
                Self::Countdown { remaining: declaration.float_gauges(registrar), end: Mutex::default() }
            }
        }
    }
}
