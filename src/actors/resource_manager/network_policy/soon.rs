//! Wakes Services affected by changes of Gateways, clients or namespace labels. It collects the changes of one turn,
//! wakes each Service once, and pauses between pieces: there may be thousands of them, with long selectors.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::{Rc, Weak},
};

use cluster::object::NamespacedName;
use kit::{Wake, WeakSupervised};
use tokio::task::yield_now;

use super::{EXPOSURE, NetworkPolicies, clients::Client, known::Known, together::Moved, turns::Turns};
use crate::api::meta::selector::{Labels, Selector};

pub(super) struct Soon {
    known: Weak<Known>,
    waker: WeakSupervised<NetworkPolicies>,
    pending: RefCell<Pending>,
    is_under_way: Cell<bool>,
}

#[derive(Default)]
pub(super) struct Pending {
    /// Gateways whose references or selector changed.
    pub(super) changed: BTreeSet<NamespacedName>,
    /// Gateways whose Services to wake.
    pub(super) gateways: BTreeSet<NamespacedName>,
    /// Services to wake.
    pub(super) services: BTreeSet<NamespacedName>,
    /// Labels of namespaces: wakes the Services that select them.
    pub(super) labels: BTreeSet<Labels>,
    /// Client labels: wakes the Services that may be reached with them.
    pub(super) clients: BTreeSet<Client>,
    wake: Wake<()>,
}

impl Soon {
    pub(super) fn new(known: &Rc<Known>, waker: WeakSupervised<NetworkPolicies>) -> Rc<Self> {
        let (pending, is_under_way) = (RefCell::default(), Cell::default());
        Rc::new(Self { known: Rc::downgrade(known), waker, pending, is_under_way })
    }

    /// Adds changes; `wake` is for all Services that they affect.
    pub(super) fn add(self: &Rc<Self>, wake: Wake<()>, add: impl FnOnce(&mut Pending)) {
        let mut pending = self.pending.borrow_mut();
        add(&mut pending);
        pending.wake.merge(wake);
        if !self.is_under_way.replace(true) {
            let soon = self.clone();
            actix::spawn(async move { soon.run().await });
        }
    }

    /// Wakes the Services behind the Gateways with this selector.
    fn moved(self: &Rc<Self>, selector: &Selector) {
        if let Some(known) = self.known.upgrade() {
            let gateways = known.gateway_pods.gateways_of(selector);
            self.add(Wake::high(EXPOSURE), |pending| pending.gateways.extend(gateways));
        }
    }

    async fn run(self: &Rc<Self>) {
        loop {
            yield_now().await;
            let pending = self.pending.take();
            let Some(known) = self.known.upgrade().filter(|_| !pending.wake.is_empty()) else { break };
            self.wake_behind(&known, pending).await;
        }
        self.is_under_way.set(false);
    }

    async fn wake_behind(self: &Rc<Self>, known: &Known, pending: Pending) {
        let (mut turns, soon) = (Turns::with_pauses(), self.clone());
        let moved: Moved = Rc::new(move |selector| soon.moved(selector));
        for gateway in pending.changed {
            known.gateway_pods.set(&gateway, known.needed_selector(&gateway), &moved);
            turns.piece().await;
        }
        let (mut services, mut routes) = (pending.services, BTreeSet::new());
        for gateway in pending.gateways {
            for name in known.by_gateway.get(&gateway) {
                if routes.insert(name.clone()) {
                    let to = known.virtual_services.store().with(&name, |it| it.fields.services());
                    services.extend(to.into_iter().flatten());
                }
                turns.piece().await;
            }
            turns.piece().await;
        }
        for labels in &pending.labels {
            for service in known.selecting.get(&()) {
                if known.selects(&service, labels) {
                    services.insert(service);
                }
                turns.piece().await;
            }
        }
        for client in &pending.clients {
            services.extend(known.by_own_client.iter().flat_map(|index| index.get(client)));
            let (foreign, labels) = known.with_foreign_client(client).unwrap_or_default();
            for service in foreign {
                if known.selects(&service, &labels) {
                    services.insert(service);
                }
                turns.piece().await;
            }
            turns.piece().await;
        }
        for service in services {
            self.waker.wake(&service, pending.wake.clone());
            turns.piece().await;
        }
    }
}
