//! The metrics of a program for tests.

use kit::StatusRegistry;

use super::{
    Declaration, Figure,
    FigureKind::{Countdown, Counter, Gauge, Histogram},
    MetricKind,
    MetricName::Own,
    Metrics, ProgramMetrics,
};

const LEVEL: Declaration =
    Declaration { name: Own("level"), kind: MetricKind::Gauge, labels: &["at"], unit: "m", help: "A level." };
const TRIP: Declaration = Declaration {
    name: Own("trip"),
    kind: MetricKind::Histogram(&[1.0, 10.0]),
    labels: &[],
    unit: "s",
    help: "A trip.",
};
const END: Declaration =
    Declaration { name: Own("end"), kind: MetricKind::Gauge, labels: &[], unit: "s", help: "Time until the end." };
const FALLS: Declaration =
    Declaration { name: Own("falls_total"), kind: MetricKind::Counter, labels: &[], unit: "falls", help: "Falls." };

pub(crate) const PROGRAM: ProgramMetrics = ProgramMetrics {
    prefix: "test",
    figures: &[
        Figure { name: "level", kind: Gauge, declaration: &LEVEL },
        Figure { name: "trip", kind: Histogram, declaration: &TRIP },
        Figure { name: "end", kind: Countdown, declaration: &END },
        Figure { name: "falls", kind: Counter, declaration: &FALLS },
    ],
};

pub(crate) fn metrics() -> Metrics {
    Metrics::new(PROGRAM, &[], "v1.2.3", StatusRegistry::default())
}
