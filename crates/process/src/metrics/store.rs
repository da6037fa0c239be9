use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use prometheus::{GaugeVec, IntGaugeVec};
use tokio::time::Instant;

use super::{Registrar, declared, gauge_value};

/// Metrics of a watch's store. Clones share them; when the last clone is dropped, they disappear.
#[derive(Clone)]
pub struct StoreMetrics {
    cell: Arc<Cell>,
}

pub(super) struct Families {
    objects: IntGaugeVec,
    synced: IntGaugeVec,
    age: GaugeVec,
    cells: Mutex<Vec<Weak<Cell>>>,
}

struct Cell {
    cluster: String,
    kind: String,
    figures: Mutex<Figures>,
}

#[derive(Clone, Copy)]
struct Figures {
    objects: usize,
    synced: bool,
    heard: Instant,
}

impl Families {
    pub(super) fn new(registrar: &Registrar) -> Self {
        Self {
            objects: declared::STORE_OBJECTS.gauges(registrar),
            synced: declared::STORE_SYNCED.gauges(registrar),
            age: declared::STORE_AGE.float_gauges(registrar),
            cells: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn store(&self, cluster: &str, kind: &str, now: Instant) -> StoreMetrics {
        let cell = Arc::new(Cell {
            cluster: cluster.to_owned(),
            kind: kind.to_owned(),
            figures: Mutex::new(Figures { objects: 0, synced: false, heard: now }),
        });
        let mut cells = self.cells();
        cells.retain(|cell| cell.strong_count() > 0);
        cells.push(Arc::downgrade(&cell));
        StoreMetrics { cell }
    }

    /// Sets the values. Stores of one cluster and kind count together: all objects, the worst state, the greatest age.
    pub(super) fn refresh(&self, now: Instant) {
        let mut shown: BTreeMap<(String, String), Figures> = BTreeMap::new();
        for cell in self.cells().iter().filter_map(Weak::upgrade) {
            let figures = *cell.figures();
            shown
                .entry((cell.cluster.clone(), cell.kind.clone()))
                .and_modify(|sum| *sum = sum.with(figures))
                .or_insert(figures);
        }

        self.objects.reset();
        self.synced.reset();
        self.age.reset();
        for ((cluster, kind), figures) in &shown {
            let labels = [cluster.as_str(), kind.as_str()];
            self.objects.with_label_values(&labels).set(gauge_value(figures.objects));
            self.synced.with_label_values(&labels).set(figures.synced.into());
            self.age.with_label_values(&labels).set(now.saturating_duration_since(figures.heard).as_secs_f64());
        }
    }

    fn cells(&self) -> MutexGuard<'_, Vec<Weak<Cell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StoreMetrics {
    /// Sets the number of cached objects.
    pub fn objects(&self, objects: usize) {
        self.cell.figures().objects = objects;
    }

    /// Sets whether the store has its initial list and a working watch.
    pub fn synced(&self, synced: bool) {
        self.cell.figures().synced = synced;
    }

    /// The watch delivered something at `now`: an event, a bookmark or a page of a list.
    pub fn heard(&self, now: Instant) {
        self.cell.figures().heard = now;
    }
}

impl std::fmt::Debug for StoreMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StoreMetrics").field(&self.cell.cluster).field(&self.cell.kind).finish()
    }
}

impl Cell {
    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Figures {
    fn with(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            synced: self.synced && other.synced,
            heard: self.heard.min(other.heard),
        }
    }
}
