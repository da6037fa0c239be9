use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};

use super::{schedule::WRITES_AT_ONCE, *};
use crate::NoObserver;

fn gate(qps: f32, burst: u32) -> Gate {
    Gate::new(qps, burst, Side::Target, Rc::new(NoObserver))
}

fn config_maps() -> Resource {
    Resource::new("", "v1", "ConfigMap", "configmaps", true)
}

fn write(gate: &Gate, lane: Lane, key: &str) -> Pin<Box<dyn Future<Output = Permit>>> {
    let (gate, key) = (gate.clone(), Rc::from(key));
    Box::pin(async move { gate.pass(lane, &key, &config_maps(), true).await })
}

fn read(gate: &Gate, key: &str) -> Pin<Box<dyn Future<Output = Permit>>> {
    let (gate, key) = (gate.clone(), Rc::from(key));
    Box::pin(async move { gate.pass(Lane::Live, &key, &config_maps(), false).await })
}

/// Fills the gate with writes, queues those of `askers` in order, then lets one after the other go.
async fn order_of(askers: &[(Lane, &'static str)]) -> Vec<&'static str> {
    let gate = gate(-1.0, 0);
    let mut held: Vec<_> =
        (0..WRITES_AT_ONCE).map(|_| write(&gate, Lane::Live, "filler").now_or_never().unwrap()).collect();
    let mut waiting: Vec<_> = askers.iter().map(|(lane, key)| (*key, write(&gate, *lane, key))).collect();
    for (_, future) in &mut waiting {
        assert!(futures::poll!(future.as_mut()).is_pending());
    }
    let mut order = Vec::new();
    while !waiting.is_empty() {
        held.pop();
        let mut index = 0;
        while index < waiting.len() {
            if let Poll::Ready(permit) = futures::poll!(waiting[index].1.as_mut()) {
                held.push(permit);
                order.push(waiting.remove(index).0);
            } else {
                index += 1;
            }
        }
    }
    assert_eq!(gate.waiting(), 0);
    order
}

#[tokio::test(start_paused = true)]
async fn askers_of_a_lane_take_turns() {
    let live = |key| (Lane::Live, key);

    let order = order_of(&[live("big"), live("big"), live("big"), live("small"), live("tiny")]).await;

    assert_eq!(order, ["big", "small", "tiny", "big", "big"]);
}

#[tokio::test(start_paused = true)]
async fn the_live_lane_goes_first_and_each_eighth_grant_to_the_background() {
    let background = [(Lane::Background, "background"); 2];
    let live = [(Lane::Live, "live"); 10];

    let order = order_of(&[&background[..], &live[..]].concat()).await;

    // 16 fillers went before, so the 24th grant, the eighth here, is the background's
    let position = order.iter().position(|key| *key == "background");
    assert_eq!(position, Some(7));
    assert_eq!(order.last(), Some(&"background"));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_limits_each_resource_type_by_itself() {
    let gate = gate(10.0, 5);
    let begin = Instant::now();
    let mut reads: FuturesUnordered<_> = (0..25).map(|_| read(&gate, "a")).collect();

    let mut at = Vec::new();
    while reads.next().await.is_some() {
        at.push(begin.elapsed());
    }

    assert!(at[4] < Duration::from_millis(1));
    assert!(at[5] >= Duration::from_millis(99), "{at:?}");
    assert!((Duration::from_millis(1990)..Duration::from_millis(2050)).contains(&at[24]), "{at:?}");

    let secrets = Resource::new("", "v1", "Secret", "secrets", true);
    assert!(gate.pass(Lane::Live, &Rc::from("a"), &secrets, false).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn reads_pass_while_all_write_slots_are_taken() {
    let gate = gate(-1.0, 0);
    let _held: Vec<_> = (0..WRITES_AT_ONCE).map(|_| write(&gate, Lane::Live, "a").now_or_never().unwrap()).collect();

    assert!(write(&gate, Lane::Live, "a").now_or_never().is_none());
    assert!(read(&gate, "a").now_or_never().is_some());
    assert_eq!((gate.waiting(), gate.writes_in_flight()), (0, WRITES_AT_ONCE));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_no_permit() {
    let gate = gate(-1.0, 0);
    let mut held: Vec<_> = (0..WRITES_AT_ONCE).map(|_| write(&gate, Lane::Live, "a").now_or_never().unwrap()).collect();
    let (mut granted, mut queued, mut last) =
        (write(&gate, Lane::Live, "b"), write(&gate, Lane::Live, "c"), write(&gate, Lane::Live, "d"));
    for future in [&mut granted, &mut queued, &mut last] {
        assert!(futures::poll!(future.as_mut()).is_pending());
    }
    held.pop(); // granted to b, who does not look any more

    drop(queued);
    drop(granted);

    assert!(futures::poll!(last.as_mut()).is_ready());
    held.clear();
    drop(last);
    assert_eq!((gate.waiting(), gate.writes_in_flight()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn somebody_else_watches_the_time_when_the_timekeeper_leaves() {
    let gate = gate(1.0, 1);
    drop(read(&gate, "a").await);
    let (mut first, second) = (read(&gate, "b"), read(&gate, "c"));
    assert!(futures::poll!(first.as_mut()).is_pending());
    let begin = Instant::now();
    let leave = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(first);
    };

    let (_, permit) = tokio::join!(leave, second);

    drop(permit);
    assert!((Duration::from_millis(999)..Duration::from_millis(1010)).contains(&begin.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_for_a_slot_waits_for_its_token_if_others_took_the_last_ones() {
    let gate = gate(10.0, 19);
    let mut held: Vec<_> = (0..WRITES_AT_ONCE).map(|_| write(&gate, Lane::Live, "a").now_or_never().unwrap()).collect();
    let mut waiting: FuturesUnordered<_> = std::iter::once(write(&gate, Lane::Live, "b")).collect();
    assert!(futures::poll!(waiting.next()).is_pending());
    for _ in 0..3 {
        assert!(read(&gate, "c").now_or_never().is_some());
    }

    held.clear();

    assert!(tokio::time::timeout(Duration::from_secs(1), waiting.next()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_thousand_waiters_share_one_timer_and_all_go() {
    let gate = gate(1000.0, 1);
    let mut all: FuturesUnordered<_> = (0..1000).map(|index| write(&gate, Lane::Live, ["a", "b"][index % 2])).collect();

    let mut count = 0;
    while let Some(permit) = all.next().await {
        drop(permit);
        count += 1;
    }

    assert_eq!((count, gate.waiting(), gate.writes_in_flight()), (1000, 0, 0));
}
