//! Permits: how many passes of a duty run at once, and who is next (contract rule 5). Pure.

use std::collections::VecDeque;

use super::Lane;

/// Each permit with this number goes to the background lane, so that live work cannot starve it.
const BACKGROUND_TURN: u32 = 8;

/// The permits of one duty. `T` names who asks.
#[derive(Debug)]
pub(super) struct Governor<T> {
    permits: usize,
    in_use: usize,
    live: VecDeque<T>,
    background: VecDeque<T>,
    /// Grants since the background lane had its turn.
    since_background: u32,
}

impl<T: PartialEq> Governor<T> {
    /// A governor of `permits` permits; 0 counts as 1 (spec 70 §4).
    pub(super) fn new(permits: usize) -> Self {
        Self {
            permits: permits.max(1),
            in_use: 0,
            live: VecDeque::new(),
            background: VecDeque::new(),
            since_background: 0,
        }
    }

    /// Queues `who`. Call [`Governor::grant`] afterwards.
    pub(super) fn request(&mut self, who: T, lane: Lane) {
        match lane {
            Lane::Live => self.live.push_back(who),
            Lane::Background => self.background.push_back(who),
        }
    }

    /// Moves `who` to the end of the live lane if it waits in the background.
    pub(super) fn hurry(&mut self, who: &T) {
        if let Some(position) = self.background.iter().position(|waiting| waiting == who)
            && let Some(who) = self.background.remove(position)
        {
            self.live.push_back(who);
        }
    }

    /// Gives a free permit to the next in turn; `None` when no permit is free or nobody waits.
    pub(super) fn grant(&mut self) -> Option<T> {
        if self.in_use >= self.permits {
            return None;
        }
        let background_turn = self.since_background + 1 >= BACKGROUND_TURN && !self.background.is_empty();
        let next = if background_turn { None } else { self.live.pop_front() };
        let granted = match next {
            Some(who) => {
                self.since_background = (self.since_background + 1).min(BACKGROUND_TURN);
                who
            }
            None => {
                let who = self.background.pop_front()?;
                self.since_background = 0;
                who
            }
        };
        self.in_use += 1;
        Some(granted)
    }

    /// Gives a permit back.
    pub(super) fn release(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// How many wait in a lane.
    pub(super) fn waiting(&self, lane: Lane) -> usize {
        match lane {
            Lane::Live => self.live.len(),
            Lane::Background => self.background.len(),
        }
    }
}
