//! Writes the NetworkPolicies that let clients reach Services (spec 40).
//! ```text
//! Services (service.rs)      ┐              ┌ desired/clients.rs                                  write.rs
//! Namespaces, Ingresses,     │              │ pods with a client label, everyone,      policy.rs  create, patch,
//! VirtualServices, Gateways, ├─ known.rs ─► ┤ the ingress controller, Istio        ─►  wanted  ─► then prune
//! client pods (clients.rs),  │    View      └                                          policies
//! gateway pods               ┘
//! ```
//! One actor per Service. Indexes find the Services that a change affects. A reconcile computes all policies of its
//! Service from memory and compares them with the cached policies, so an up-to-date Service costs no request. Foreign
//! policies are not watched. `name.rs` and `label.rs` build and recognise names and labels. `failing.rs` uses them to
//! keep the policies of an unreadable source. Work that grows with user input is cut into pieces (`turns.rs`,
//! `soon.rs`). `gateway_pods.rs` locates the pods of gateways, with `together.rs` and `matching.rs` for very many
//! selectors. Pure: all except `known`, `clients`, `gateway_pods`, `together`, `soon`, `write` and this file.

mod clients;
pub mod desired;
pub mod direction;
pub mod exposure;
pub mod failing;
mod gateway_pods;
mod known;
pub mod label;
mod matching;
pub mod name;
mod others;
pub mod plan;
pub mod policy;
pub mod port;
pub mod rules;
pub mod service;
pub mod snapshot;
mod soon;
pub mod text;
mod together;
pub mod turns;
mod write;

use std::{cell::OnceCell, collections::BTreeSet, rc::Rc, time::Duration};

use cluster::{CachedFields, Context, How, Index, Predicate, Recorder, Reference, object::NamespacedName};
use kit::{Causes, Controller, Failure, Listening, Outcome, Reconcile, Reconciler, Supervised, Wake, WeakSupervised};

use self::{
    known::Known,
    label::Key,
    plan::{NoPlan, Plan},
    rules::Rules,
    soon::Soon,
    turns::Turns,
};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::{
    actors::shared::{state_counts::StateCounts, texts},
    api::{config::resource_manager::Config, kinds},
};

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "networkpolicy";

/// Registers the controller; `controllers.networkPolicy.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Component and action of its Events (spec 40 §9).
const COMPONENT: &str = "networkpolicy-controller";
const ACTION: &str = "Reconcile";
const TOO_LONG: &str = "PodLabelSelectorKey(s)TooLong";
const UNUSABLE: &str = "NetworkPolicySourceUnusable";

const NAMESPACE: Causes = Causes::own(0);
const POLICY: Causes = Causes::own(1);
/// An Ingress, a VirtualService, a Gateway or a gateway pod changed.
const EXPOSURE: Causes = Causes::own(2);
/// A namespace got its first pod with a client label, or lost its last.
const CLIENT: Causes = Causes::own(3);

const STALE_CACHE_RETRY: Duration = Duration::from_secs(10);
const SHOWN: usize = 60;
/// The only state in the metric of Services.
const FAILING: &str = "";

struct NetworkPolicies {
    permits: usize,
    resync: Duration,
    rules: Rules,
    known: Rc<Known>,
    events: Recorder,
    /// Services with a source of policies that is unreadable.
    failing: StateCounts,
    /// Logs that Istio is not installed.
    reporting: OnceCell<Listening>,
}

#[derive(Default)]
struct ReportedState {
    shortened: BTreeSet<Key>,
    unusable: BTreeSet<String>,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.network_policy.on()?;
    let rules = match Rules::new(settings) {
        Ok(rules) => rules,
        // The configuration was validated before; without valid selectors the controller must not start.
        Err(error) => {
            tracing::error!(%error, "failed parsing namespace selector");
            return None;
        }
    };
    if rules.ingress_controller.as_ref().is_some_and(|(_, pods)| pods.is_empty()) {
        tracing::warn!("the ingress controller's podSelector is empty: policies select all pods of its namespace");
    }
    let controller = NetworkPolicies {
        permits: settings.concurrent_syncs.count(),
        resync: config.target.cache_resync_period.get(),
        known: Rc::new(Known::open(&ctx.target.watches, &rules)),
        rules,
        events: ctx.target.events.for_component(COMPONENT).with_action(ACTION),
        failing: StateCounts::new(&ctx.env.observers, "services_failing", [FAILING]),
        reporting: OnceCell::new(),
    };
    Some(start(controller, NetworkPolicies::subscribe))
}

fn wake_all(waker: &WeakSupervised<NetworkPolicies>, services: BTreeSet<NamespacedName>, wake: Wake<()>) {
    services.iter().for_each(|service| waker.wake(service, wake.clone()));
}

fn wake(how: How<'_>, causes: Causes) -> Wake<()> {
    if how == How::First { Wake::low(causes) } else { Wake::high(causes) }
}

impl NetworkPolicies {
    /// Subscribes the event handlers (spec 40 §5). Reconciles wait for all caches, so most initial lists are ignored.
    fn subscribe(self: &Rc<Self>, supervised: &Supervised<Self>) {
        self.reporting.get_or_init(|| {
            self.known.virtual_services.on_absence(|| {
                tracing::info!("VirtualService watch will not be added because Istio CRDs are not installed");
            })
        });
        self.failing.show();
        let soon = Soon::new(&self.known, supervised.weak());
        self.known.services.on_change(supervised, Predicate::fields_changed(), |name, _| [name.clone()]);
        let waker = supervised.weak();
        self.known.policies.subscribe(move |change| {
            if !matches!(change.how, How::Own { .. }) {
                // A policy without a change in our fields is compared at low priority (spec 40 scenario 2).
                let is_same = change.old.map(|old| &old.fields) == change.new.map(|new| &new.fields);
                let wake = if is_same { Wake::low(POLICY) } else { wake(change.how, POLICY) };
                let states = [change.old, change.new].into_iter().flatten();
                let owners: BTreeSet<_> = states.map(|policy| policy.fields.owner.clone()).collect();
                wake_all(&waker, owners, wake);
            }
        });
        let (waker, known) = (supervised.weak(), Rc::downgrade(&self.known));
        let selecting = soon.clone();
        let edge = self.rules.ingress_controller.as_ref().map(|(namespace, _)| namespace.clone());
        self.known.namespaces.subscribe(move |change| {
            let Some(known) = known.upgrade().filter(|_| change.how != How::First) else { return };
            let states = [change.old, change.new].map(|namespace| namespace.map(|namespace| &namespace.fields));
            if states[0] == states[1] {
                return;
            }
            let labels = states.into_iter().flatten().map(|namespace| namespace.labels.clone());
            selecting.add(Wake::high(NAMESPACE), |pending| pending.labels.extend(labels));
            let mut concerned = BTreeSet::from_iter(known.in_namespace.get(&change.name.name.as_str().into()));
            let is_open = states.map(|namespace| namespace.is_some_and(|namespace| !namespace.is_terminating));
            if is_open[0] != is_open[1] {
                if edge.as_deref() == Some(&*change.name.name) {
                    concerned.extend(known.by_backend.iter().flat_map(Index::keys));
                }
                let gateways = known.gateway_pods.gateways_in(&change.name.name);
                selecting.add(Wake::high(NAMESPACE), |pending| pending.gateways.extend(gateways));
            }
            wake_all(&waker, concerned, Wake::high(NAMESPACE));
        });
        if let Some(ingresses) = &self.known.ingresses {
            let changed = Predicate::fields_changed().ignoring_first_list().because(EXPOSURE);
            let backends = |name: &NamespacedName, ingress: &CachedFields<_>| {
                exposure::backend_services(&name.namespace, &ingress.fields)
            };
            ingresses.on_change(supervised, changed, backends);
        }
        let routed = soon.clone();
        self.known.virtual_services.subscribe(move |change| {
            let [old, new] = [change.old, change.new].map(|service| service.map(|service| &service.fields));
            if old != new {
                routed.add(wake(change.how, EXPOSURE), |pending| {
                    for state in [old, new].into_iter().flatten() {
                        pending.changed.extend(state.gateways.iter().cloned());
                        pending.services.extend(state.services());
                    }
                });
            }
        });
        let routed = soon.clone();
        self.known.gateways.subscribe(move |change| {
            if change.old.map(|old| &old.fields) != change.new.map(|new| &new.fields) {
                routed.add(wake(change.how, EXPOSURE), |pending| {
                    pending.changed.insert(change.name.clone());
                    pending.gateways.insert(change.name.clone());
                });
            }
        });
        if let Some(clients) = &self.known.clients {
            clients.subscribe(move |client| {
                soon.add(Wake::high(CLIENT), |pending| pending.clients.extend([client]));
            });
        }
    }

    async fn plan(&self, name: &NamespacedName) -> Result<Plan, NoPlan> {
        plan::plan_in_turns(name, &self.rules, &*self.known, &mut Turns::with_pauses()).await
    }

    fn report(&self, name: &NamespacedName, plan: &Plan, reported: &mut ReportedState) {
        let uid = self.known.services.store().with(name, |service| service.fields.uid.to_string()).unwrap_or_default();
        let reference = Reference::new(&kinds::SERVICE, name, uid);
        for key in plan.desired.shortened.iter().filter(|key| !reported.shortened.contains(key)) {
            let selector = |key: &str| format!("{{MatchLabels:map[{key}:{}] MatchExpressions:[]}}", label::ALLOWED);
            let (usual, mutated) = (selector(key.usual()), selector(&key.effective()));
            tracing::debug!(
                usualPodLabelSelector = usual,
                mutatedPodLabelSelector = mutated,
                "Usual pod label selector contained at least one key exceeding 63 characters - it had to be mutated"
            );
            let text = format!(
                "Usual pod label selector has at least one key exceeding 63 characters and had to be mutated - consider \
                 shortening the namespace name or the service name ({usual} was mutated to {mutated})"
            );
            self.events.warning(&reference, TOO_LONG, &text);
        }
        for text in plan.failing.texts.iter().filter(|text| !reported.unusable.contains(*text)) {
            self.events.warning(&reference, UNUSABLE, &format!("{text}; the policies of this source stay unchanged"));
        }
        self.failing.enter(name, Some(FAILING).filter(|_| !plan.failing.texts.is_empty()));
        reported.shortened = plan.desired.shortened.iter().cloned().collect();
        reported.unusable = plan.failing.texts.iter().cloned().collect();
    }
}

impl Controller for NetworkPolicies {
    type Key = NamespacedName;
    type Memory = ReportedState;

    fn causes(&self) -> &'static [&'static str] {
        &["namespace", "policy", "exposure", "client"]
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.permits).about(("", "Service")).resync(self.resync);
        vec![self.known.requires().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        reported: &mut ReportedState,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let name = &reconcile.key;
        let mut plan = self.plan(name).await?;
        self.report(name, &plan, reported);
        let context = Context::new(reconcile.priority(), reconcile.deadline, name.to_string());
        let written = self.write(&context, name, &mut plan).await;

        let policies = &plan.desired.policies;
        reconcile.note(format!("{} policies, {} written now", policies.len(), written.count));
        reconcile.detail(policies.iter().take(SHOWN).map(row).collect());
        if !written.errors.is_empty() {
            return Err(Failure::new(texts::together(&written.errors, "; ")));
        }
        if !plan.failing.texts.is_empty() {
            return Err(Failure::new(texts::together(&plan.failing.texts, "; ")));
        }
        Ok(if written.is_overtaken || plan.is_incomplete {
            Outcome::Again
        } else if written.is_cache_stale {
            Outcome::After(STALE_CACHE_RETRY)
        } else if policies.is_empty() && !self.known.by_owner.contains(name) {
            Outcome::Retire
        } else {
            Outcome::Done
        })
    }
}

fn row(policy: &policy::Policy) -> (String, String) {
    (format!("{}: {}", policy.direction.as_str(), policy.name), policy.text(policy::Wording::Present))
}
