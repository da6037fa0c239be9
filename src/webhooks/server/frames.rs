//! What is said over an HTTP/2 connection, followed frame by frame (RFC 9113 §4.1), and the words with which it ends.
//!
//! The HTTP library keeps its connections to itself and says no GOAWAY, so it is put between the frames it writes, with a
//! PING behind it. Who answers the PING has read the GOAWAY: what it sent before has come, and nothing new follows. The
//! answer is taken out again, as the library did not ask. Pure: bytes in, decisions out; `farewell.rs` moves the bytes.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use bytes::{Buf as _, BytesMut};

/// Length of what a client says first (RFC 9113 §3.4).
const PREFACE: usize = 24;
const HEADER: usize = 9;
/// What a PING carries.
const PING_LENGTH: usize = 8;
/// GOAWAY without a text.
const GOAWAY_LENGTH: usize = 8;

/// Types of frames and their flags (RFC 9113 §6).
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const PUSH_PROMISE: u8 = 0x5;
const PING: u8 = 0x6;
const GOAWAY: u8 = 0x7;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// The largest stream: all that the client opened until it reads the GOAWAY are answered (RFC 9113 §6.8).
const ANY_STREAM: u32 = (1 << 31) - 1;
/// By which the answer to our PING is known; those of the library are others.
const QUESTION: [u8; PING_LENGTH] = *b"farewell";

/// Both directions of a connection, seen from the server.
#[derive(Debug)]
pub(super) struct Conversation {
    sent: Frames,
    received: Frames,
    /// Requests that are not answered yet.
    open: BTreeSet<u32>,
    /// The last that was opened.
    last: u32,
    stage: Stage,
    /// What we say at the end, of which this part is not written yet.
    words: BytesMut,
    /// The library said GOAWAY itself, because the client broke the rules: it closes the connection.
    closed_by_library: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Staying,
    /// The GOAWAY waits for the end of a frame.
    Leaving,
    /// It goes out.
    Said,
    /// The client has read it, or had the time to.
    Heard,
    /// The library has closed the connection.
    Over,
}

/// One direction: where in a frame we are.
#[derive(Debug)]
struct Frames {
    /// Bytes before the first frame.
    before: usize,
    /// The header of the frame, and what a PING carries.
    head: [u8; HEADER + PING_LENGTH],
    /// So much of it is known.
    known: usize,
    /// So much of it was handed on already.
    passed: usize,
    /// What is to come of the payload.
    payload: usize,
    /// A block of headers is not complete, and no other frame may come until it is.
    in_headers: bool,
    /// A frame is complete: the first is SETTINGS, and must be.
    begun: bool,
}

/// A frame that is complete.
#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    ping: [u8; PING_LENGTH],
}

// === impl Conversation ===

impl Conversation {
    /// Over a connection on which nothing was said yet.
    pub(super) fn new() -> Self {
        Self {
            sent: Frames::after(0),
            received: Frames::after(PREFACE),
            open: BTreeSet::new(),
            last: 0,
            stage: Stage::Staying,
            words: BytesMut::new(),
            closed_by_library: false,
        }
    }

    /// It is to end.
    pub(super) fn leave(&mut self) {
        if self.stage == Stage::Staying {
            self.stage = Stage::Leaving;
        }
    }

    /// What is to be written now, before anything else.
    pub(super) fn words(&mut self) -> &[u8] {
        if self.stage == Stage::Leaving && self.may_speak() {
            self.stage = Stage::Said;
            self.words.extend_from_slice(&goaway(ANY_STREAM));
            self.words.extend_from_slice(&ping(QUESTION));
        }
        &self.words
    }

    /// So much of it was written.
    pub(super) fn said(&mut self, bytes: usize) {
        self.words.advance(bytes);
    }

    /// How much of this the library may write until it is our turn.
    pub(super) fn turn(&self, bytes: &[u8]) -> usize {
        if self.wants_turn() { self.sent.rest(bytes) } else { bytes.len() }
    }

    /// Whether our turn comes with the end of a frame.
    pub(super) fn wants_turn(&self) -> bool {
        self.stage == Stage::Leaving && !self.closed_by_library
    }

    /// The library wrote this.
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        let Self { sent, open, closed_by_library, .. } = self;
        sent.take(bytes, None, |frame| {
            // More headers may follow: the library has them ready, and writes what it has ready before it closes.
            let ends = matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0;
            if ends || frame.kind == RST_STREAM {
                open.remove(&frame.stream);
            }
            *closed_by_library |= frame.kind == GOAWAY;
            true
        });
    }

    /// The client sent this, and the library has read it.
    pub(super) fn received(&mut self, bytes: &[u8]) {
        self.receive(bytes, None);
    }

    /// The client sent this; the library is to read what is appended to `kept`.
    pub(super) fn filter(&mut self, bytes: &[u8], kept: &mut BytesMut) {
        self.receive(bytes, Some(kept));
    }

    fn receive(&mut self, bytes: &[u8], kept: Option<&mut BytesMut>) {
        let Self { received, open, last, stage, .. } = self;
        received.take(bytes, kept, |frame| {
            if frame.kind == HEADERS && frame.stream > *last {
                *last = frame.stream;
                open.insert(frame.stream);
            }
            if frame.kind == RST_STREAM {
                open.remove(&frame.stream);
            }
            let ours = matches!(stage, Stage::Said | Stage::Heard) && frame.is_pong() && frame.ping == QUESTION;
            if ours {
                *stage = Stage::Heard;
            }
            !ours
        });
    }

    /// The client had the time to read the GOAWAY.
    pub(super) fn stop_waiting(&mut self) {
        if matches!(self.stage, Stage::Leaving | Stage::Said) {
            self.stage = Stage::Heard;
        }
    }

    /// Whether the GOAWAY was put out.
    pub(super) fn is_leaving(&self) -> bool {
        match self.stage {
            Stage::Staying | Stage::Leaving => false,
            Stage::Said | Stage::Heard | Stage::Over => true,
        }
    }

    /// Whether all requests are answered and none can come any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Heard | Stage::Over) && self.words.is_empty() && self.open.is_empty()
    }

    /// The library wrote its last. A request that came after the time for it can be sent again elsewhere, if its client learns
    /// that it was not read.
    pub(super) fn close(&mut self) {
        if matches!(self.stage, Stage::Said | Stage::Heard) && self.words.is_empty() && self.may_speak() {
            self.words.extend_from_slice(&goaway(self.last));
        }
        self.stage = Stage::Over;
    }

    fn may_speak(&self) -> bool {
        self.sent.begun && self.sent.is_between() && !self.closed_by_library
    }
}

// === impl Frames ===

impl Frames {
    fn after(before: usize) -> Self {
        Self {
            before,
            head: [0; HEADER + PING_LENGTH],
            known: 0,
            passed: 0,
            payload: 0,
            in_headers: false,
            begun: false,
        }
    }

    /// Whether another frame may come now.
    fn is_between(&self) -> bool {
        self.before == 0 && self.known == 0 && !self.in_headers
    }

    /// How many of these bytes belong to the frame that is under way, or begins with them.
    fn rest(&self, bytes: &[u8]) -> usize {
        let missing = HEADER.saturating_sub(self.known);
        if missing == 0 {
            return self.payload.min(bytes.len());
        }
        let mut head = self.head;
        let Some(more) = bytes.get(..missing) else { return bytes.len() };
        head[self.known..HEADER].copy_from_slice(more);
        (missing + length(&head)).min(bytes.len())
    }

    /// Follows these bytes. `frame` is called for each that is complete; an answer to a PING for which it returns false is left
    /// out of `kept`. Without `kept` all was handed on already.
    fn take(&mut self, mut bytes: &[u8], mut kept: Option<&mut BytesMut>, mut frame: impl FnMut(Frame) -> bool) {
        let mut keep = |bytes: &[u8]| {
            if let Some(kept) = &mut kept {
                kept.extend_from_slice(bytes);
            }
        };
        let before = split(&mut bytes, self.before);
        self.before -= before.len();
        keep(before);
        while !bytes.is_empty() {
            if self.known < HEADER {
                let more = split(&mut bytes, HEADER - self.known);
                self.learn(more);
                if self.known < HEADER {
                    break;
                }
                self.payload = length(&self.head);
                if !self.may_be_left_out() {
                    keep(&self.head[self.passed..HEADER]);
                }
            }
            let payload = split(&mut bytes, self.payload);
            self.payload -= payload.len();
            if self.may_be_left_out() {
                self.learn(payload);
            } else {
                keep(payload);
            }
            if self.payload == 0 {
                let is_kept = frame(self.frame()) || self.passed > 0;
                if is_kept && self.may_be_left_out() {
                    keep(&self.head[self.passed..self.known]);
                }
                self.complete();
            }
        }
        if kept.is_none() {
            self.passed = self.known;
        }
    }

    fn learn(&mut self, bytes: &[u8]) {
        self.head[self.known..self.known + bytes.len()].copy_from_slice(bytes);
        self.known += bytes.len();
    }

    /// An answer to a PING is held back until it is known to which.
    fn may_be_left_out(&self) -> bool {
        self.frame().is_pong() && length(&self.head) == PING_LENGTH
    }

    fn complete(&mut self) {
        let Frame { kind, flags, .. } = self.frame();
        if matches!(kind, HEADERS | PUSH_PROMISE | CONTINUATION) {
            self.in_headers = flags & END_HEADERS == 0;
        }
        *self = Self { in_headers: self.in_headers, begun: true, ..Self::after(0) };
    }

    fn frame(&self) -> Frame {
        let [_, _, _, kind, flags, a, b, c, d, ping @ ..] = self.head;
        Frame { kind, flags, stream: u32::from_be_bytes([a, b, c, d]) & ANY_STREAM, ping }
    }
}

// === impl Frame ===

impl Frame {
    fn is_pong(&self) -> bool {
        self.kind == PING && self.flags & ACK != 0
    }
}

// === pieces ===

fn length(head: &[u8; HEADER + PING_LENGTH]) -> usize {
    usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2])
}

/// Takes up to so many bytes from the front.
fn split<'a>(bytes: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(most.min(bytes.len()));
    *bytes = rest;
    first
}

/// Without an error.
fn goaway(last: u32) -> [u8; HEADER + GOAWAY_LENGTH] {
    let [a, b, c, d] = last.to_be_bytes();
    [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, a, b, c, d, 0, 0, 0, 0]
}

fn ping([a, b, c, d, e, f, g, h]: [u8; PING_LENGTH]) -> [u8; HEADER + PING_LENGTH] {
    [0, 0, 8, PING, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h]
}
