//! Live lists that several decisions share. A list is evidence for each decision that was ready before the list began.

use std::{cell::RefCell, collections::BTreeMap, future::Future, rc::Rc, time::Duration};

use cluster::ApiError;
use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, Shared},
};
use tokio::{sync::Mutex, time::Instant};

/// Time limit of a list.
pub(in crate::actors) const LIST_TIME: Duration = Duration::from_secs(120);

/// A list waits this long for more decisions, if there was one of its key a moment ago: a burst costs few lists.
const GATHERING: Duration = Duration::from_millis(50);

/// For so long after a list, the next one of its key waits.
const MOMENT: Duration = Duration::from_secs(1);

/// A list that hangs delays the next one of its key for so long.
const PATIENCE: Duration = Duration::from_secs(5);

/// From so many keys on, those without a recent list are forgotten.
const FEW_KEYS: usize = 64;

/// Lists by what they list. One of a key runs at a time, unless it hangs. A list begins at once if none of its key has
/// begun a moment ago: a single decision waits for nothing.
pub(in crate::actors) struct LiveLists<K, T> {
    slots: Rc<RefCell<Slots<K, T>>>,
}

struct Slots<K, T> {
    by_key: BTreeMap<K, Slot<T>>,
    /// With so many keys, those without a recent list are forgotten.
    full: usize,
}

/// The lists of a key.
struct Slot<T> {
    /// The list that has not begun.
    next: Option<SharedList<T>>,
    /// When the last one began. Locked while it runs.
    last: Rc<Mutex<Option<Instant>>>,
}

type SharedList<T> = Shared<LocalBoxFuture<'static, Result<Rc<T>, ApiError>>>;

impl<K, T> Default for LiveLists<K, T> {
    fn default() -> Self {
        Self { slots: Rc::new(RefCell::new(Slots { by_key: BTreeMap::new(), full: FEW_KEYS })) }
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { next: None, last: Rc::default() }
    }
}

impl<T> Slot<T> {
    fn is_in_use(&self) -> bool {
        self.next.is_some() || self.last.try_lock().map_or(true, |last| is_recent(*last))
    }
}

fn is_recent(last: Option<Instant>) -> bool {
    last.is_some_and(|last| last.elapsed() < MOMENT)
}

impl<K: Ord + Clone, T> Slots<K, T> {
    fn slot(&mut self, key: &K) -> &mut Slot<T> {
        if self.by_key.len() >= self.full {
            self.by_key.retain(|_, slot| slot.is_in_use());
            self.full = FEW_KEYS.max(self.by_key.len() * 2);
        }
        self.by_key.entry(key.clone()).or_default()
    }
}

impl<K: Ord + Clone + 'static, T: 'static> LiveLists<K, T> {
    /// Returns the result of a list that begins after this call. Calls that wait for the same list share its result,
    /// and its error. A caller may be dropped: the others continue.
    pub(in crate::actors) fn get<F>(&self, key: &K, list: impl FnOnce() -> F + 'static) -> SharedList<T>
    where
        F: Future<Output = Result<T, ApiError>> + 'static,
    {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.slot(key);
        if let Some(next) = &slot.next {
            return next.clone();
        }
        let (last, slots_of_list, own) = (slot.last.clone(), self.slots.clone(), key.clone());
        let shared = async move {
            let mut turn = tokio::time::timeout(PATIENCE, last.lock()).await.ok(); // held until the list ends
            if turn.as_deref().is_some_and(|last| is_recent(*last)) {
                tokio::time::sleep(GATHERING).await;
            }
            if let Some(last) = turn.as_deref_mut() {
                *last = Some(Instant::now());
            }
            if let Some(slot) = slots_of_list.borrow_mut().by_key.get_mut(&own) {
                slot.next = None; // later decisions need a later list
            }
            let listed = list().await.map(Rc::new);
            drop(turn);
            listed
        };
        let shared = shared.boxed_local().shared();
        slot.next = Some(shared.clone());
        shared
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn counting(lists: &Rc<Cell<u32>>) -> impl FnOnce() -> LocalBoxFuture<'static, Result<u32, ApiError>> + use<> {
        let lists = lists.clone();
        move || {
            lists.set(lists.get() + 1);
            let number = lists.get();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(number)
            }
            .boxed_local()
        }
    }

    /// spec 81 §3.2 G-12
    #[tokio::test(start_paused = true)]
    async fn live_list_serves_all_decisions_made_before_it_began() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));

        let (first, second) = (lists.get(&'a', counting(&counted)), lists.get(&'a', counting(&counted)));
        let (first, second) = tokio::join!(first, second);

        assert_eq!((first, second), (Ok(Rc::new(1)), Ok(Rc::new(1))));
    }

    /// One after the other, and the third decision shares the list of the second.
    #[tokio::test(start_paused = true)]
    async fn live_list_serves_no_decision_made_after_it_began() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));
        let begun = Instant::now();
        let later = |millis| {
            let (lists, counted) = (&lists, &counted);
            async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                lists.get(&'a', counting(counted)).await
            }
        };

        let (first, second, third) = tokio::join!(lists.get(&'a', counting(&counted)), later(10), later(20));

        assert_eq!((first, second, third), (Ok(Rc::new(1)), Ok(Rc::new(2)), Ok(Rc::new(2))));
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn live_list_waits_for_more_decisions_if_there_was_one_a_moment_ago() {
        let (lists, begun) = (LiveLists::default(), Instant::now());
        let list = || lists.get(&'a', || async { Ok::<_, ApiError>(Instant::now()) });

        let (first, second) = (list().await.unwrap(), list().await.unwrap());
        tokio::time::sleep(MOMENT).await;
        let third = list().await.unwrap();

        let times = [first, second, third].map(|time| *time - begun);
        assert_eq!(times, [Duration::ZERO, GATHERING, GATHERING + MOMENT]);
    }

    #[tokio::test(start_paused = true)]
    async fn live_list_that_hangs_delays_the_next_one_for_five_seconds() {
        let (lists, begun) = (LiveLists::<char, Instant>::default(), Instant::now());
        let hangs = lists.get(&'a', || async { Ok::<_, ApiError>(futures::future::pending().await) });
        let later = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            lists.get(&'a', || async { Ok::<_, ApiError>(Instant::now()) }).await.unwrap()
        };

        let later = tokio::select! {
            _ = hangs => panic!("it hangs"),
            later = later => later,
        };

        assert_eq!(*later - begun, Duration::from_millis(10) + PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn live_lists_forget_keys_without_a_recent_list() {
        let lists = LiveLists::default();
        for key in 0..FEW_KEYS * 4 {
            lists.get(&key, || async { Ok::<_, ApiError>(()) }).await.unwrap();
            tokio::time::sleep(MOMENT).await;
        }

        assert!(lists.slots.borrow().by_key.len() <= FEW_KEYS);
    }

    #[tokio::test(start_paused = true)]
    async fn live_list_goes_on_when_the_decision_that_asked_first_is_dropped() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));
        let first = lists.get(&'a', counting(&counted));
        let second = lists.get(&'a', counting(&counted));
        tokio::time::timeout(Duration::from_millis(500), first).await.unwrap_err();

        assert_eq!(second.await, Ok(Rc::new(1)));
    }

    #[tokio::test(start_paused = true)]
    async fn live_list_begins_when_the_one_before_is_dropped() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));
        let first = lists.get(&'a', counting(&counted));
        tokio::time::timeout(Duration::from_millis(500), first).await.unwrap_err();

        assert_eq!(lists.get(&'a', counting(&counted)).await, Ok(Rc::new(2)));
    }
}
