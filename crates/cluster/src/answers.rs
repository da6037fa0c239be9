//! Bounds on the memory for answers of API servers. None of them makes a request wait:
//! * an answer has at most [`LARGEST_ANSWER`] bytes decompressed; a larger page is requested in smaller ones
//!   (`pages.rs`);
//! * all answers in progress have at most [`MOST_BYTES`] together, without the free first bytes of each;
//! * answers of one cluster have at most [`MOST_OF_CLUSTER`] of them, so that the other cluster stays readable;
//! * an answer becomes a tree only if that tree has at most [`MOST_VALUES`];
//! * an answer is nested at most as deeply as [`json::from_slice`] reads.
//!
//! Requests do not wait for room, because those that have some may wait as well. An answer that does not fit is an
//! error of its request and says nothing of any object: [`ApiError::TooLarge`], or a broken connection.

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use kit::json;
use serde_json::Value;

use super::ApiError;

/// Largest answer that is read: the largest stored object with room for escapes. Pages of lists have about 1 MiB.
pub(super) const LARGEST_ANSWER: usize = 16 << 20;
pub(super) const LARGEST_ERROR: usize = 4 << 20;
const MOST_BYTES: usize = 64 << 20;
/// Bytes of one cluster's answers: the other cluster can still read an answer of the largest size.
const MOST_OF_CLUSTER: usize = MOST_BYTES - LARGEST_ANSWER;
/// Bytes of each answer that do not count: nearly all answers fit, so that no large answer blocks them.
const FREE: usize = 64 << 10;
/// Values of an answer. A map's weight follows its memory, so that a tree takes at most about 100 MB. A
/// CustomResourceDefinition of the default size limit (1.5 MiB) that consists of short properties fits.
const MOST_VALUES: usize = 3 << 19;

/// After so many bytes of an answer, other tasks run.
const UNINTERRUPTED: usize = 256 << 10;

/// Bytes of the pieces in which an answer is read.
const SMALLEST_PIECE: usize = 16 << 10;
const LARGEST_PIECE: usize = 1 << 20;

const MOST_VALUES_OF_STATUS: usize = 100_000;

/// Room for answers, shared by all clusters of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct AnswerRoom {
    taken: Arc<AtomicUsize>,
    /// The part of `taken` that belongs to this cluster.
    own: Arc<AtomicUsize>,
}

/// Room taken by one answer until it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    room: AnswerRoom,
    taken: usize,
}

impl AnswerRoom {
    pub(super) fn of_cluster(&self) -> Self {
        Self { taken: self.taken.clone(), own: Arc::default() }
    }

    pub(super) fn share(&self) -> Share {
        Share { room: self.clone(), taken: 0 }
    }

    /// Returns the bytes taken by all clusters.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Takes or returns room, so that it fits an answer of `bytes` bytes.
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
            let message = format!("no room for {bytes} bytes of an answer while other answers are read");
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

/// Reads a body to its end. Fails if it is larger than `largest`, has no room, or the connection breaks.
///
/// Pieces grow with the answer and are joined once at the end: a buffer that grows leaves five times its size behind,
/// which the allocator keeps for a while and no budget counts. Other tasks run in between: a few bytes of gzip are
/// megabytes that are all there at once.
pub(super) async fn read(
    mut body: impl Body<Data = Bytes, Error: Display> + Unpin,
    largest: usize,
    share: &mut Share,
) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::TooLarge(format!("more than {largest} bytes"));
    if body.size_hint().lower() > largest as u64 {
        return Err(too_large());
    }
    let (mut pieces, mut length, mut reserved) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut passed = 0; // how much was read when other tasks ran last
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::Transport {
            message: format!("cannot read the answer of the API server: {error}"),
            sent: true,
        })?;
        let Ok(mut data) = frame.into_data() else { continue };
        length += data.len();
        if length > largest {
            return Err(too_large());
        }
        if length - passed >= UNINTERRUPTED {
            passed = length;
            tokio::task::yield_now().await;
        }
        while !data.is_empty() {
            let free = pieces.last().map_or(0, |piece: &Vec<u8>| piece.capacity() - piece.len());
            if free == 0 {
                let capacity = reserved.clamp(SMALLEST_PIECE, LARGEST_PIECE);
                reserved += capacity;
                share.fit(reserved)?;
                pieces.push(Vec::with_capacity(capacity));
                continue;
            }
            let part = data.split_to(free.min(data.len()));
            pieces.last_mut().into_iter().for_each(|piece| piece.extend_from_slice(&part));
        }
    }
    if pieces.len() <= 2 {
        return Ok(pieces.pop().unwrap_or_default().into());
    }
    let mut whole = Vec::with_capacity(length);
    pieces.into_iter().for_each(|piece| whole.extend_from_slice(&piece));
    share.fit(length)?;
    Ok(whole.into())
}

/// Returns the `Status` in the body of an error answer, unless it has too many values.
pub(super) fn status_in(body: &[u8]) -> Option<Value> {
    let is_small = json::holds_at_most(MOST_VALUES_OF_STATUS, body);
    let read = is_small.then(|| serde_json::from_slice::<Value>(body).ok()).flatten();
    read.filter(|value| value["kind"] == "Status")
}

pub(super) fn check_values(bytes: &[u8]) -> Result<(), ApiError> {
    if json::holds_at_most(MOST_VALUES, bytes) {
        return Ok(());
    }
    Err(ApiError::TooLarge(format!("more than {MOST_VALUES} values, where a map counts {}", json::MAP)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answer_in_many_pieces_is_joined_and_takes_its_own_size() {
        let room = AnswerRoom::default();
        let content: Vec<u8> = (0..5_000_000_u32).map(|number| number as u8).collect();
        let frames = content.chunks(777).map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk)));
        let frames: Vec<_> = frames.map(|frame| frame.map(http_body::Frame::data)).collect();
        let body = http_body_util::StreamBody::new(futures::stream::iter(frames));
        let mut share = room.share();

        let read = read(body, LARGEST_ANSWER, &mut share).await.unwrap();

        assert!(read == content);
        assert_eq!(room.taken(), content.len() - FREE);
    }

    /// A gzip bomb is there at once. The probes answer meanwhile (spec 70 §6).
    #[tokio::test]
    async fn answer_of_many_bytes_lets_other_tasks_run() {
        let frame = || Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![b'x'; 64 << 10])));
        let body = http_body_util::StreamBody::new(futures::stream::iter((0..64).map(|_| frame())));
        let mut share = AnswerRoom::default().share();
        let mut others = 0;
        let mut reading = std::pin::pin!(read(body, LARGEST_ANSWER, &mut share));
        while futures::poll!(reading.as_mut()).is_pending() {
            others += 1;
        }
        assert_eq!(others, 16);
    }

    #[tokio::test]
    async fn answer_that_announces_too_many_bytes_is_not_read() {
        let mut share = AnswerRoom::default().share();

        let error =
            read(http_body_util::Full::new(Bytes::from_static(&[b' '; 100])), 99, &mut share).await.unwrap_err();

        assert!(matches!(&error, ApiError::TooLarge(text) if text == "more than 99 bytes"), "{error}");
    }

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

    /// spec 70 §8.3
    #[test]
    fn answer_with_one_stored_object_has_few_enough_values() {
        let limit = 3 << 19; // of an object, in bytes
        let schema = r#""name":{"type":"string"},"#;
        let managed_fields = r#""f:a":{},"#;

        for text in [schema, managed_fields] {
            assert!(check_values(text.repeat(limit / text.len()).as_bytes()).is_ok(), "{text}");
        }
        for text in ["{},", "0,", r#"{"a":0},"#, r#""","#] {
            assert!(check_values(text.repeat((8 << 20) / text.len()).as_bytes()).is_err(), "{text}");
        }
    }
}
