//! The requests of a reconcile: the live list of shared Secrets, and the writes and deletions of copies.

use std::collections::BTreeMap;

use cluster::{ApiError, Cluster, Context, ListQuery, Lock, Watch, Wrote, object, object::NamespacedName};
use futures::{StreamExt as _, stream};
use kit::Failure;
use serde_json::Value;

use super::{
    copy::{CachedSecret, CopyVerdict, judge_copy, new_copy},
    roles::{GARDEN, SELECTOR, is_shared},
};
use crate::{actors::shared::texts::together, api::kinds};

/// Most requests of a reconcile at once (spec 80 §16 S-19).
const SIDE_BY_SIDE: usize = 16;

/// The shared Secrets by name, as the server has them. No `Debug`: contents of Secrets.
pub(super) struct Sources(pub(super) BTreeMap<String, Value>);

/// The copies in the Namespace of a Seed.
pub(super) struct Copies<'a> {
    pub(super) watch: &'a Watch<CachedSecret>,
    pub(super) context: &'a Context,
    /// The Namespace.
    pub(super) namespace: &'a str,
    /// The Namespace takes new Secrets.
    pub(super) may_create: bool,
}

/// Results of several writes.
#[derive(Default)]
pub(super) struct Written {
    /// Names of the objects that are as wanted.
    settled: Vec<String>,
    errors: Vec<String>,
    /// An object is not as wanted, because somebody else changed it meanwhile.
    is_overtaken: bool,
}

impl Sources {
    /// Lists them live.
    pub(super) async fn list(cluster: &Cluster, context: &Context) -> Result<Self, ApiError> {
        let mut sources = BTreeMap::new();
        let query = ListQuery::labelled(SELECTOR);
        let mut pages = cluster.pages(context.clone(), kinds::SECRET, Some(GARDEN.to_owned()), query);
        while let Some(page) = pages.next().await {
            let shared = page?.items.into_iter().filter(is_shared);
            sources.extend(shared.map(|secret| (object::name(&secret).to_owned(), secret)));
        }
        Ok(Self(sources))
    }
}

impl Copies<'_> {
    /// Creates or changes the copies of these sources.
    pub(super) async fn write(&self, sources: &Sources, names: &[String]) -> Written {
        let sources = names.iter().filter_map(|name| sources.0.get(name));
        let writes: Vec<_> = sources.map(async |source| (object::name(source), self.settle(source).await)).collect();
        Written::all(writes).await
    }

    /// Deletes copies whose sources are gone. Each deletion is bound to the cached version.
    pub(super) async fn delete(&self, names: &[String]) -> Written {
        let deletions: Vec<_> = names.iter().map(async |name| (name.as_str(), self.remove(name).await)).collect();
        Written::all(deletions).await
    }

    async fn remove(&self, name: &str) -> Result<bool, Failure> {
        let deleted = self.watch.delete_cached_if(self.context, &self.name(name), None, |_| true).await?;
        Ok(matches!(deleted, Wrote::Gone | Wrote::Deleting(_)))
    }

    fn name(&self, name: &str) -> NamespacedName {
        NamespacedName::new(self.namespace, name)
    }

    /// Makes one copy like its source. Returns false if somebody else was faster.
    async fn settle(&self, source: &Value) -> Result<bool, Failure> {
        let name = self.name(object::name(source));
        let is_missing = self.watch.is_fresh_for(&name) && self.watch.store().with(&name, |_| ()).is_none();
        let mut copy = if is_missing { None } else { self.watch.read_object(self.context, &name).await? };
        if copy.is_none() && self.may_create {
            match self.create(source).await {
                Err(error) if error.is_already_exists() => {}
                created => return Ok(created.map(|()| true)?),
            }
            // A Secret without a shared role has the name.
            copy = self.watch.read_object(self.context, &name).await?;
        }
        let Some(copy) = copy else { return Ok(!self.may_create) };
        match judge_copy(source, Some(&copy)) {
            CopyVerdict::Create | CopyVerdict::Keep | CopyVerdict::Leave => Ok(true),
            CopyVerdict::Patch(_) => {
                let patch = |copy: &Value| match judge_copy(source, Some(copy)) {
                    CopyVerdict::Patch(patch) => Some(patch),
                    CopyVerdict::Create
                    | CopyVerdict::Keep
                    | CopyVerdict::Replace
                    | CopyVerdict::Leave
                    | CopyVerdict::Blocked => None,
                };
                let wrote = self.watch.patch(self.context, &copy, Lock::Version, patch).await?;
                Ok(matches!(wrote, Wrote::Updated(_)))
            }
            CopyVerdict::Replace => self.replace(source, &copy).await,
            CopyVerdict::Blocked => Err(Failure::new("the Secret that has this name is no copy and cannot be changed")),
        }
    }

    async fn create(&self, source: &Value) -> Result<(), ApiError> {
        self.watch.create(self.context, &new_copy(source, self.namespace)).await.map(drop)
    }

    /// Deletes a copy that cannot be changed, and creates it again. A copy with finalizers stays until they are gone:
    /// its end wakes the Seed.
    async fn replace(&self, source: &Value, copy: &Value) -> Result<bool, Failure> {
        if !self.may_create {
            return Ok(true);
        }
        let is_due = |copy: &Value| judge_copy(source, Some(copy)) == CopyVerdict::Replace;
        match self.watch.delete_if(self.context, copy, None, is_due).await? {
            Wrote::Gone => Ok(self.create(source).await.map(|()| true)?),
            Wrote::Deleting(_) => Ok(true),
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) => Ok(false),
        }
    }
}

impl Written {
    async fn all<'n>(writes: Vec<impl Future<Output = (&'n str, Result<bool, Failure>)>>) -> Self {
        let mut written = Self::default();
        let mut results = stream::iter(writes).buffer_unordered(SIDE_BY_SIDE);
        while let Some((name, result)) = results.next().await {
            match result {
                Ok(true) => written.settled.push(name.to_owned()),
                Ok(false) => written.is_overtaken = true,
                Err(error) => written.errors.push(format!("{name}: {error}")),
            }
        }
        written.errors.sort();
        written
    }

    /// Returns the names of the objects that are as wanted, in no order.
    pub(super) fn settled(&self) -> &[String] {
        &self.settled
    }

    /// Returns the errors as one text, with `what` failed before them; `None` without an error.
    pub(super) fn error(&self, what: &str) -> Option<String> {
        (!self.errors.is_empty()).then(|| format!("{what}: {}", together(&self.errors, ", ")))
    }

    /// Returns true if something is not as wanted, because somebody else changed it meanwhile.
    pub(super) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }
}
