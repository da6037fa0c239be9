//! The request scheduler: rate, number of writes in flight, and fairness. `schedule` decides (pure); this file lets
//! futures wait for its decisions. Dropping a waiting future gives up its position, and dropping a [`Permit`] frees its
//! slot, so nothing leaks when a reconcile is cut off.

mod schedule;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use kit::Priority;
use tokio::time::{Instant, Sleep};

use self::schedule::{Asked, QueuedRequest, Schedule};
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
    seats: BTreeMap<u64, Seat>,
    /// The waiting future whose timer fires when a bucket refills: one timer for all.
    timekeeper: Option<u64>,
}

#[derive(Default)]
struct Seat {
    granted: bool,
    waker: Option<Waker>,
}

pub(super) struct Permit {
    request_scheduler: RequestScheduler,
    write: bool,
}

struct Waiting {
    request_scheduler: RequestScheduler,
    ticket: u64,
    write: bool,
    timer: Option<Pin<Box<Sleep>>>,
    done: bool,
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
        let asked = {
            let mut state = self.0.state.borrow_mut();
            let request = QueuedRequest {
                priority,
                key: key.clone(),
                bucket: (resource.group.clone(), resource.plural.clone()),
                write,
            };
            let now = Instant::now();
            let asked = state.schedule.ask(now, request);
            if let Asked::Waits(ticket) = asked {
                state.seats.insert(ticket, Seat::default());
                state.grant_ready(now);
                state.wake_timekeeper(); // its timer may have to fire earlier now
            }
            asked
        };
        self.observe();
        match asked {
            Asked::Granted => Permit { request_scheduler: self.clone(), write },
            Asked::Waits(ticket) => {
                Waiting { request_scheduler: self.clone(), ticket, write, timer: None, done: false }.await
            }
        }
    }

    /// Returns the number of waiting requests.
    pub fn waiting(&self) -> usize {
        self.0.state.borrow().schedule.waiting()
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
            if let Some(seat) = self.seats.get_mut(&ticket) {
                seat.granted = true;
                seat.wake();
            }
        }
    }

    fn wake_timekeeper(&mut self) {
        let seat = self.timekeeper.and_then(|ticket| self.seats.get_mut(&ticket));
        seat.into_iter().for_each(Seat::wake);
    }

    /// Removes a seat. Returns true if it was granted. Another future takes over the timer.
    fn remove_seat(&mut self, ticket: u64) -> bool {
        let granted = self.seats.remove(&ticket).is_some_and(|seat| seat.granted);
        if self.timekeeper == Some(ticket) {
            self.timekeeper = None;
            self.seats.values_mut().find(|seat| !seat.granted).into_iter().for_each(Seat::wake);
        }
        granted
    }
}

impl Seat {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.write {
            self.request_scheduler.change(|state| state.schedule.end_write());
        }
    }
}

impl Future for Waiting {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        let this = &mut *self;
        loop {
            let mut state = this.request_scheduler.0.state.borrow_mut();
            let Some(seat) = state.seats.get_mut(&this.ticket) else { return Poll::Pending };
            if seat.granted {
                state.remove_seat(this.ticket);
                this.done = true;
                drop(state);
                return Poll::Ready(Permit { request_scheduler: this.request_scheduler.clone(), write: this.write });
            }
            seat.waker = Some(context.waker().clone());
            if *state.timekeeper.get_or_insert(this.ticket) != this.ticket {
                return Poll::Pending;
            }
            let Some(refill) = state.schedule.next_refill() else { return Poll::Pending };
            drop(state);
            let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(refill)));
            if timer.deadline() != refill {
                timer.as_mut().reset(refill);
            }
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.timer = None;
            this.request_scheduler.change(|_| {});
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let (ticket, write) = (self.ticket, self.write);
        self.request_scheduler.change(|state| {
            if !state.remove_seat(ticket) {
                state.schedule.leave(ticket);
            } else if write {
                state.schedule.end_write();
            }
        });
    }
}

#[cfg(test)]
mod tests;
