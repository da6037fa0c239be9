//! Re-triggers the HA webhook when the cluster gets its second node or loses it (spec 41, part C). The webhook spreads
//! replicas over hosts: strictly, or softly while there is only one node. Nothing else calls it when the number of
//! nodes changes. So this controller sends an empty patch to each workload whose spread does not fit ([`decide`],
//! pure). There is one actor. It lists workloads when the threshold was crossed, and does not watch them.

pub mod decide;

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use cluster::{
    ApiError, CachedFields, Cluster, Context, How, ListQuery, ObjectRef, Resource, Watch, WatchOptions, object,
};
use futures::{StreamExt as _, stream};
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Singleton, Wake};
use serde_json::json;
use tokio::time::Instant;

use super::burst::Burst;
use crate::{
    actors::{
        resource_manager::controller_context::{ControllerContext, Registration, StartControllers, start},
        shared::texts,
    },
    api::{config::resource_manager::Config, kinds},
};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "node-high-availability-config";

/// Registers the controller; `webhooks.highAvailabilityConfig.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider=true";
const SKIP: &str = "!high-availability-config.resources.gardener.cloud/skip";
/// In this order (spec 41 §C.3 step 6).
const KINDS: [Resource; 2] = [kinds::DEPLOYMENT, kinds::STATEFUL_SET];
const SIDE_BY_SIDE: usize = 8;
/// Delays before an unchanged workload is patched again: a webhook replica may have known too few nodes (C-T2).
const AGAIN_AFTER: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];

/// At some moment there was no node (spec 41 §C.3 step 1a).
const EMPTY: Causes = Causes::own(0);

struct HighAvailability {
    target: Cluster,
    nodes: Watch<CachedFields<()>>,
}

#[derive(Default)]
struct Memory {
    burst: Burst,
    multiple_nodes: Option<bool>,
    /// Workloads that should have changed but did not, the number of further attempts, and the time of the next.
    unchanged: Vec<Workload>,
    again: usize,
    due: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Workload {
    at: ObjectRef,
    tolerance: Option<String>,
}

#[derive(Default)]
struct Reviewed {
    unchanged: Vec<Workload>,
    failed: BTreeMap<String, String>,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    config.webhooks.high_availability_config.on()?;
    let nodes = ctx.target.watches.open(WatchOptions::fields(kinds::NODE, |_| ()).metadata());
    let controller = HighAvailability { target: ctx.target.cluster.clone(), nodes };
    Some(start(controller, |controller, supervised| {
        let (waker, store) = (supervised.weak(), controller.nodes.store().clone());
        controller.nodes.subscribe(move |change| {
            if change.old.is_some() != change.new.is_some() && change.how != How::Lost {
                let causes = if store.is_empty() { Causes::OBJECT.with(EMPTY) } else { Causes::OBJECT };
                waker.wake(&Singleton, Wake::high(causes));
            }
        });
    }))
}

impl HighAvailability {
    /// Patches all workloads whose spread does not fit. Returns those that should have changed but did not.
    async fn review_all(&self, context: &Context, multiple_nodes: bool) -> Result<Vec<Workload>, Failure> {
        let (mut unchanged, mut errors) = (Vec::new(), Vec::new());
        for (namespace, tolerance) in self.namespaces(context).await? {
            for resource in KINDS {
                let mut pages = self.target.pages(
                    context.clone(),
                    resource.clone(),
                    Some(namespace.clone()),
                    ListQuery::labelled(SKIP),
                );
                while let Some(page) = pages.next().await {
                    let page = match page {
                        Ok(page) => page,
                        Err(error) => {
                            errors
                                .push(format!("failed to list {} in namespace {namespace}: {error}", resource.plural));
                            break;
                        }
                    };
                    let unfit = page.items.iter().filter(|it| decide::is_to_be_patched(it, multiple_nodes));
                    let workloads = unfit.map(|workload| Workload {
                        at: resource.at(&*namespace, object::name(workload)),
                        tolerance: tolerance.clone(),
                    });
                    let done = self.review(context, workloads.collect(), multiple_nodes).await;
                    unchanged.extend(done.unchanged);
                    errors.extend(done.failed.into_values());
                }
            }
        }
        if errors.is_empty() { Ok(unchanged) } else { Err(Failure::new(texts::together(&errors, "; "))) }
    }

    /// Returns the considered namespaces that the target may use, and the failures each must survive (C-T4).
    async fn namespaces(&self, context: &Context) -> Result<Vec<(String, Option<String>)>, Failure> {
        let resource = kinds::NAMESPACE;
        let query = ListQuery { metadata_only: true, ..ListQuery::labelled(CONSIDER) };
        let restricted = &self.target.options().namespaces;
        let mut found = Vec::new();
        let mut pages = self.target.pages(context.clone(), resource, None, query);
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| Failure::new(format!("failed to list HA-relevant namespaces: {error}")))?;
            for namespace in &page.items {
                let name = object::name(namespace).to_owned();
                if restricted.is_empty() || restricted.contains(&name) {
                    let tolerance = object::annotation(namespace, decide::FAILURE_TOLERANCE_TYPE);
                    found.push((name, tolerance.map(str::to_owned)));
                }
            }
        }
        Ok(found)
    }

    async fn review(&self, context: &Context, workloads: Vec<Workload>, multiple_nodes: bool) -> Reviewed {
        let patch = async |workload: Workload| (self.patch(context, &workload, multiple_nodes).await, workload);
        let mut patches = stream::iter(workloads.into_iter().map(patch)).buffer_unordered(SIDE_BY_SIDE);
        let mut reviewed = Reviewed::default();
        while let Some((patched, workload)) = patches.next().await {
            match patched {
                Ok(true) => {}
                Ok(false) => reviewed.unchanged.push(workload),
                Err(error) => {
                    let text = format!("failed to handle {}: {error}", workload.at);
                    reviewed.failed.insert(workload.at.to_string(), text);
                }
            }
        }
        reviewed
    }

    /// Sends an empty patch, which only makes the API server call its webhooks (spec 41 §C.5). Returns false if the
    /// workload should have changed but did not.
    async fn patch(&self, context: &Context, workload: &Workload, multiple_nodes: bool) -> Result<bool, ApiError> {
        match self.target.merge_patch(context, &workload.at, None, &json!({})).await {
            Ok(answer) => Ok(!decide::is_to_be_patched(&answer, multiple_nodes)
                || !decide::is_to_change(&answer, workload.tolerance.as_deref(), multiple_nodes)),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error),
        }
    }
}

impl Controller for HighAvailability {
    type Key = Singleton;
    type Memory = Memory;

    fn causes(&self) -> &'static [&'static str] {
        &["empty"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![Reconciler::new(NAME, 1).about(("", "Node")).requires(self.nodes.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<Singleton>,
    ) -> Result<Outcome, Failure> {
        if reconcile.because_of(EMPTY) {
            *memory = Memory { burst: std::mem::take(&mut memory.burst), ..Memory::default() };
        }
        let multiple_nodes = match self.nodes.store().len() {
            0 => {
                *memory = Memory::default();
                reconcile.note("there is no node");
                return Ok(Outcome::Done);
            }
            count => count > 1,
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, NAME);
        let now = self.target.clock().monotonic();
        if memory.multiple_nodes == Some(multiple_nodes) {
            memory.burst = Burst::default();
            let Some(due) = memory.due else {
                tracing::debug!("Node count did not cross the single-node threshold, nothing to do");
                return Ok(Outcome::Done);
            };
            let left = due.saturating_duration_since(now);
            if !left.is_zero() {
                return Ok(Outcome::After(left));
            }
            let again = std::mem::take(&mut memory.unchanged);
            let reviewed = self.review(&context, again.clone(), multiple_nodes).await;
            // A failed patch leaves its workload unchanged.
            let failed = again.into_iter().filter(|workload| reviewed.failed.contains_key(&workload.at.to_string()));
            memory.unchanged = reviewed.unchanged.into_iter().chain(failed).collect();
        } else {
            if let Some(left) = memory.burst.wait(reconcile.because_of(Causes::OBJECT), now) {
                return Ok(Outcome::After(left));
            }
            tracing::info!(
                multipleNodesAvailable = multiple_nodes,
                "Re-triggering HA webhook for objects requiring adaptation"
            );
            let unchanged = self.review_all(&context, multiple_nodes).await?;
            *memory = Memory { multiple_nodes: Some(multiple_nodes), unchanged, ..Memory::default() };
        }
        reconcile.note(if multiple_nodes { "several nodes" } else { "one node" });
        memory.due = None;
        if memory.unchanged.is_empty() {
            return Ok(Outcome::Done);
        }
        let Some(wait) = AGAIN_AFTER.get(memory.again) else {
            let names: Vec<_> = memory.unchanged.drain(..).map(|workload| workload.at.to_string()).collect();
            let objects = texts::together(&names, ", ");
            tracing::warn!(objects, "the webhook for high availability did not adapt workloads");
            return Ok(Outcome::Done);
        };
        memory.again += 1;
        memory.due = Some(self.target.clock().monotonic() + *wait);
        Ok(Outcome::After(*wait))
    }
}
