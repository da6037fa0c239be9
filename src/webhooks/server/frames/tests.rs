use proptest::{collection::vec, prelude::*};

use super::*;

const SETTINGS: u8 = 0x4;

/// A frame as bytes.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn settings() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

fn request(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, b"a request")
}

fn answer(stream: u32) -> Vec<u8> {
    [frame(HEADERS, END_HEADERS, stream, b"200"), frame(DATA, END_STREAM, stream, b"an answer")].concat()
}

fn pong() -> Vec<u8> {
    frame(PING, ACK, 0, &QUESTION)
}

fn farewell() -> Vec<u8> {
    [goaway(ANY_STREAM), ping(QUESTION)].concat()
}

/// A conversation in which the server sent its settings, and the client began.
fn begun() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.sent(&settings());
    conversation.received(&[b' '; PREFACE]);
    conversation
}

/// One that is leaving, and whose words are out.
fn left() -> Conversation {
    let mut conversation = begun();
    conversation.leave();
    let words = conversation.words().len();
    conversation.said(words);
    conversation
}

/// Writes all this as the library does, over something that takes so many bytes at a time, over and over; from byte `leave`
/// on the end has come. Returns what went out.
fn write(conversation: &mut Conversation, bytes: &[u8], takes: &[usize], leave: usize) -> Vec<u8> {
    let mut takes = takes.iter().copied().cycle();
    let mut take = move || takes.next().unwrap_or(usize::MAX);
    let (mut out, mut written) = (Vec::new(), 0);
    loop {
        if written >= leave {
            conversation.leave();
        }
        while !conversation.words().is_empty() {
            let words = conversation.words();
            let taken = take().min(words.len());
            out.extend(&words[..taken]);
            conversation.said(taken);
        }
        let rest = &bytes[written..];
        if rest.is_empty() {
            return out;
        }
        let taken = take().min(conversation.turn(rest)).min(if written < leave { leave - written } else { usize::MAX });
        out.extend(&rest[..taken]);
        conversation.sent(&rest[..taken]);
        written += taken;
    }
}

/// The frames of these bytes, which end with one.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let length = HEADER + usize::from(bytes[0]) * 65_536 + usize::from(bytes[1]) * 256 + usize::from(bytes[2]);
        frames.push(bytes[..length].to_vec());
        bytes = &bytes[length..];
    }
    frames
}

// === what is written ===

#[test]
fn the_farewell_comes_at_the_next_place_where_a_frame_may_come() {
    let continued = [
        frame(HEADERS, END_STREAM, 1, b"some"),
        frame(CONTINUATION, 0, 1, b"headers"),
        frame(CONTINUATION, END_HEADERS, 1, b"more"),
    ];
    let cases = [
        ("nothing was written yet: after the settings", 0, vec![settings(), answer(1)], 1),
        ("between frames", 9, vec![settings(), answer(1)], 1),
        ("within a header", 12, vec![settings(), frame(HEADERS, END_HEADERS, 1, b"200"), frame(DATA, 1, 1, b"a")], 2),
        ("within a payload", 19, vec![settings(), frame(HEADERS, END_HEADERS, 1, b"200"), frame(DATA, 1, 1, b"a")], 2),
        ("not between headers and their continuation", 10, [vec![settings()], continued.to_vec()].concat(), 4),
    ];

    for (case, leave, parts, place) in cases {
        let mut expected = parts.clone();
        expected.insert(place, farewell());

        let out = write(&mut Conversation::new(), &parts.concat(), &[], leave);

        assert_eq!(out, expected.concat(), "{case}");
    }
}

#[test]
fn nothing_is_said_after_the_library_said_goaway_itself() {
    let mut conversation = begun();
    conversation.sent(&frame(GOAWAY, 0, 0, &[0; 8]));

    conversation.leave();

    assert!(conversation.words().is_empty());
    assert!(!conversation.wants_turn());
    conversation.close();
    assert!(conversation.words().is_empty());
}

#[test]
fn the_last_word_names_the_last_request() {
    let mut conversation = left();
    conversation.received(&[request(1), request(5)].concat());

    conversation.close();

    assert_eq!(conversation.words(), goaway(5));
}

#[test]
fn a_connection_that_is_not_told_to_end_closes_without_words() {
    let mut conversation = begun();

    conversation.close();
    conversation.leave();

    assert!(conversation.words().is_empty());
}

// === when it is over ===

#[test]
fn it_is_over_when_the_client_has_heard_and_has_its_answers() {
    let mut kept = BytesMut::new();
    let mut conversation = left();
    conversation.filter(&request(1), &mut kept);
    assert!(!conversation.is_over());
    conversation.sent(&answer(1));
    assert!(!conversation.is_over(), "it may not have heard");
    conversation.filter(&request(3), &mut kept);
    conversation.filter(&pong(), &mut kept);
    assert!(!conversation.is_over(), "what was sent before it heard is answered");

    conversation.sent(&answer(3));

    assert!(conversation.is_over());
    assert_eq!(kept, [request(1), request(3)].concat());
}

#[test]
fn a_request_that_one_side_gave_up_is_not_waited_for() {
    let reset = frame(RST_STREAM, 0, 1, &[0; 4]);
    let mut by_client = left();
    by_client.received(&[request(1), reset.clone(), pong()].concat());
    let mut by_us = left();
    by_us.received(&[request(1), pong()].concat());
    assert!(!by_us.is_over());

    by_us.sent(&reset);

    assert!(by_client.is_over() && by_us.is_over());
}

#[test]
fn trailers_are_no_new_request() {
    let mut conversation = left();
    conversation.received(&frame(HEADERS, END_HEADERS, 1, b"a request"));
    conversation.sent(&answer(1));

    conversation.received(&[frame(HEADERS, END_HEADERS | END_STREAM, 1, b"trailers"), pong()].concat());

    assert!(conversation.is_over());
}

#[test]
fn a_client_that_does_not_answer_has_its_time() {
    let mut conversation = left();
    conversation.received(&request(1));

    conversation.stop_waiting();
    assert!(!conversation.is_over());
    conversation.sent(&answer(1));

    assert!(conversation.is_over());
}

#[test]
fn only_the_answer_to_our_ping_counts() {
    let mut conversation = left();
    let others = [frame(PING, ACK, 0, b"anothers"), frame(PING, 0, 0, &QUESTION)].concat();
    let mut kept = BytesMut::new();

    conversation.filter(&others, &mut kept);

    assert!(!conversation.is_over());
    assert_eq!(kept, others);
}

// === properties ===

/// A frame of a server or a client that stands for itself, or headers in parts.
fn any_frames() -> impl Strategy<Value = Vec<u8>> {
    let payload = || vec(any::<u8>(), 0..40);
    prop_oneof![
        (1_u32..9, any::<bool>(), payload()).prop_map(|(stream, end, payload)| frame(
            DATA,
            u8::from(end),
            stream,
            &payload
        )),
        (1_u32..9, 0_u8..2, payload()).prop_map(|(stream, end, payload)| frame(
            HEADERS,
            END_HEADERS | end,
            stream,
            &payload
        )),
        (1_u32..9, vec(payload(), 1..4)).prop_map(|(stream, parts)| {
            let mut bytes = frame(HEADERS, 0, stream, b"first");
            let last = parts.len() - 1;
            for (i, part) in parts.iter().enumerate() {
                bytes.extend(frame(CONTINUATION, if i == last { END_HEADERS } else { 0 }, stream, part));
            }
            bytes
        }),
        (0_u8..2, any::<[u8; 8]>()).prop_map(|(ack, payload)| frame(PING, ack, 0, &payload)),
        payload().prop_map(|payload| frame(0x42, 0xff, 0, &payload)),
        Just(frame(RST_STREAM, 0, 3, &[0; 4])),
        Just(settings()),
    ]
}

proptest! {
    #[test]
    fn however_it_is_written_the_frames_are_the_same_with_one_farewell_between(
        parts in vec(any_frames(), 0..12),
        takes in vec(1_usize..50, 1..20),
        leave in 0_usize..300,
    ) {
        let parts = [vec![settings()], parts].concat();
        let bytes = parts.concat();
        let leave = leave.min(bytes.len());

        let out = write(&mut Conversation::new(), &bytes, &takes, leave);

        let written = frames(&out);
        let place = written.windows(2).position(|pair| pair.concat() == farewell()).unwrap();
        let rest = [&written[..place], &written[place + 2..]].concat();
        prop_assert_eq!(&rest, &frames(&bytes), "the frames are the same");
        // The first place where a frame may come, from the moment on that the end has come.
        let mut ends = parts.iter().scan(0, |end, part| { *end += part.len(); Some(*end) });
        let expected = ends.find(|end| *end >= leave).unwrap();
        prop_assert_eq!(written[..place].concat().len(), expected);
    }

    #[test]
    fn however_it_arrives_the_library_reads_all_but_the_answer_to_our_ping(
        before in vec(any_frames(), 0..8),
        after in vec(any_frames(), 0..8),
        pieces in vec(1_usize..50, 1..20),
        leave in 0_usize..400,
    ) {
        let preface = vec![b' '; PREFACE];
        let before = [vec![preface], before].concat().concat();
        let bytes = [before.clone(), pong(), after.concat()].concat();
        let mut pieces = pieces.iter().copied().cycle();
        let (mut conversation, mut kept, mut read) = (Conversation::new(), BytesMut::new(), 0);
        conversation.sent(&settings());

        while read < bytes.len() {
            // The client answers what was said to it.
            if read >= leave.min(before.len()) && !conversation.is_leaving() {
                conversation.leave();
                let words = conversation.words().len();
                conversation.said(words);
            }
            let rest = &bytes[read..];
            let most = if conversation.is_leaving() { rest.len() } else { leave.min(before.len()) - read };
            let piece = &rest[..pieces.next().unwrap_or(1).min(most).min(rest.len())];
            if conversation.is_leaving() {
                conversation.filter(piece, &mut kept);
            } else {
                conversation.received(piece);
                kept.extend_from_slice(piece);
            }
            read += piece.len();
        }

        prop_assert_eq!(&kept[..], &[before, after.concat()].concat()[..]);
        prop_assert_eq!(conversation.stage, Stage::Heard);
    }
}
