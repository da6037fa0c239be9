//! Permits: how many reconciles of a reconciler run at once, and which key is next (contract rule 5). Pure.

use std::collections::VecDeque;

use super::Priority;

/// Each permit with this number goes to low priority, so that high priority cannot starve it.
const LOW_PRIORITY_TURN: u32 = 8;

#[derive(Debug)]
pub(super) struct ConcurrencyLimiter<T> {
    permits: usize,
    in_use: usize,
    high: VecDeque<T>,
    low: VecDeque<T>,
    since_low: u32,
}

impl<T: PartialEq> ConcurrencyLimiter<T> {
    /// Creates a limiter with `permits` permits; 0 counts as 1 (spec 70 §4).
    pub(super) fn new(permits: usize) -> Self {
        Self { permits: permits.max(1), in_use: 0, high: VecDeque::new(), low: VecDeque::new(), since_low: 0 }
    }

    /// Queues `who`. Call [`ConcurrencyLimiter::grant`] afterwards.
    pub(super) fn request(&mut self, who: T, priority: Priority) {
        match priority {
            Priority::High => self.high.push_back(who),
            Priority::Low => self.low.push_back(who),
        }
    }

    /// Moves `who` to the end of the high-priority queue if it waits with low priority.
    pub(super) fn hurry(&mut self, who: &T) {
        if let Some(position) = self.low.iter().position(|waiting| waiting == who)
            && let Some(who) = self.low.remove(position)
        {
            self.high.push_back(who);
        }
    }

    /// Grants a free permit to the next in turn. Returns `None` when no permit is free or no key waits.
    pub(super) fn grant(&mut self) -> Option<T> {
        if self.in_use >= self.permits {
            return None;
        }
        let low_priority_turn = self.since_low + 1 >= LOW_PRIORITY_TURN && !self.low.is_empty();
        let next = if low_priority_turn { None } else { self.high.pop_front() };
        let granted = match next {
            Some(who) => {
                self.since_low = (self.since_low + 1).min(LOW_PRIORITY_TURN);
                who
            }
            None => {
                let who = self.low.pop_front()?;
                self.since_low = 0;
                who
            }
        };
        self.in_use += 1;
        Some(granted)
    }

    pub(super) fn release(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// Returns how many permits are in use, and how many there are.
    pub(super) fn in_use(&self) -> (usize, usize) {
        (self.in_use, self.permits)
    }

    /// Returns how many wait before `who`, apart from the turns of low priority.
    pub(super) fn position(&self, who: &T) -> Option<usize> {
        self.high.iter().chain(&self.low).position(|waiting| waiting == who)
    }

    pub(super) fn waiting(&self, priority: Priority) -> usize {
        match priority {
            Priority::High => self.high.len(),
            Priority::Low => self.low.len(),
        }
    }
}
