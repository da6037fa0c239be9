//! The serving certificate is renewed while the API server calls.

use std::cell::Cell;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use gardener_resource_manager::webhooks::registration::Entry;
use serde_json::{Value, json};

use super::{CONFIGURATIONS, LIMIT, NAMESPACE, Probe, Rig, core, dry, pod};
use crate::support::{Authority, eventually};

/// Pods that are created at once. API servers keep 25 idle connections to a host: with more requests than that they connect
/// again and again.
const AT_ONCE: usize = 40;
/// So many Pods are created between two changes.
const PODS: usize = 200;
const RENEWALS: usize = 4;

/// Webhooks, and what they do to a Pod. Each change of the registration adds one: it is in force when Pods show it.
const MARKS: [(Entry, &str, &str); 3] = [
    (Entry::SeccompProfile, "/spec/securityContext/seccompProfile/type", "RuntimeDefault"),
    (Entry::PodSchedulerName, "/spec/schedulerName", "bin-packing-scheduler"),
    (Entry::ProjectedTokenMount, "/spec/volumes/0/name", "kube-api-access-gardener"),
];

/// Pods that are created all the time.
struct Load<'a> {
    rig: &'a Rig,
    created: Cell<usize>,
    /// So many marks must be on each new Pod.
    marks: Cell<usize>,
    is_over: Cell<bool>,
}

/// spec 70 §11, scenario 25; spec 50 §2.9
#[tokio::test]
async fn no_pod_fails_while_certificates_and_authorities_are_replaced() -> Result<()> {
    let rig = Rig::start().await?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": NAMESPACE, "name": "app" },
        "automountServiceAccountToken": false
    });
    rig.admin.create(&core(NAMESPACE, "serviceaccounts"), &account).await?;
    let first = rig.grm.authority();
    let next = Authority::create(rig.grm.folder(), "next-authority")?;
    rig.register(&[MARKS[0].0], probe(&core(NAMESPACE, "pods"), 1)).await?;
    let load = Load { rig: &rig, created: Cell::new(0), marks: Cell::new(1), is_over: Cell::new(false) };

    let replacing = async {
        for _ in 0..RENEWALS {
            load.renew(first).await?;
        }
        load.trust(&[first, &next], 2).await?;
        load.renew(&next).await?;
        load.trust(&[&next], 3).await?;
        load.renew(&next).await?;
        load.is_over.set(true);
        Ok(())
    };
    tokio::try_join!(replacing, load.run())?;

    ensure!(rig.grm.certificate(first).await.is_err(), "a certificate of the first authority is presented");
    Ok(())
}

/// Shows that the first `marks` webhooks are called.
fn probe(pods: &str, marks: usize) -> Probe<'_> {
    let (_, pointer, expected) = MARKS[marks - 1];
    Probe { collection: pods, object: pod("probe"), pointer, expected: json!(expected) }
}

// === impl Load ===

impl Load<'_> {
    /// Creates Pods until it is over; the first failure ends it.
    async fn run(&self) -> Result<()> {
        try_join_all((0..AT_ONCE).map(|creator| self.create(creator))).await.map(drop)
    }

    async fn create(&self, creator: usize) -> Result<()> {
        let (pods, object) = (dry(&core(NAMESPACE, "pods")), pod(&format!("app-{creator}")));
        while !self.is_over.get() {
            let marks = self.marks.get();
            let created = self.rig.admin.create(&pods, &object).await.context("a Pod under load")?;
            for (_, pointer, expected) in &MARKS[..marks] {
                let found = created.pointer(pointer).and_then(Value::as_str);
                ensure!(found == Some(expected), "{pointer} of a Pod under load is {found:?}");
            }
            self.created.set(self.created.get() + 1);
        }
        Ok(())
    }

    /// Lets the program have a new certificate, until it presents that.
    async fn renew(&self, authority: &Authority) -> Result<()> {
        let issued = self.rig.grm.renew_certificate(authority)?;
        eventually("the new certificate is presented", LIMIT, async || {
            ensure!(self.rig.grm.certificate(authority).await? == issued, "it is another one");
            Ok(())
        })
        .await?;
        self.more().await
    }

    /// Lets the API server trust these authorities, and call one more webhook.
    async fn trust(&self, authorities: &[&Authority], marks: usize) -> Result<()> {
        let entries: Vec<_> = MARKS[..marks].iter().map(|(entry, ..)| *entry).collect();
        let registration = self.rig.registration(&entries, authorities)?;
        let name = registration["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({ "webhooks": registration["webhooks"] });
        self.rig.admin.merge(&format!("{CONFIGURATIONS}/{name}"), &patch).await?;
        self.rig.in_force(probe(&core(NAMESPACE, "pods"), marks)).await?;
        self.marks.set(marks);
        self.more().await
    }

    /// Waits until more Pods are created.
    async fn more(&self) -> Result<()> {
        let goal = self.created.get() + PODS;
        eventually("Pods are created", LIMIT, async || {
            let created = self.created.get();
            ensure!(created >= goal, "{created} of {goal}");
            Ok(())
        })
        .await
    }
}
