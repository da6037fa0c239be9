//! Lists each wanted kind, once all ManagedResources have submitted their wanted objects, and compares the objects.

use std::{collections::BTreeSet, pin::pin, rc::Rc, time::Duration};

use cluster::{ApiError, Context, Found, ListQuery, Page, Pages, object::NamespacedName};
use futures::future::join_all;
use kit::{Deadline, Moment, Priority, Signal, json};
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

use super::super::{
    apply::OWN_MANAGER,
    known::{CachedManagedResource, Fingerprint, WantedKind, WantedObject},
    shared::ManagedResources,
    wake::trigger::{self, Operation, ReconcilePath},
};
use crate::{
    actors::resource_manager::bundle::{hpa, merge, plan::Old, up_to_date},
    api::resources::{
        keys::MANAGED_BY,
        managed_resource::{ManagedResource, ManagedResourceStatus},
    },
};

/// ManagedResources that have not submitted by then read their objects live.
const COLLECTING: Duration = Duration::from_secs(5);

const LISTING: Duration = Duration::from_secs(300);

/// Number of kinds that may request a page at once …
const SIDE_BY_SIDE: usize = 4;

/// … not counting kinds whose request has not been answered for this long.
const ANSWER: Duration = Duration::from_secs(5);

/// How long listed Secrets are kept for the reconciles that need them.
const PRELOADED: Duration = Duration::from_secs(60);

const COMPARED_AT_ONCE: usize = 50;

/// Returns true if the ManagedResource was ever applied, by its status. If not, its objects are created without
/// reading, because listing and decoding would nearly always be in vain. If they exist after all, as after the move of
/// a control plane, each creation is refused once, and the object is read.
fn is_known(mr: &ManagedResource) -> bool {
    mr.status != ManagedResourceStatus::default()
}

/// Returns the next page, in turn with other kinds. A server that does not answer gives up its turn.
async fn next_page(pages: &mut Pages, turns: &Semaphore) -> Option<Result<Page, ApiError>> {
    let mut page = pin!(pages.next());
    let turn = turns.acquire().await;
    match tokio::time::timeout(ANSWER, &mut page).await {
        Ok(page) => page,
        Err(_) => {
            drop(turn);
            page.await
        }
    }
}

impl ManagedResources {
    pub(super) async fn run_initial_sync(self: Rc<Self>) {
        self.bundles.sync_requirement().met().await;
        let needed = self.needed_secrets();
        if !needed.is_empty() {
            let context = self.start_context();
            // Secrets that are read before their changes are received would have to be read again.
            drop(tokio::time::timeout(COLLECTING, self.secrets.sync_requirement().met()).await);
            self.secrets.preload(&context, &needed).await;
        }
        // Not earlier: the reconcile of a ManagedResource that submits nothing may have come and gone meanwhile.
        let expected = self.applied_now().filter(|(_, mr)| is_known(mr)).map(|(name, _)| name).collect();
        self.initial_sync.begin_collecting(expected);
        let collected = async {
            while !self.initial_sync.all_collected() {
                Signal::raised_after(&self.initial_sync.moment()).await;
            }
        };
        // When the time is over, comparing begins with what was submitted.
        drop(tokio::time::timeout(COLLECTING, collected).await);
        let turns = Semaphore::new(SIDE_BY_SIDE);
        let kinds = self.initial_sync.begin_comparing().into_values();
        join_all(kinds.map(|kind| self.compare_or_skip(kind, &turns))).await;
        self.initial_sync.end();
        // There are more ManagedResources than permits: many still wait for their turn.
        tokio::time::sleep(PRELOADED).await;
    }

    fn applied_now(&self) -> impl Iterator<Item = (NamespacedName, ManagedResource)> {
        self.bundles.store().names().into_iter().filter_map(|name| {
            let mr = self.bundles.store().with(&name, CachedManagedResource::managed_resource)?.ok()?;
            let stopped = trigger::operation(&mr) == Operation::Stop;
            let applied = !stopped && trigger::entry(&self.settings.class, &mr) == ReconcilePath::Apply;
            applied.then_some((name, mr))
        })
    }

    fn needed_secrets(&self) -> BTreeSet<NamespacedName> {
        let needed = self.applied_now().flat_map(|(bundle, mr)| {
            let references = mr.spec.secret_refs.into_iter();
            references.map(move |reference| NamespacedName::new(&bundle.namespace, reference.name))
        });
        needed.collect()
    }

    fn start_context(&self) -> Context {
        Context { priority: Priority::Low, deadline: Deadline::after(LISTING), key: "start".into() }
    }

    async fn compare_or_skip(&self, kind: WantedKind, turns: &Semaphore) {
        let (name, bundles) = (kind.resource.to_string(), kind.bundles());
        if let Err(error) = self.compare(kind, turns).await {
            tracing::info!(resource = %name, error = %error, "a kind cannot be listed; its objects are read one by one");
        }
        self.initial_sync.compared(bundles);
    }

    async fn compare(&self, mut kind: WantedKind, turns: &Semaphore) -> Result<(), ApiError> {
        let context = self.start_context();
        let group_kind = kind.resource.group_kind();
        let scopes = self.objects.scopes(&group_kind);
        self.watched(&kind).await;
        if self.autoscalers_starting(&kind).is_some() {
            // The right number of replicas is not known yet: the ManagedResources check themselves when it is.
            return Ok(());
        }
        self.objects.watch(&kind.resource);
        if self.objects.scopes(&group_kind) != scopes {
            // Without the right to watch all namespaces, single namespaces are watched: wait for those watches too.
            self.watched(&kind).await;
        }
        let mut compared = Ok(());
        for scope in self.objects.scopes(&group_kind) {
            compared = compared.and(self.compare_scope(&mut kind, scope, &context, turns).await);
        }
        compared
    }

    async fn compare_scope(
        &self,
        kind: &mut WantedKind,
        scope: Option<String>,
        context: &Context,
        turns: &Semaphore,
    ) -> Result<(), ApiError> {
        let query = ListQuery::labelled(format!("{MANAGED_BY}={}", self.settings.apply.managed_by_label_value));
        let asked = self.env.clock.monotonic();
        let mut pages = self.target.pages(context.clone(), kind.resource.clone(), scope.clone(), query);
        while let Some(page) = next_page(&mut pages, turns).await {
            for (index, live) in page?.items.iter().enumerate() {
                let wanted = kind.wanted.remove(&NamespacedName::of(live)).unwrap_or_default();
                for wanted_object in wanted {
                    self.compare_object(&wanted_object, live, asked);
                }
                if index % COMPARED_AT_ONCE == COMPARED_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
        // Objects that the list lacks are created without reading.
        let in_scope = |name: &NamespacedName| scope.as_ref().is_none_or(|scope| *scope == name.namespace);
        let left = kind.wanted.extract_if(.., |name, _| in_scope(name));
        self.initial_sync.record_absent(left.flat_map(|(_, wanted)| wanted));
        Ok(())
    }

    async fn watched(&self, kind: &WantedKind) {
        let starting = self.objects.starting([&kind.resource.group_kind()]);
        for moment in starting.into_iter().chain(self.autoscalers_starting(kind)) {
            drop(tokio::time::timeout(COLLECTING, Signal::raised_after(&moment)).await);
        }
    }

    fn autoscalers_starting(&self, kind: &WantedKind) -> Option<Moment> {
        if hpa::is_scalable(&kind.resource.group_kind()) { self.autoscalers.pending() } else { None }
    }

    fn compare_object(&self, wanted_object: &WantedObject, live: &Value, asked: Instant) {
        if self.objects.found(&wanted_object.key, live, asked) == Found::Removed {
            // No event will report it again: the ManagedResource has to read it.
            return;
        }
        let Ok((manifest, old)) = json::from_slice::<(Value, Option<Old>)>(&wanted_object.wanted) else { return };
        let wanted_by = &wanted_object.wanted_by;
        let is_scaled = self.autoscalers.scales(&wanted_object.key, &wanted_by.equivalences, &wanted_by.bundle, None);
        let context = wanted_by.merging.context(old.as_ref(), is_scaled);
        let Ok(merged) = merge::merge(&manifest, live, &context) else { return };
        if !up_to_date::must_be_sent(&merged, live, OWN_MANAGER, || wanted_by.trusted) {
            let content = self.objects.cached_of(&wanted_object.key, live).content();
            let seen = Fingerprint { manifest: wanted_object.manifest_hash, content, sent: 0 };
            self.initial_sync.is_up_to_date(&wanted_by.bundle, wanted_object.key.clone(), seen);
        }
    }
}
