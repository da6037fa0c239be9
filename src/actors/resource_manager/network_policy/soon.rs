//! Wakes Services affected by changes of Gateways, clients or namespace labels. It collects the changes of one turn,
//! wakes each Service once, and pauses between pieces: there may be thousands of them, with long selectors.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeSet,
    rc::{Rc, Weak},
};

use cluster::object::NamespacedName;
use kit::Wake;
use tokio::task::yield_now;

use super::{clients::Client, gateway_pods::GatewayPods, known::Known, turns::Turns};
use crate::api::meta::selector::Labels;

type Waker = Box<dyn Fn(&NamespacedName, Wake<()>)>;

pub(super) struct Soon {
    known: Weak<Known>,
    pods: OnceCell<Weak<GatewayPods>>,
    wake: Waker,
    pending: RefCell<Pending>,
    is_under_way: Cell<bool>,
}

#[derive(Default)]
struct Pending {
    /// Gateways whose references or pods changed.
    changed: BTreeSet<NamespacedName>,
    /// Gateways whose Services to wake.
    gateways: BTreeSet<NamespacedName>,
    services: BTreeSet<NamespacedName>,
    labels: BTreeSet<Labels>,
    clients: BTreeSet<Client>,
    wake: Wake<()>,
}

impl Soon {
    pub(super) fn new(known: &Rc<Known>, wake: impl Fn(&NamespacedName, Wake<()>) + 'static) -> Rc<Self> {
        let (known, wake) = (Rc::downgrade(known), Box::new(wake));
        let (pods, pending, is_under_way) = (OnceCell::new(), RefCell::default(), Cell::default());
        Rc::new(Self { known, pods, wake, pending, is_under_way })
    }

    pub(super) fn follow_in(&self, pods: &Rc<GatewayPods>) {
        // Set only here.
        let _ = self.pods.set(Rc::downgrade(pods));
    }

    pub(super) fn changed<'g>(self: &Rc<Self>, gateways: impl IntoIterator<Item = &'g NamespacedName>, wake: Wake<()>) {
        self.pending.borrow_mut().changed.extend(gateways.into_iter().cloned());
        self.add(wake);
    }

    pub(super) fn services(self: &Rc<Self>, services: impl IntoIterator<Item = NamespacedName>, wake: Wake<()>) {
        self.pending.borrow_mut().services.extend(services);
        self.add(wake);
    }

    /// Wakes the Services behind these Gateways.
    pub(super) fn gateways(self: &Rc<Self>, gateways: impl IntoIterator<Item = NamespacedName>, wake: Wake<()>) {
        self.pending.borrow_mut().gateways.extend(gateways);
        self.add(wake);
    }

    /// Wakes the Services that select a namespace with these labels.
    pub(super) fn selecting<'l>(self: &Rc<Self>, labels: impl IntoIterator<Item = &'l Labels>, wake: Wake<()>) {
        self.pending.borrow_mut().labels.extend(labels.into_iter().cloned());
        self.add(wake);
    }

    pub(super) fn client(self: &Rc<Self>, client: Client, wake: Wake<()>) {
        self.pending.borrow_mut().clients.insert(client);
        self.add(wake);
    }

    fn add(self: &Rc<Self>, wake: Wake<()>) {
        self.pending.borrow_mut().wake.merge(wake);
        if !self.is_under_way.replace(true) {
            let soon = self.clone();
            actix::spawn(async move { soon.run().await });
        }
    }

    async fn run(&self) {
        loop {
            yield_now().await;
            let pending = self.pending.take();
            let Some(known) = self.known.upgrade().filter(|_| !pending.wake.is_empty()) else { break };
            self.wake_behind(&known, pending).await;
        }
        self.is_under_way.set(false);
    }

    async fn wake_behind(&self, known: &Known, pending: Pending) {
        let mut turns = Turns::new(yield_now);
        for gateway in pending.changed {
            if let Some(pods) = self.pods.get().and_then(Weak::upgrade) {
                pods.set(&gateway, known.needed_selector(&gateway));
            }
            turns.piece().await;
        }
        let (mut services, mut routes) = (pending.services, BTreeSet::new());
        for gateway in pending.gateways {
            for name in known.routes_by(&gateway) {
                if routes.insert(name.clone()) {
                    services.extend(known.services_of(&name));
                }
                turns.piece().await;
            }
            turns.piece().await;
        }
        for labels in &pending.labels {
            for service in known.selecting() {
                if known.selects(&service, labels) {
                    services.insert(service);
                }
                turns.piece().await;
            }
        }
        for client in &pending.clients {
            services.extend(known.with_client(client));
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
            (self.wake)(&service, pending.wake.clone());
            turns.piece().await;
        }
    }
}
