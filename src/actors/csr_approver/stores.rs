//! The watches of Nodes and Machines, with live reads where the watches do not suffice.

use cluster::{
    CachedFields, Cluster, Context, Index, ListQuery, Resource, Watch, WatchOptions, object::NamespacedName,
};
use kit::Failure;

use super::{
    csr::Csr,
    facts::{Facts, Live, Lookup, Machine, NodeAddresses},
    judge::{Certificate, CsrVerdict, judge},
};
use crate::actors::controller_context::ControllerContext;

pub(super) struct Stores {
    target: Cluster,
    source: Cluster,
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
        let nodes = WatchOptions::new(node(), |node| CachedFields::of(node, NodeAddresses::of(node)));
        Self {
            target: ctx.target.cluster.clone(),
            source: ctx.source.cluster.clone(),
            nodes: ctx.target.watches.open(nodes.unawaited()),
            machines: machine_namespace.map(|namespace| Machines::open(ctx, namespace)),
        }
    }

    /// Judges a request by the stores, and again by live reads if the stores do not suffice: a fact is unknown or
    /// stale, the verdict is a denial that rests on a Node or Machine, or a node agent is approved because the stores
    /// know no Node (spec 32 T3, "Better than upstream" 1). Fails if a read fails.
    pub(super) async fn judge(&self, context: &Context, csr: &Csr) -> Result<CsrVerdict, Failure> {
        let namespace = self.machines.as_ref().map(|machines| machines.namespace.as_str());
        match judge(csr, namespace, self) {
            Ok(CsrVerdict::Approved(Certificate::NodeAgent)) | Err(_) => {}
            Ok(verdict) if verdict.must_be_confirmed() => {}
            Ok(verdict) => return Ok(verdict),
        }
        let mut live = Live::default();
        loop {
            match judge(csr, namespace, &live) {
                Ok(verdict) => return Ok(verdict),
                Err(lookup) => self.look(context, lookup, &mut live).await?,
            }
        }
    }

    async fn look(&self, context: &Context, lookup: Lookup, live: &mut Live) -> Result<(), Failure> {
        let failed = |error: cluster::ApiError| Failure::new(lookup.failed(&error));
        let namespace = self.machines.as_ref().map_or("", |machines| &machines.namespace);
        match &lookup {
            Lookup::Node(name) => {
                let found = self.target.find(context, &node().at("", name)).await.map_err(failed)?;
                live.learn_node(name.clone(), found.as_ref().map(NodeAddresses::of));
            }
            Lookup::Machine(name) => {
                let found = self.source.find(context, &machine().at(namespace, name)).await.map_err(failed)?;
                live.learn_machine(name.clone(), found.as_ref().map(Machine::of));
            }
            Lookup::MachinesOf(node) => {
                let selected = ListQuery {
                    label_selector: Some(format!("{}={node}", Machine::NODE)),
                    metadata_only: true,
                    ..ListQuery::default()
                };
                let page = self.source.list(context, &machine(), Some(namespace), &selected).await.map_err(failed)?;
                live.learn_machines_of(node.clone(), page.items.len());
            }
        }
        Ok(())
    }
}

impl Facts for Stores {
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup> {
        let at = NamespacedName::new("", name);
        if !self.nodes.is_fresh_for(&at) {
            return Err(Lookup::Node(name.to_owned()));
        }
        Ok(self.nodes.store().with(&at, |node| node.fields.clone()))
    }

    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup> {
        let unknown = || Lookup::Machine(name.to_owned());
        let machines = self.machines.as_ref().ok_or_else(unknown)?;
        let at = NamespacedName::new(&machines.namespace, name);
        if !machines.watch.is_fresh_for(&at) {
            return Err(unknown());
        }
        Ok(machines.watch.store().with(&at, |machine| machine.fields.clone()))
    }

    fn machines_of(&self, node: &str) -> Result<usize, Lookup> {
        match &self.machines {
            Some(machines) if machines.watch.is_fresh() => Ok(machines.by_node.get(&node.to_owned()).len()),
            Some(_) | None => Err(Lookup::MachinesOf(node.to_owned())),
        }
    }
}

impl Machines {
    fn open(ctx: &ControllerContext, namespace: String) -> Self {
        let options = WatchOptions::new(machine(), |machine| CachedFields::of(machine, Machine::of(machine)));
        let watch = ctx.source.watches.open(options.metadata().within([namespace.as_str()]).optional());
        let by_node = watch.index(|_, machine| {
            Some(&machine.fields.node).filter(|node| !node.is_empty()).cloned().into_iter().collect()
        });
        Self { namespace, watch, by_node }
    }
}

fn node() -> Resource {
    Resource::new("", "v1", "Node", "nodes", false)
}

fn machine() -> Resource {
    Resource::new("machine.sapcloud.io", "v1alpha1", "Machine", "machines", true)
}
