//! Settles one RBAC object: reads what the cache does not prove, and writes the difference.

use cluster::{ApiError, CachedFields, Context, Lock, Watch, Wrote};
use kit::Failure;

use super::{
    object::RbacObject,
    state::{RbacState, RbacVerdict},
};

/// RBAC objects of a kind.
pub type RbacWatch = Watch<CachedFields<RbacState>>;

/// How an object was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It was as wanted.
    Same,
    /// It was written.
    Written,
    /// It was written, and the server changed what was written, as a mutating policy does: it still differs.
    Altered,
    /// It does not exist, and it must not be created now.
    Absent,
    /// Somebody else was faster: look again after a back-off.
    Overtaken,
}

impl RbacObject {
    /// Makes the object as it must be. A cached object is patched without a read, bound to its version. With
    /// `may_create` unset, a missing object stays missing, and a binding of another role is not replaced. Fails with the
    /// texts of the API server, and for a binding that can be replaced only when it is gone.
    pub async fn settle(&self, watch: &RbacWatch, context: &Context, may_create: bool) -> Result<Settled, Failure> {
        let cached = match watch.known(&self.name) {
            Some(known) => known,
            None => watch.read_live(context, &self.name).await?,
        };
        let Some(cached) = cached else {
            return if may_create { self.create(watch, context).await } else { Ok(Settled::Absent) };
        };
        match self.judge(&cached.fields) {
            RbacVerdict::Keep => Ok(Settled::Same),
            RbacVerdict::Patch(_) => self.patch(watch, context).await,
            RbacVerdict::Replace if may_create => self.replace(watch, context).await,
            RbacVerdict::Replace => Ok(Settled::Absent),
            RbacVerdict::Ending => Err(Failure::new(
                "it binds another role and is being deleted: remove its finalizers, so that it can be created again",
            )),
        }
    }

    async fn create(&self, watch: &RbacWatch, context: &Context) -> Result<Settled, Failure> {
        match watch.create(context, &self.object).await {
            Ok(_) => Ok(Settled::Written),
            Err(error) if error.is_already_exists() => {
                let live = watch.read_object(context, &self.name).await?;
                let is_same = live.is_some_and(|live| self.judge(&RbacState::of(&live)) == RbacVerdict::Keep);
                Ok(if is_same { Settled::Same } else { Settled::Overtaken })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn patch(&self, watch: &RbacWatch, context: &Context) -> Result<Settled, Failure> {
        let difference = |cached: &CachedFields<RbacState>| match self.judge(&cached.fields) {
            RbacVerdict::Patch(patch) => Some(patch),
            RbacVerdict::Keep | RbacVerdict::Replace | RbacVerdict::Ending => None,
        };
        Ok(match watch.patch_cached(context, &self.name, Lock::Version, difference).await? {
            Wrote::Created(_) | Wrote::Updated(_) => Settled::Written,
            Wrote::Altered(_) => Settled::Altered,
            Wrote::Unchanged(cached) if self.judge(&cached.fields) == RbacVerdict::Keep => Settled::Same,
            Wrote::Unchanged(_) | Wrote::Deleting(_) | Wrote::Gone => Settled::Overtaken,
        })
    }

    /// The deletion is bound to the version that was read live. An object with finalizers stays until they are gone.
    async fn replace(&self, watch: &RbacWatch, context: &Context) -> Result<Settled, Failure> {
        let is_due = |live: &_| self.judge(&RbacState::of(live)) == RbacVerdict::Replace;
        let deleted: Result<_, ApiError> = watch.delete_if(context, &self.name, None, is_due).await;
        match deleted? {
            Wrote::Gone => self.create(watch, context).await,
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Altered(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => {
                Ok(Settled::Overtaken)
            }
        }
    }
}
