//! Live lists that several decisions share. A list is evidence for each decision that was ready before the list began.

use std::{cell::RefCell, collections::BTreeMap, future::Future, rc::Rc, time::Duration};

use cluster::ApiError;
use futures::{
    FutureExt as _,
    future::{LocalBoxFuture, Shared},
};

/// A list waits this long for more decisions: a burst of deletions costs one list.
const GATHERING: Duration = Duration::from_millis(50);

/// Time limit of a list.
pub(in crate::actors) const LIST_TIME: Duration = Duration::from_secs(120);

/// Lists that have not begun, by what they list.
pub(in crate::actors) struct LiveLists<K, T> {
    gathering: Rc<RefCell<BTreeMap<K, SharedList<T>>>>,
}

type SharedList<T> = Shared<LocalBoxFuture<'static, Result<Rc<T>, ApiError>>>;

impl<K, T> Default for LiveLists<K, T> {
    fn default() -> Self {
        Self { gathering: Rc::default() }
    }
}

impl<K: Ord + Clone + 'static, T: 'static> LiveLists<K, T> {
    /// Returns the result of a list that begins after this call. Calls that wait for the same list share its result,
    /// and its error. A caller may be dropped: the others continue.
    pub(in crate::actors) fn get<F>(&self, key: &K, list: impl FnOnce() -> F + 'static) -> SharedList<T>
    where
        F: Future<Output = Result<T, ApiError>> + 'static,
    {
        if let Some(shared) = self.gathering.borrow().get(key) {
            return shared.clone();
        }
        let (gathering, own) = (self.gathering.clone(), key.clone());
        let shared = async move {
            tokio::time::sleep(GATHERING).await;
            gathering.borrow_mut().remove(&own); // later decisions need a later list
            list().await.map(Rc::new)
        };
        let shared = shared.boxed_local().shared();
        self.gathering.borrow_mut().insert(key.clone(), shared.clone());
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

    #[tokio::test(start_paused = true)]
    async fn live_list_serves_no_decision_made_after_it_began() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));
        let later = async {
            tokio::time::sleep(GATHERING * 2).await;
            lists.get(&'a', counting(&counted)).await
        };

        let (first, later) = tokio::join!(lists.get(&'a', counting(&counted)), later);

        assert_eq!((first, later), (Ok(Rc::new(1)), Ok(Rc::new(2))));
    }

    #[tokio::test(start_paused = true)]
    async fn live_list_goes_on_when_the_decision_that_asked_first_is_dropped() {
        let (lists, counted) = (LiveLists::default(), Rc::new(Cell::new(0)));
        let first = lists.get(&'a', counting(&counted));
        let second = lists.get(&'a', counting(&counted));
        tokio::time::timeout(GATHERING / 2, first).await.unwrap_err();

        assert_eq!(second.await, Ok(Rc::new(1)));
        assert!(lists.gathering.borrow().is_empty());
    }
}
