//! The Secrets of ManagedResources: their versions, and their data when it is needed. Only versions are cached. Data is
//! read when manifests are decoded, and dropped with them. At start, when many are needed, one paged list brings all.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cluster::{
    ApiError, Cached, Cluster, Context, ListQuery, Watch,
    object::{self, NamespacedName},
};
use kit::{Deadline, SyncRequirement};
use serde_json::Value;

use crate::actors::resource_manager::bundle::decode;

/// Up to this many Secrets are read one by one.
const FEW: usize = 64;

/// A list is read if it brings at most this many times the Secrets that are needed.
const WORTH_LISTING: usize = 8;

const COUNTING: Duration = Duration::from_secs(10);

/// Bytes of data that a list may bring before they are used. Data beyond this is read one by one.
const PRELOAD_BYTES: usize = 64 << 20;

#[derive(Clone, Debug)]
pub(crate) struct CachedSecret {
    uid: Arc<str>,
    version: u64,
}

/// A Secret's data, with the version it was read at. It has no Debug form: nothing may show its content.
#[derive(Clone)]
pub(crate) struct SecretData {
    pub(crate) version: u64,
    pub(crate) data: BTreeMap<String, Vec<u8>>,
}

pub(crate) struct Secrets {
    cluster: Cluster,
    watch: Watch<CachedSecret>,
    preloaded: RefCell<Preloaded>,
}

/// Data of many Secrets, read before it is needed.
#[derive(Default)]
struct Preloaded {
    secrets: BTreeMap<NamespacedName, SecretData>,
    bytes: usize,
}

impl CachedSecret {
    pub(crate) fn of(object: &Value) -> Option<Self> {
        let version = object::resource_version(object).parse().ok()?;
        Some(Self { uid: object::uid(object).into(), version })
    }
}

impl Cached for CachedSecret {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl SecretData {
    fn of(secret: &Value) -> Result<Self, ApiError> {
        let data = decode::secret_data(secret).map_err(|error| ApiError::Decode(error.to_string()))?;
        let version = object::resource_version(secret).parse().unwrap_or_default();
        Ok(Self { version, data })
    }

    fn size(&self) -> usize {
        self.data.values().map(Vec::len).sum()
    }
}

impl Secrets {
    pub(crate) fn new(cluster: &Cluster, watch: Watch<CachedSecret>) -> Self {
        Self { cluster: cluster.clone(), watch, preloaded: RefCell::default() }
    }

    pub(crate) fn sync_requirement(&self) -> SyncRequirement {
        self.watch.sync_requirement()
    }

    /// Returns true if the Secret may have changed, or be gone, since it was read at `version`.
    pub(crate) fn changed_since(&self, secret: &NamespacedName, version: u64) -> bool {
        let store = self.watch.store();
        !store.is_fresh() || store.with(secret, |cached| cached.version != version).unwrap_or(true)
    }

    /// Returns true if the Secret is known not to exist.
    pub(crate) fn is_missing(&self, secret: &NamespacedName) -> bool {
        let store = self.watch.store();
        store.is_fresh() && store.with(secret, |_| ()).is_none()
    }

    /// Returns true if the Secret has this uid. Asks the server if it is not cached. *Not found* is no error.
    pub(crate) async fn is(&self, context: &Context, secret: &NamespacedName, uid: &str) -> Result<bool, ApiError> {
        if let Some(known) = self.watch.store().with(secret, |cached| *cached.uid == *uid) {
            return Ok(known);
        }
        let at = self.watch.resource().named(secret);
        match self.cluster.get(context, &at).await {
            Ok(live) => Ok(object::uid(&live) == uid),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the Secret's data, preloaded or live. Fails with the error of the request, *not found* included.
    pub(crate) async fn read(&self, context: &Context, secret: &NamespacedName) -> Result<SecretData, ApiError> {
        let preloaded = self.preloaded.borrow_mut().take(secret);
        if let Some(data) = preloaded.filter(|data| !self.changed_since(secret, data.version)) {
            return Ok(data);
        }
        let at = self.watch.resource().named(secret);
        let asked = self.cluster.clock().monotonic();
        let live = self.cluster.get(context, &at).await?;
        // Before the watch has begun nothing is cached, and this data will count as changed.
        self.watch.found(&live, asked);
        SecretData::of(&live)
    }

    /// Reads many Secrets by a list, if that is cheaper than one by one. Errors are left to the reads that follow.
    pub(crate) async fn preload(&self, context: &Context, needed: &BTreeSet<NamespacedName>) {
        if needed.len() <= FEW {
            return;
        }
        let scopes: Vec<Option<String>> = match self.cluster.options().namespaces.as_slice() {
            [] => vec![None],
            namespaces => namespaces.iter().cloned().map(Some).collect(),
        };
        for scope in scopes {
            if let Err(error) = self.preload_scope(context, scope, needed).await {
                tracing::info!(error = %error, "Secrets cannot be listed and are read one by one");
                return;
            }
        }
    }

    async fn preload_scope(
        &self,
        context: &Context,
        scope: Option<String>,
        needed: &BTreeSet<NamespacedName>,
    ) -> Result<(), ApiError> {
        let one = ListQuery { limit: Some(1), metadata_only: true, ..ListQuery::default() };
        let asked = self.cluster.clock().monotonic();
        let asking = Context { deadline: Deadline::after(COUNTING), ..context.clone() };
        let first = self.cluster.list(&asking, self.watch.resource(), scope.as_deref(), &one).await?;
        let around = first.items.len() + usize::try_from(first.remaining.unwrap_or_default()).unwrap_or(usize::MAX);
        if around > needed.len().saturating_mul(WORTH_LISTING) {
            return Ok(());
        }
        let mut pages = self.cluster.pages(context.clone(), self.watch.resource().clone(), scope, ListQuery::default());
        while let Some(page) = pages.next().await {
            for secret in &page?.items {
                let name = NamespacedName::of(secret);
                if !needed.contains(&name) {
                    continue;
                }
                self.watch.found(secret, asked);
                if let Ok(data) = SecretData::of(secret) {
                    self.preloaded.borrow_mut().keep(name, data, PRELOAD_BYTES);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn drop_preloaded(&self) {
        self.preloaded.take();
    }
}

impl Preloaded {
    /// Keeps the data unless all data would then have more than `most` bytes.
    fn keep(&mut self, name: NamespacedName, data: SecretData, most: usize) {
        self.take(&name);
        if self.bytes + data.size() <= most {
            self.bytes += data.size();
            self.secrets.insert(name, data);
        }
    }

    fn take(&mut self, name: &NamespacedName) -> Option<SecretData> {
        let data = self.secrets.remove(name)?;
        self.bytes -= data.size();
        Some(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> NamespacedName {
        NamespacedName { namespace: "ns".into(), name: name.into() }
    }

    fn of_size(bytes: usize) -> SecretData {
        SecretData { version: 1, data: BTreeMap::from([("k".to_owned(), vec![0; bytes])]) }
    }

    #[test]
    fn preloaded_secrets_never_exceed_their_bound() {
        let mut preloaded = Preloaded::default();

        for (secret, bytes) in [("a", 40), ("b", 59), ("a", 41), ("too-large", 2), ("small", 0)] {
            preloaded.keep(name(secret), of_size(bytes), 100);
            assert!(preloaded.bytes <= 100, "{secret}");
        }

        assert_eq!(preloaded.bytes, 100);
        assert!(preloaded.take(&name("too-large")).is_none() && preloaded.take(&name("small")).is_some());
        assert_eq!(preloaded.take(&name("a")).map(|data| data.size()), Some(41));
        preloaded.keep(name("c"), of_size(41), 100);
        assert_eq!(preloaded.bytes, 100, "there is room again");
    }
}
