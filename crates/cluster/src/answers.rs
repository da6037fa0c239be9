//! How much of the answers of API servers is in memory.
//!
//! Five bounds. None holds up a request:
//!
//! * an answer has at most [`LARGEST_ANSWER`] bytes, as they are after decompression. A page that is larger is asked for
//!   again with fewer objects (`pages.rs`);
//! * all answers under way have at most [`MOST_BYTES`] together, the beginnings of each left aside;
//! * those of one cluster have at most [`MOST_OF_CLUSTER`] of them, so that another one is heard, too;
//! * an answer is made a tree only if that has at most [`MOST_VALUES`];
//! * an answer is nested at most as deeply as [`json::from_slice`] reads.
//!
//! Nobody waits for room, because those who have some may wait as well. What does not fit is an error of its request, and
//! says nothing of any object: [`ApiError::TooLarge`], or that of a broken connection where others have the room.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kit::json;
use kube::client::Body;
use serde_json::Value;

use super::ApiError;

/// Largest answer that is read: an object of the largest size that API servers store, with room for escapes; or a page of a
/// list. API servers send pages of about 1 MiB, because the limit follows the size of the objects.
pub(super) const LARGEST_ANSWER: usize = 16 << 20;
/// Largest error answer that is read.
pub(super) const LARGEST_ERROR: usize = 4 << 20;
/// Bytes of all answers under way.
const MOST_BYTES: usize = 64 << 20;
/// Bytes of those of one cluster: the other one can have an answer of the largest size.
const MOST_OF_CLUSTER: usize = MOST_BYTES - LARGEST_ANSWER;
/// Bytes of each answer that do not count: what nearly all requests bring fits, so that no large answer is in their way.
const FREE: usize = 64 << 10;
/// Values of an answer. A map counts as many as it takes memory for. An object of the size that API servers store
/// by default (1.5 MiB) always fits, whatever is in it.
const MOST_VALUES: usize = 4 << 20;

/// Values of an error answer.
const MOST_VALUES_OF_STATUS: usize = 100_000;

/// Room for answers: one for all clusters of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AnswerRoom {
    taken: Arc<AtomicUsize>,
    /// Of these, by the cluster that this is the room of.
    own: Arc<AtomicUsize>,
}

/// What one answer takes of the room, until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    room: AnswerRoom,
    taken: usize,
}

impl AnswerRoom {
    /// The part of it that one more cluster may use.
    pub(super) fn of_cluster(&self) -> Self {
        Self { taken: self.taken.clone(), own: Arc::default() }
    }

    /// Nothing yet, for an answer that begins.
    pub(super) fn share(&self) -> Share {
        Share { room: self.clone(), taken: 0 }
    }

    /// Bytes that are taken, by all clusters.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Takes, or gives back, what an answer needs that has so many bytes by now.
    pub(super) fn fit(&mut self, bytes: usize) -> Result<(), ApiError> {
        let wanted = bytes.saturating_sub(FREE);
        let (before, is_more) = (self.taken, wanted > self.taken);
        let change = |sum: &AtomicUsize, most: usize| {
            let changed = |sum: usize| Some(sum - before + wanted).filter(|sum| !is_more || *sum <= most);
            sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed).is_ok()
        };
        let is_own = change(&self.room.own, MOST_OF_CLUSTER);
        if !is_own || !change(&self.room.taken, MOST_BYTES) {
            if is_own {
                self.room.own.fetch_sub(wanted - before, Ordering::Relaxed);
            }
            let message = format!("there is no room for {bytes} bytes of an answer while others are read");
            return Err(ApiError::Transport { message, sent: true });
        }
        self.taken = wanted;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.own.fetch_sub(self.taken, Ordering::Relaxed);
        self.room.taken.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

/// Reads a body to its end.
pub(super) async fn read(mut body: Body, largest: usize, share: &mut Share) -> Result<Bytes, ApiError> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::Transport {
            message: format!("cannot read the answer of the API server: {error}"),
            sent: true,
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > largest {
            return Err(ApiError::TooLarge(format!("more than {largest} bytes")));
        }
        if length > bytes.capacity() {
            // In steps of a quarter: what is reserved and not used counts as well.
            let capacity = (length + length / 4).min(largest);
            share.fit(capacity)?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.into())
}

/// The `Status` that the body of an error answer is. A body of many values is none.
pub(super) fn status_in(body: &[u8]) -> Option<Value> {
    let is_small = json::holds_at_most(MOST_VALUES_OF_STATUS, body);
    let read = is_small.then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
    read.filter(|value| value["kind"] == "Status")
}

/// Refuses JSON that would be too large a tree.
pub(super) fn check_values(bytes: &[u8]) -> Result<(), ApiError> {
    if json::holds_at_most(MOST_VALUES, bytes) {
        return Ok(());
    }
    Err(ApiError::TooLarge(format!("more than {MOST_VALUES} values, of which a map counts {}", json::MAP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_share_the_room_and_give_it_back() {
        let room = AnswerRoom::default();
        let (mut one, mut other) = (room.of_cluster().share(), room.of_cluster().share());
        let mut third = room.of_cluster().share();

        one.fit(FREE).unwrap();
        assert_eq!(room.taken(), 0, "the beginning is free");
        one.fit(FREE + 10).unwrap();
        other.fit(FREE + MOST_OF_CLUSTER).unwrap();
        third.fit(FREE + LARGEST_ANSWER - 10).unwrap();
        assert!(matches!(one.fit(FREE + 11), Err(ApiError::Transport { .. })));
        assert_eq!(room.taken(), MOST_BYTES, "what was refused changes nothing");

        third.fit(5).unwrap();
        assert_eq!(room.taken(), MOST_OF_CLUSTER + 10);
        one.fit(FREE + LARGEST_ANSWER).unwrap();
        drop((one, other, third));
        assert_eq!(room.taken(), 0);
    }

    /// spec 70 §8.3
    #[test]
    fn answers_of_one_cluster_leave_room_for_those_of_another() {
        let room = AnswerRoom::default();
        let (one, other) = (room.of_cluster(), room.of_cluster());
        let hold = |_| {
            let mut share = one.share();
            share.fit(LARGEST_ANSWER / 4).ok().map(|()| share)
        };
        let watches: Vec<_> = (0..100).filter_map(hold).collect();

        assert_eq!(watches.len(), 12);
        assert!(other.share().fit(LARGEST_ANSWER).is_ok());
        drop(watches);
        one.share().fit(FREE + MOST_OF_CLUSTER).unwrap();
        assert_eq!(room.taken(), 0);
    }

    #[test]
    fn an_answer_of_one_stored_object_has_never_too_many_values() {
        let smallest = "{\"\":0},".repeat((3 << 19) / 7);

        assert!(check_values(smallest.as_bytes()).is_ok());
        assert!(check_values("{},".repeat(8_000_000).as_bytes()).is_err());
    }
}
