//! The writes of `cluster::writes`. The raw facts they rely on are in `patch`, `delete`, `create` and `update`.

use std::{rc::Rc, time::Duration};

use anyhow::{Context as _, Result, bail};
use cluster::{
    AnswerRoom, ApiError, Cluster, ClusterEnv, ClusterOptions, Context, Deleted, Fence, Lock, NoObserver, ObjectRef,
    Resource, Side, Wrote,
};
use kit::{Clock, Deadline, Priority, Random};
use serde_json::{Value, json};

use crate::{
    api::{Api, version},
    bodies::map_not_found,
    expect::{equal, holds},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [by_difference(), of_what_was_seen()].into_iter().flatten().collect()
}

struct Hand {
    cluster: Cluster,
    ctx: Context,
    at: ObjectRef,
}

impl Hand {
    fn of(api: &Api) -> Result<Self> {
        let options =
            ClusterOptions { side: Side::Target, host: "api".into(), qps: -1.0, burst: 0, namespaces: Vec::new() };
        let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse()?);
        let env = ClusterEnv { clock, random: Random::seeded(1), fence: Fence::open(), room: AnswerRoom::default() };
        Ok(Self {
            cluster: Cluster::new(api.client(), options, env, Rc::new(NoObserver)),
            ctx: Context::new(Priority::High, Deadline::after(Duration::from_secs(30)), "contract"),
            at: Resource::new("", "v1", "ConfigMap", "configmaps", true).at(api.namespace.as_str(), "a"),
        })
    }

    async fn set(&self, key: &str, value: &str) -> Result<Wrote, ApiError> {
        let change = |object: &mut Value| object["data"][key] = value.into();
        self.cluster.create_or_update(&self.ctx, &self.at, change).await
    }

    async fn patch(&self, before: &Value, value: &str, lock: Lock) -> Result<Wrote, ApiError> {
        let mut after = before.clone();
        after["data"]["v"] = value.into();
        self.cluster.patch_to(&self.ctx, &self.at, before, &after, lock).await
    }

    async fn delete(&self, seen: &Value, version: Option<&str>) -> Result<Deleted, ApiError> {
        let uid = seen["metadata"]["uid"].as_str().unwrap_or_default();
        self.cluster.delete_seen(&self.ctx, &self.at, uid, version, None).await
    }

    async fn finalizer(&self, seen: &Value, name: &str, held: bool) -> Result<Value, ApiError> {
        self.cluster.set_finalizer(&self.ctx, &self.at, seen, name, held).await
    }
}

fn conflict<T: std::fmt::Debug>(what: &str, result: Result<T, ApiError>) -> Result<()> {
    match result {
        Err(error) if error.is_conflict() => Ok(()),
        other => bail!("{what}\n    expected a conflict\n    got      {other:?}"),
    }
}

fn by_difference() -> Vec<Row> {
    vec![
        row(
            "create_or_update creates, changes what differs, and keeps the version otherwise",
            "facts §5",
            |api| async move {
                let hand = Hand::of(&api)?;

                holds(hand.cluster.find(&hand.ctx, &hand.at).await?.is_none(), "nothing yet", &json!(null))?;
                let Wrote::Created(created) = hand.set("v", "1").await? else { bail!("it was not created") };
                let Wrote::Unchanged(same) = hand.set("v", "1").await? else { bail!("it was written again") };
                let Wrote::Updated(updated) = hand.set("w", "2").await? else { bail!("it was not updated") };

                equal("version", &json!(version(&same)), &json!(version(&created)))?;
                equal("data", &updated["data"], &json!({"v": "1", "w": "2"}))?;
                let live = hand.cluster.find(&hand.ctx, &hand.at).await?.context("it exists")?;
                equal("stored", &json!(version(&live)), &json!(version(&updated)))
            },
        ),
        row("create_or_update leaves an object in deletion alone", "facts §1", |api| async move {
            let hand = Hand::of(&api)?;
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let live = api.delete(format!("{}/a", api.maps())).await?.code(200)?.body;

            let Wrote::Deleting(reported) = hand.set("v", "2").await? else { bail!("it was written") };

            equal("object", &reported, &live)
        }),
        row("create_or_update of a kind that is not served is no absence", "facts §2", |api| async move {
            let hand = Hand::of(&api)?;
            for group in ["nowhere.example.org", "apps"] {
                let at = Resource::new(group, "v9", "Thing", "things", true).at(api.namespace.as_str(), "a");

                let error = match hand.cluster.find(&hand.ctx, &at).await {
                    Err(error) => error,
                    Ok(found) => bail!("expected an error, got {found:?}"),
                };

                holds(error.is_not_served() && !error.is_not_found(), "not served", &json!(error.to_string()))?;
            }
            Ok(())
        }),
    ]
}

fn of_what_was_seen() -> Vec<Row> {
    vec![
        row("patch_to is bound to the version or the incarnation that was seen", "facts §5", |api| async move {
            let hand = Hand::of(&api)?;
            let former = api.create_map("a", json!({})).await?;
            let path = format!("{}/a", api.maps());
            hand.set("other", "1").await?;

            conflict("a later version", hand.patch(&former, "2", Lock::Version).await)?;
            let patched = hand.patch(&former, "2", Lock::Uid).await?.into_object();
            equal("data", &patched["data"], &json!({"v": "2", "other": "1"}))?;
            api.delete(&path).await?.code(200)?;
            let now = api.create_map("a", json!({})).await?;
            for lock in [Lock::Version, Lock::Uid] {
                conflict("another incarnation", hand.patch(&former, "2", lock).await)?;
            }

            equal("the later incarnation", &api.get(&path).await?.code(200)?.body, &now)
        }),
        row("delete_seen deletes exactly the object that was seen", "facts §6", |api| async move {
            let hand = Hand::of(&api)?;
            let former = api.create_map("a", json!({})).await?;
            hand.set("other", "1").await?;

            let seen = version(&former);
            conflict("a later version", hand.delete(&former, Some(&seen)).await)?;
            holds(hand.delete(&former, None).await? == Deleted::Gone, "deleted", &json!(null))?;
            holds(hand.delete(&former, None).await? == Deleted::Gone, "gone already", &json!(null))?;
            let now = api.create_map("a", json!({})).await?;
            conflict("another incarnation", hand.delete(&former, None).await)?;

            equal("the later incarnation", &api.get(format!("{}/a", api.maps())).await?.code(200)?.body, &now)
        }),
        row("set_finalizer holds an object and lets it go, and no other incarnation", "facts §3", |api| async move {
            let hand = Hand::of(&api)?;
            let former = api.create_map("a", json!({})).await?;

            let held = hand.finalizer(&former, "a.b/c", true).await?;
            equal("finalizers", &held["metadata"]["finalizers"], &json!(["a.b/c"]))?;
            conflict("a stale version", hand.finalizer(&former, "a.b/d", true).await)?;
            let Deleted::Pending(live) = hand.delete(&held, None).await? else { bail!("nothing held it") };
            hand.finalizer(&live, "a.b/c", false).await?;
            api.get(format!("{}/a", api.maps())).await?.is_status(&map_not_found("a"))?;
            api.create_map("a", json!({})).await?;

            conflict("another incarnation", hand.finalizer(&former, "a.b/c", true).await)
        }),
    ]
}
