//! The request scheduler: rate, number of writes in flight, and fairness. `schedule` decides (pure); this file lets
//! futures wait for its decisions. Dropping a waiting future gives up its position, and dropping a [`Permit`] frees its
//! slot, so nothing leaks when a reconcile is cut off.

mod schedule;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

use kit::Priority;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use self::schedule::{QueuedRequest, Schedule};
use super::{ClusterLabel, RequestObserver, Resource};

/// The request scheduler of one cluster; cheap to clone.
#[derive(Clone)]
pub struct RequestScheduler(Rc<Inner>);

struct Inner {
    state: RefCell<SchedulerState>,
    label: ClusterLabel,
    observer: Rc<dyn RequestObserver>,
}

struct SchedulerState {
    schedule: Schedule,
    /// The waiting futures by ticket.
    seats: BTreeMap<u64, Rc<Seat>>,
    /// The waiting future whose timer fires when a bucket refills: one timer for all.
    timekeeper: Option<u64>,
}

#[derive(Default)]
struct Seat {
    granted: Cell<bool>,
    bell: Notify,
}

pub(super) struct Permit {
    request_scheduler: RequestScheduler,
    write: bool,
}

/// A waiting future. Dropped, it gives up its seat if it has not left it.
struct Waiting {
    request_scheduler: RequestScheduler,
    ticket: u64,
    priority: Priority,
    key: Rc<str>,
    write: bool,
}

impl RequestScheduler {
    /// Allows `qps` requests per second and resource type beyond a burst of `burst`; negative `qps` is unlimited.
    pub(super) fn new(qps: f32, burst: u32, label: ClusterLabel, observer: Rc<dyn RequestObserver>) -> Self {
        let state = SchedulerState { schedule: Schedule::new(qps, burst), seats: BTreeMap::new(), timekeeper: None };
        Self(Rc::new(Inner { state: RefCell::new(state), label, observer }))
    }

    pub(super) fn half(qps: f32, burst: u32, label: ClusterLabel, observer: Rc<dyn RequestObserver>) -> Self {
        let (qps, burst) = schedule::given_or_usual(qps, burst);
        Self::new(qps / 2.0, burst.div_ceil(2), label, observer)
    }

    pub(super) async fn acquire(&self, priority: Priority, key: &Rc<str>, resource: &Resource, write: bool) -> Permit {
        let waits = {
            let mut state = self.0.state.borrow_mut();
            let bucket = (resource.group.clone(), resource.plural.clone());
            let now = Instant::now();
            let ticket = state.schedule.ask(now, QueuedRequest { priority, key: key.clone(), bucket, write });
            ticket.map(|ticket| {
                let seat = Rc::<Seat>::default();
                state.seats.insert(ticket, seat.clone());
                state.grant_ready(now);
                state.wake_timekeeper(); // its timer may have to fire earlier now
                (ticket, seat)
            })
        };
        self.observe();
        if let Some((ticket, seat)) = waits {
            let _waiting = Waiting { request_scheduler: self.clone(), ticket, priority, key: key.clone(), write };
            self.granted(ticket, &seat).await;
        }
        Permit { request_scheduler: self.clone(), write }
    }

    /// Waits until a ticket is granted, then leaves its seat. Minds the timer if no other future does.
    async fn granted(&self, ticket: u64, seat: &Seat) {
        loop {
            let refill = {
                let mut state = self.0.state.borrow_mut();
                if seat.granted.get() {
                    state.remove_seat(ticket);
                    return;
                }
                let is_timekeeper = *state.timekeeper.get_or_insert(ticket) == ticket;
                if is_timekeeper { state.schedule.next_refill() } else { None }
            };
            match refill {
                None => seat.bell.notified().await,
                Some(refill) if timeout_at(refill, seat.bell.notified()).await.is_err() => self.change(|_| {}),
                Some(_) => {}
            }
        }
    }

    /// Returns the requests per second and resource type, and the burst; `None` if there is no limit.
    pub fn rate(&self) -> Option<(f64, f64)> {
        self.0.state.borrow().schedule.rate()
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        let (high, low) = self.0.state.borrow().schedule.waiting_by_priority();
        high + low
    }

    /// Returns the number of writes in flight.
    pub fn writes_in_flight(&self) -> usize {
        self.0.state.borrow().schedule.in_flight()
    }

    fn change(&self, change: impl FnOnce(&mut SchedulerState)) {
        let mut state = self.0.state.borrow_mut();
        change(&mut state);
        state.grant_ready(Instant::now());
        if state.schedule.next_refill().is_some() {
            // The timekeeper has no timer if its bucket had tokens at its last check, and only a slot was missing.
            state.wake_timekeeper();
        }
        drop(state);
        self.observe();
    }

    fn observe(&self) {
        let (high, low) = self.0.state.borrow().schedule.waiting_by_priority();
        self.0.observer.request_scheduler(self.0.label, high, low, self.writes_in_flight());
    }
}

impl std::fmt::Debug for RequestScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, in_flight) = (self.waiting(), self.writes_in_flight());
        f.debug_struct("RequestScheduler").field("waiting", &waiting).field("writes_in_flight", &in_flight).finish()
    }
}

impl SchedulerState {
    /// Grants all requests that may go now, and wakes their futures.
    fn grant_ready(&mut self, now: Instant) {
        for ticket in self.schedule.grant(now) {
            if let Some(seat) = self.seats.get(&ticket) {
                seat.granted.set(true);
                seat.bell.notify_one();
            }
        }
    }

    fn wake_timekeeper(&mut self) {
        if let Some(seat) = self.timekeeper.and_then(|ticket| self.seats.get(&ticket)) {
            seat.bell.notify_one();
        }
    }

    /// Removes a seat. Returns true if it was granted. Another future takes over the timer.
    fn remove_seat(&mut self, ticket: u64) -> bool {
        let granted = self.seats.remove(&ticket).is_some_and(|seat| seat.granted.get());
        if self.timekeeper == Some(ticket) {
            self.timekeeper = None;
            self.seats.values().find(|seat| !seat.granted.get()).into_iter().for_each(|seat| seat.bell.notify_one());
        }
        granted
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.write {
            self.request_scheduler.change(|state| state.schedule.end_write());
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Self { request_scheduler, ticket, priority, key, write } = self;
        if !request_scheduler.0.state.borrow().seats.contains_key(ticket) {
            return;
        }
        request_scheduler.change(|state| {
            if !state.remove_seat(*ticket) {
                state.schedule.leave(*ticket, *priority, key);
            } else if *write {
                state.schedule.end_write();
            }
        });
    }
}

#[cfg(test)]
mod tests;
