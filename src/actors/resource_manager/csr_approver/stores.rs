//! The watches of Nodes and Machines, and live reads where they do not suffice.

use std::time::Duration;

use cluster::{
    ApiError, CachedFields, Context, Index, Predicate, Watch, WatchOptions,
    evidence::{EvidenceSource, decide},
    object::NamespacedName,
};
use kit::{Failure, Supervised};

use super::{
    Approver,
    csr::Csr,
    facts::{Fact, Lookup, Machine, NodeAddresses},
    judge::{Certificate, CsrVerdict, judge},
};
use crate::{actors::resource_manager::controller_context::ControllerContext, api::kinds};

pub(super) struct Stores {
    nodes: Watch<CachedFields<NodeAddresses>>,
    machines: Option<Machines>,
}

struct Machines {
    namespace: String,
    watch: Watch<CachedFields<Machine>>,
    /// By the label `node`; Machines without it are left out.
    by_node: Index<String>,
}

impl Stores {
    /// Opens the watches; without a namespace there are no Machines. Startup does not wait for them: unknown facts are
    /// read live, and a failed read delays only its own request (spec 32 §4, T8).
    pub(super) fn open(ctx: &ControllerContext, machine_namespace: Option<String>) -> Self {
        Self {
            nodes: ctx.target.watches.open(WatchOptions::fields(kinds::NODE, NodeAddresses::of).unawaited()),
            machines: machine_namespace.map(|namespace| Machines::open(ctx, namespace)),
        }
    }

    /// Wakes the requests of a Node when its addresses or the labels of its Machines change (spec 32, "Better than
    /// upstream" 6).
    pub(super) fn wake_on_changes(&self, supervised: &Supervised<Approver>, by_node: &Index<String>) {
        let requests = by_node.clone();
        self.nodes.on_change(supervised, Predicate::fields_changed(), move |name, _| requests.get(&name.name));
        if let Some(machines) = &self.machines {
            let requests = by_node.clone();
            machines.watch.on_change(supervised, Predicate::fields_changed(), move |_, machine| {
                requests.get(&machine.fields.node)
            });
        }
    }

    /// Judges a request of this age. Live reads confirm a denial that rests on a Node or Machine, and the approval of a
    /// node agent, which may rest on the absence of a Node (spec 32 T3, "Better than upstream" 1). A denial that waits is
    /// not confirmed (spec 80 S-13). Fails if a read fails.
    pub(super) async fn judge(&self, context: &Context, csr: &Csr, age: Duration) -> Result<CsrVerdict, Failure> {
        let namespace = self.machines.as_ref().map(|machines| machines.namespace.as_str());
        let is_irreversible = |verdict: &CsrVerdict| {
            let is_denial = verdict.must_be_confirmed() && verdict.wait(age).is_none();
            is_denial || *verdict == CsrVerdict::Approved(Certificate::NodeAgent)
        };
        decide(self, context, |evidence| judge(csr, namespace, evidence), is_irreversible).await
    }

    async fn look_up(&self, context: &Context, lookup: &Lookup) -> Result<Fact, ApiError> {
        Ok(match (lookup, &self.machines) {
            (Lookup::Node(name), _) => {
                let node = self.nodes.read_live(context, &NamespacedName::new("", name)).await?;
                Fact::Node(node.map(|node| node.fields))
            }
            (Lookup::Machine(name), Some(machines)) => {
                let machine = machines.watch.read_live(context, &machines.name(name)).await?;
                Fact::Machine(machine.map(|machine| machine.fields))
            }
            (Lookup::MachinesOf(node), Some(machines)) => {
                let (mut count, labels) = (0, format!("{}={node}", Machine::NODE));
                machines.watch.list_live(context, None, Some(&labels), |_, _| count += 1).await?;
                Fact::MachinesOf(count)
            }
            (Lookup::Machine(_) | Lookup::MachinesOf(_), None) => {
                return Err(ApiError::BadRequest("no namespace of Machines is configured".to_owned()));
            }
        })
    }
}

impl EvidenceSource for Stores {
    type Question = Lookup;
    type Answer = Fact;

    fn cached(&self, lookup: &Lookup) -> Option<Fact> {
        match lookup {
            Lookup::Node(name) => {
                let node = self.nodes.known(&NamespacedName::new("", name))?;
                Some(Fact::Node(node.map(|node| node.fields)))
            }
            Lookup::Machine(name) => {
                let machines = self.machines.as_ref()?;
                let machine = machines.watch.known(&machines.name(name))?;
                Some(Fact::Machine(machine.map(|machine| machine.fields)))
            }
            Lookup::MachinesOf(node) => {
                let machines = self.machines.as_ref().filter(|machines| machines.watch.is_fresh())?;
                Some(Fact::MachinesOf(machines.by_node.count(node)))
            }
        }
    }

    async fn read(&self, context: &Context, lookup: &Lookup) -> Result<Fact, Failure> {
        self.look_up(context, lookup).await.map_err(|error| Failure::new(lookup.failed(&error)))
    }
}

impl Machines {
    fn open(ctx: &ControllerContext, namespace: String) -> Self {
        let options = WatchOptions::fields(kinds::MACHINE, Machine::of).metadata().within([namespace.as_str()]);
        let watch = ctx.source.watches.open(options.optional());
        let by_node = watch.index(|_, machine| {
            Some(&machine.fields.node).filter(|node| !node.is_empty()).cloned().into_iter().collect()
        });
        Self { namespace, watch, by_node }
    }

    fn name(&self, machine: &str) -> NamespacedName {
        NamespacedName::new(&self.namespace, machine)
    }
}
