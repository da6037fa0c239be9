//! Watches single namespaces of a kind while all namespaces are denied, and finds the way back. A denial may be short:
//! an API server has not read its roles yet, or a role is replaced. All namespaces are tried now and then. The present
//! watches stay until there is a list of all namespaces.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use futures::{FutureExt, StreamExt};

use super::{
    informer::Informer,
    scope::{Again, Narrowed, Scope},
};

/// Maximum number of namespaces that are watched while all are denied.
pub const MOST_NAMESPACES: usize = 64;

/// First try of all namespaces, stretched likewise: most short denials are over by then; others count as lasting.
const FIRST_TRY: Duration = Duration::from_secs(31);

/// All namespaces are tried this often, stretched by up to a tenth; one request per try while they are denied.
const TRY_EVERY: Duration = Duration::from_secs(600);

/// A watch without a denial for this long follows the server: the right to list is not the right to watch.
const PROVEN_AFTER: Duration = Duration::from_secs(5);

impl Informer {
    /// The scope of all namespaces, if there is one and the kind is namespaced.
    fn wide(&self) -> Option<&Rc<Scope>> {
        self.home.first().filter(|scope| scope.namespace.is_none() && self.key.resource.namespaced)
    }

    /// The namespaces that readers want while all are denied.
    fn wanted(&self) -> BTreeSet<String> {
        let mut wanted = BTreeSet::new();
        for member in self.members().iter() {
            if let Some(elsewhere) = &member.elsewhere {
                self.call(member, |_| wanted.extend(elsewhere()));
            }
        }
        wanted
    }

    /// Chooses the namespaces again, because readers want others, or all namespaces are denied.
    pub(super) fn namespaces_changed(self: &Rc<Self>) {
        let Some(wide) = self.wide().filter(|_| self.is_running()) else { return };
        let before: Option<Vec<Rc<Scope>>> = self.narrowed.borrow().as_ref().map(|narrowed| narrowed.scopes.clone());
        match before {
            None if wide.forbidden.get() => self.narrow(wide),
            None => {}
            Some(before) => self.add_namespaces(before),
        }
    }

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
        let _widening = self.task(self.clone().widen());
        self.narrowed.replace(Some(Narrowed { scopes: scopes.clone(), _widening }));
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

    /// Objects outside of the watched namespaces are unknown from now on.
    fn lose_what_is_elsewhere(&self) {
        let narrow = self.members();
        for member in narrow.iter().filter(|member| member.elsewhere.is_some()) {
            let scopes = self.scopes_of(member);
            self.call(member, |sink| sink.lose(&|name| !scopes.iter().any(|scope| scope.contains(name))));
        }
    }

    /// The last reader that could do with single namespaces has left; the others need all namespaces.
    pub(super) fn widen_if_unneeded(self: &Rc<Self>) {
        let is_needed = self.members().iter().any(|member| member.elsewhere.is_some());
        if !is_needed && self.narrowed.take().is_some() {
            self.home.iter().for_each(|scope| self.follow(scope));
        }
    }

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
            // No watch updates the objects of an incomplete list.
            self.members().iter().for_each(|member| member.uncover(&wide));
            self.lose_what_is_elsewhere();
        }
    }

    /// Lists all namespaces unless watching them is denied. Returns the version to watch from.
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
            // The change of namespaces lost objects of the list, so no reader knows all of them.
            self.members().iter().for_each(|member| member.uncover(wide));
        }
        Some(position)
    }

    fn watch_everywhere(self: &Rc<Self>, wide: &Rc<Scope>, position: String) {
        tracing::info!(watch = %self.name, "a kind may be watched in all namespaces again");
        wide.position.replace(Some(position));
        wide.error.take();
        wide.allow();
        self.narrowed.take(); // this ends the task that runs this, at its next await
        self.record_contact(wide);
        self.follow(wide);
        if self.members().iter().any(|member| !member.covers(wide)) {
            wide.restart(Again::List); // for readers that joined during the list, or lost a part of it
        }
        self.show();
    }

    /// Readers that got changes of some scopes get those of another from now on; a list brings the changes in between.
    fn hand_over(&self, from: &[Rc<Scope>], to: &Scope) {
        for member in self.members().iter().filter(|member| from.iter().any(|scope| member.covers(scope))) {
            member.owe(to);
        }
    }

    fn narrow_scopes(&self) -> Vec<Rc<Scope>> {
        self.narrowed.borrow().iter().flat_map(|narrowed| &narrowed.scopes).cloned().collect()
    }

    /// Returns true if a watch of all namespaces can be opened, and stays open for a while.
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
