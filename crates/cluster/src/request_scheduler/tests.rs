use std::{pin::Pin, task::Poll, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};

use super::{schedule::WRITES_AT_ONCE, *};
use crate::NoObserver;

fn request_scheduler(qps: f32, burst: u32) -> RequestScheduler {
    RequestScheduler::new(qps, burst, ClusterLabel::new("target"), Rc::new(NoObserver))
}

fn config_maps() -> Resource {
    Resource::new("", "v1", "ConfigMap", "configmaps", true)
}

fn write(request_scheduler: &RequestScheduler, priority: Priority, key: &str) -> Pin<Box<dyn Future<Output = Permit>>> {
    let (request_scheduler, key) = (request_scheduler.clone(), Rc::from(key));
    Box::pin(async move { request_scheduler.acquire(priority, &key, &config_maps(), true).await })
}

fn read(request_scheduler: &RequestScheduler, key: &str) -> Pin<Box<dyn Future<Output = Permit>>> {
    let (request_scheduler, key) = (request_scheduler.clone(), Rc::from(key));
    Box::pin(async move { request_scheduler.acquire(Priority::High, &key, &config_maps(), false).await })
}

/// Fills the scheduler, queues one write per asker, then ends the writes one by one. Returns the order of the askers.
async fn order_of(askers: &[(Priority, &'static str)]) -> Vec<&'static str> {
    let request_scheduler = request_scheduler(-1.0, 0);
    let mut held: Vec<_> = (0..WRITES_AT_ONCE)
        .map(|_| write(&request_scheduler, Priority::High, "filler").now_or_never().unwrap())
        .collect();
    let mut waiting: Vec<_> =
        askers.iter().map(|(priority, key)| (*key, write(&request_scheduler, *priority, key))).collect();
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
    assert_eq!(request_scheduler.waiting(), 0);
    order
}

#[tokio::test(start_paused = true)]
async fn askers_of_a_priority_take_turns() {
    let high = |key| (Priority::High, key);

    let order = order_of(&[high("big"), high("big"), high("big"), high("small"), high("tiny")]).await;

    assert_eq!(order, ["big", "small", "tiny", "big", "big"]);
}

#[tokio::test(start_paused = true)]
async fn high_priority_goes_first_and_each_eighth_grant_to_low_priority() {
    let low = [(Priority::Low, "background"); 2];
    let high = [(Priority::High, "live"); 10];

    let order = order_of(&[&low[..], &high[..]].concat()).await;

    // 16 fillers went before, so the 24th grant, the eighth here, has low priority
    let position = order.iter().position(|key| *key == "background");
    assert_eq!(position, Some(7));
    assert_eq!(order.last(), Some(&"background"));
}

#[tokio::test(start_paused = true)]
async fn rate_limit_applies_to_each_resource_type_by_itself() {
    let request_scheduler = request_scheduler(10.0, 5);
    let begin = Instant::now();
    let mut reads: FuturesUnordered<_> = (0..25).map(|_| read(&request_scheduler, "a")).collect();

    let mut at = Vec::new();
    while reads.next().await.is_some() {
        at.push(begin.elapsed());
    }

    assert!(at[4] < Duration::from_millis(1));
    assert!(at[5] >= Duration::from_millis(99), "{at:?}");
    assert!((Duration::from_millis(1990)..Duration::from_millis(2050)).contains(&at[24]), "{at:?}");

    let secrets = Resource::new("", "v1", "Secret", "secrets", true);
    assert!(request_scheduler.acquire(Priority::High, &Rc::from("a"), &secrets, false).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn reads_are_granted_while_all_write_slots_are_taken() {
    let request_scheduler = request_scheduler(-1.0, 0);
    let _held: Vec<_> =
        (0..WRITES_AT_ONCE).map(|_| write(&request_scheduler, Priority::High, "a").now_or_never().unwrap()).collect();

    assert!(write(&request_scheduler, Priority::High, "a").now_or_never().is_none());
    assert!(read(&request_scheduler, "a").now_or_never().is_some());
    assert_eq!((request_scheduler.waiting(), request_scheduler.writes_in_flight()), (0, WRITES_AT_ONCE));
}

#[tokio::test(start_paused = true)]
async fn permit_is_not_lost_by_a_dropped_wait() {
    let request_scheduler = request_scheduler(-1.0, 0);
    let mut held: Vec<_> =
        (0..WRITES_AT_ONCE).map(|_| write(&request_scheduler, Priority::High, "a").now_or_never().unwrap()).collect();
    let (mut granted, mut queued, mut last) = (
        write(&request_scheduler, Priority::High, "b"),
        write(&request_scheduler, Priority::High, "c"),
        write(&request_scheduler, Priority::High, "d"),
    );
    for future in [&mut granted, &mut queued, &mut last] {
        assert!(futures::poll!(future.as_mut()).is_pending());
    }
    held.pop(); // granted to b, which was dropped

    drop(queued);
    drop(granted);

    assert!(futures::poll!(last.as_mut()).is_ready());
    held.clear();
    drop(last);
    assert_eq!((request_scheduler.waiting(), request_scheduler.writes_in_flight()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn timekeeper_that_leaves_is_replaced() {
    let request_scheduler = request_scheduler(1.0, 1);
    drop(read(&request_scheduler, "a").await);
    let (mut first, second) = (read(&request_scheduler, "b"), read(&request_scheduler, "c"));
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
async fn write_that_waited_for_a_slot_also_waits_for_its_token() {
    let request_scheduler = request_scheduler(10.0, 19);
    let mut held: Vec<_> =
        (0..WRITES_AT_ONCE).map(|_| write(&request_scheduler, Priority::High, "a").now_or_never().unwrap()).collect();
    let mut waiting: FuturesUnordered<_> = std::iter::once(write(&request_scheduler, Priority::High, "b")).collect();
    assert!(futures::poll!(waiting.next()).is_pending());
    for _ in 0..3 {
        assert!(read(&request_scheduler, "c").now_or_never().is_some());
    }

    held.clear();

    assert!(tokio::time::timeout(Duration::from_secs(1), waiting.next()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn waiters_share_one_timer_and_all_are_granted() {
    let request_scheduler = request_scheduler(1000.0, 1);
    let mut all: FuturesUnordered<_> =
        (0..1000).map(|index| write(&request_scheduler, Priority::High, ["a", "b"][index % 2])).collect();

    let mut count = 0;
    while let Some(permit) = all.next().await {
        drop(permit);
        count += 1;
    }

    assert_eq!((count, request_scheduler.waiting(), request_scheduler.writes_in_flight()), (1000, 0, 0));
}
