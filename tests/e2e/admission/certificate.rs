//! The serving certificate is renewed while the API server calls.

use std::cell::Cell;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use gardener_resource_manager::webhooks::registration::RegistrationEntry;
use serde_json::{Value, json};

use super::{CONFIGURATIONS, LIMIT, NAMESPACE, Probe, Rig, core, dry, pod};
use crate::support::{Authority, eventually};

const AT_ONCE: usize = 16;
const PODS: usize = 100;

/// The field of Pods that the webhook sets, and its value.
const MARK: (&str, &str) = ("/spec/securityContext/seccompProfile/type", "RuntimeDefault");
/// Label of the Pods that show which registration is in force: each registration excludes the next one's number.
const PROBE: &str = "probe";

struct Load<'a> {
    rig: &'a Rig,
    created: Cell<usize>,
    is_over: Cell<bool>,
}

/// spec 70 §11, scenario 25; spec 50 §2.9
#[tokio::test]
async fn certificate_and_authority_rotation_fails_no_pod() -> Result<()> {
    let rig = Rig::start().await?;
    let first = rig.grm.authority();
    let next = &Authority::create(rig.grm.folder(), "next-authority")?;
    rig.admin.create(CONFIGURATIONS, &numbered(&rig, 0, &[first])?).await?;
    rig.in_force(probe(0)).await?;
    let load = Load { rig: &rig, created: Cell::new(0), is_over: Cell::new(false) };
    // Whose certificate is presented, and whom the API server trusts after that.
    let changes: [(&Authority, &[&Authority]); 6] = [
        (first, &[first]),
        (first, &[first]),
        (first, &[first, next]),
        (next, &[first, next]),
        (next, &[next]),
        (next, &[next]),
    ];

    let changing = async {
        for (number, (authority, trusted)) in (1..).zip(changes) {
            load.change(number, authority, trusted).await.with_context(|| format!("change {number}"))?;
        }
        load.is_over.set(true);
        Ok(())
    };
    tokio::try_join!(changing, load.run())?;

    ensure!(rig.grm.certificate(first).await.is_err(), "a certificate of the first authority is presented");
    Ok(())
}

/// A registration whose CA bundle has another text than the previous one, which makes the API server reconnect.
fn numbered(rig: &Rig, number: usize, trusted: &[&Authority]) -> Result<Value> {
    let bundle: Vec<_> = trusted.iter().map(|authority| authority.pem()).collect::<Result<_>>()?;
    let mut registration =
        rig.registration(&[RegistrationEntry::SeccompProfile], &format!("# {number}\n{}", bundle.concat()));
    let expressions = registration["webhooks"][0]["objectSelector"]["matchExpressions"].as_array_mut();
    let next = json!({ "key": PROBE, "operator": "NotIn", "values": [(number + 1).to_string()] });
    expressions.context("the entry selects by expressions")?.push(next);
    Ok(registration)
}

fn probe(number: usize) -> Probe {
    let mut object = pod("probe");
    object["metadata"]["labels"] = json!({ PROBE: number.to_string() });
    Probe { collection: core(NAMESPACE, "pods"), object, pointer: MARK.0, expected: json!(MARK.1) }
}

impl Load<'_> {
    async fn run(&self) -> Result<()> {
        try_join_all((0..AT_ONCE).map(|creator| self.create(creator))).await.map(drop)
    }

    async fn create(&self, creator: usize) -> Result<()> {
        let (pods, object) = (dry(&core(NAMESPACE, "pods")), pod(&format!("app-{creator}")));
        while !self.is_over.get() {
            let created = self.rig.admin.create(&pods, &object).await.context("a Pod under load")?;
            let found = created.pointer(MARK.0).and_then(Value::as_str);
            ensure!(found == Some(MARK.1), "{} of a Pod under load is {found:?}", MARK.0);
            self.created.set(self.created.get() + 1);
        }
        Ok(())
    }

    /// Gives the program a new certificate, waits until it presents that, and makes the API server reconnect.
    async fn change(&self, number: usize, authority: &Authority, trusted: &[&Authority]) -> Result<()> {
        let Rig { admin, grm, .. } = self.rig;
        let issued = grm.renew_certificate(authority)?;
        eventually("the new certificate is presented", LIMIT, async || {
            ensure!(grm.certificate(authority).await? == issued, "another certificate is presented");
            Ok(())
        })
        .await?;
        self.more().await?;

        let registration = numbered(self.rig, number, trusted)?;
        let name = registration["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!({ "webhooks": registration["webhooks"] });
        admin.merge(&format!("{CONFIGURATIONS}/{name}"), &patch).await?;
        self.rig.in_force(probe(number)).await?;
        self.more().await
    }

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
