//! Where a kind is watched that may not be watched everywhere: in some namespaces, and the way back.
//!
//! Who was denied all namespaces may have been so for a moment only (an API server that has not yet read its roles, a role
//! that is replaced). All are tried now and then, beside the watches there are, which stay until there is a list of all.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use futures::{FutureExt, StreamExt};

use super::{
    informer::Informer,
    scope::{Again, Narrowed, Scope},
};

/// In so many namespaces a kind is watched at most that may not be watched everywhere.
pub const MOST_NAMESPACES: usize = 64;

/// All namespaces are tried first after this time, stretched likewise: most who were denied for a moment only may watch by then.
/// It shows that a denial lasts.
const FIRST_TRY: Duration = Duration::from_secs(31);

/// All namespaces are tried this often, stretched by up to a tenth: one request each time as long as they are denied.
const TRY_EVERY: Duration = Duration::from_secs(600);

/// A watch that was not denied for so long after it was opened follows the server: the right to list is not that to watch.
const PROVEN_AFTER: Duration = Duration::from_secs(5);

impl Informer {
    /// The scope of everything, where there is such a scope and a part of it would do.
    fn wide(&self) -> Option<&Rc<Scope>> {
        self.home.first().filter(|scope| scope.namespace.is_none() && self.key.resource.namespaced)
    }

    /// The namespaces readers want to have watched, if not all.
    fn wanted(&self) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        for member in self.members().iter() {
            if let Some(elsewhere) = &member.elsewhere {
                self.report(member, |_| wanted.extend(elsewhere()));
            }
        }
        wanted
    }

    /// Looks anew where to watch: readers want other namespaces than before, or everything is denied.
    pub(super) fn places_changed(self: &Rc<Self>) {
        let Some(wide) = self.wide().filter(|_| self.is_running()) else { return };
        let before: Option<Vec<Rc<Scope>>> = self.narrowed.borrow().as_ref().map(|narrowed| narrowed.scopes.clone());
        match before {
            None if wide.forbidden.get() => self.narrow(wide),
            None => {}
            Some(before) => self.add_namespaces(before),
        }
    }

    /// Watches the namespaces that are wanted instead of all.
    fn narrow(self: &Rc<Self>, wide: &Rc<Scope>) {
        let scopes: Vec<_> =
            self.wanted().into_iter().take(MOST_NAMESPACES).map(|namespace| self.new_scope(namespace)).collect();
        if scopes.is_empty() {
            return;
        }
        tracing::info!(
            watch = %self.name, namespaces = scopes.len(),
            "watching all namespaces is denied; single namespaces are watched"
        );
        wide.halt();
        self.members().iter().for_each(|member| member.owe_nothing());
        for scope in &scopes {
            self.hand_over(std::slice::from_ref(wide), scope);
        }
        self.members().iter().for_each(|member| member.uncover(wide));
        let widening = self.task(self.clone().widen());
        self.narrowed.replace(Some(Narrowed::new(scopes.clone(), widening)));
        self.lose_what_is_elsewhere();
        for scope in &scopes {
            self.follow(scope);
        }
        self.show();
    }

    fn add_namespaces(self: &Rc<Self>, before: Vec<Rc<Scope>>) {
        let mut wanted = self.wanted();
        let mut scopes = before;
        let is_watched = |scopes: &[Rc<Scope>], namespace: &str| scopes.iter().any(|scope| scope.holds(namespace));
        let new: Vec<String> = wanted.iter().filter(|namespace| !is_watched(&scopes, namespace)).cloned().collect();
        if new.is_empty() {
            return;
        }
        let known = scopes.len();
        if known + new.len() > MOST_NAMESPACES {
            scopes.retain(|scope| {
                let is_wanted = scope.namespace.as_ref().is_some_and(|namespace| wanted.remove(namespace));
                if !is_wanted {
                    scope.halt();
                }
                is_wanted
            });
        }
        let room = MOST_NAMESPACES.saturating_sub(scopes.len());
        let added: Vec<_> = new.into_iter().take(room).map(|namespace| self.new_scope(namespace)).collect();
        let changed = !added.is_empty() || scopes.len() < known;
        if !changed {
            return;
        }
        scopes.extend(added.iter().cloned());
        if let Some(narrowed) = self.narrowed.borrow_mut().as_mut() {
            narrowed.scopes = scopes;
        }
        self.lose_what_is_elsewhere();
        for scope in &added {
            self.follow(scope);
        }
        self.show();
    }

    /// What is outside of the watched namespaces is not known any more.
    fn lose_what_is_elsewhere(&self) {
        let narrow = self.members();
        for member in narrow.iter().filter(|member| member.elsewhere.is_some()) {
            let scopes = self.scopes_of(member);
            self.report(member, |sink| sink.lose(&|name| !scopes.iter().any(|scope| scope.contains(name))));
        }
    }

    /// Who needed no more than some namespaces has left: who is left needs all.
    pub(super) fn widen_if_unneeded(self: &Rc<Self>) {
        let is_needed = self.members().iter().any(|member| member.elsewhere.is_some());
        if !is_needed && self.narrowed.take().is_some() {
            self.home.iter().for_each(|scope| self.follow(scope));
        }
    }

    /// Tries all namespaces until they may be watched.
    async fn widen(self: Rc<Self>) {
        let Some(wide) = self.wide().cloned() else { return };
        let mut pause = FIRST_TRY;
        loop {
            tokio::time::sleep(self.env.random.jitter(pause, 0.1)).await;
            pause = TRY_EVERY;
            match AssertUnwindSafe(self.list_everything(&wide)).catch_unwind().await {
                Ok(Some(position)) => return self.watch_everywhere(&wide, position),
                Ok(None) => {}
                Err(_) => tracing::error!(watch = %self.name, "trying to watch all namespaces panicked"),
            }
            // Nobody tells of what a list brought that did not come to its end.
            self.members().iter().for_each(|member| member.uncover(&wide));
            self.lose_what_is_elsewhere();
        }
    }

    /// Lists everything if watching it is not denied; gives the version to watch from.
    async fn list_everything(&self, wide: &Scope) -> Option<String> {
        if !self.may_watch_everywhere(wide).await {
            return None;
        }
        wide.whole.set(self.is_whole());
        let places = self.narrow_scopes();
        self.hand_over(&places, wide);
        let position = match self.list(wide, &self.members()).await {
            Ok(position) => position,
            Err(error) => {
                tracing::info!(watch = %self.name, %error, "a kind cannot be listed in all namespaces");
                return None;
            }
        };
        let ids = |scopes: &[Rc<Scope>]| scopes.iter().map(|scope| scope.id).collect::<Vec<_>>();
        if ids(&self.narrow_scopes()) != ids(&places) {
            // What the list brought of elsewhere was lost with the change of places: nobody knows all.
            self.members().iter().for_each(|member| member.uncover(wide));
        }
        Some(position)
    }

    /// Watches everything again.
    fn watch_everywhere(self: &Rc<Self>, wide: &Rc<Scope>, position: String) {
        tracing::info!(watch = %self.name, "a kind may be watched in all namespaces again");
        wide.position.replace(Some(position));
        wide.error.take();
        wide.allow();
        // This ends the task that runs this, at its next await.
        self.narrowed.take();
        self.hear(wide);
        self.follow(wide);
        if self.members().iter().any(|member| !member.covers(wide)) {
            wide.restart(Again::List); // for who came during the list, or lost a part of it
        }
        self.show();
    }

    /// Who heard of changes in some scopes is to hear of them in another: what happens in between becomes known by a list.
    fn hand_over(&self, from: &[Rc<Scope>], to: &Scope) {
        for member in self.members().iter().filter(|member| from.iter().any(|scope| member.covers(scope))) {
            member.owe(to);
        }
    }

    /// The watches of single namespaces.
    fn narrow_scopes(&self) -> Vec<Rc<Scope>> {
        self.narrowed.borrow().iter().flat_map(|narrowed| &narrowed.scopes).cloned().collect()
    }

    /// Whether a watch of all namespaces can be opened, and stays open for a while.
    async fn may_watch_everywhere(&self, wide: &Scope) -> bool {
        let opened = async {
            let position = self.version_of(None).await?;
            self.cluster.watch(&self.key.resource, None, self.watch_query(position, false)).await
        };
        let mut stream = match opened.await {
            Ok(stream) => stream,
            Err(error) => {
                match error.is_forbidden() {
                    true => self.note_denial(wide),
                    false => wide.fail(),
                }
                return false;
            }
        };
        let broken = async { while stream.next().await.is_some_and(|event| event.is_ok()) {} };
        tokio::time::timeout(PROVEN_AFTER, broken).await.is_err()
    }
}
