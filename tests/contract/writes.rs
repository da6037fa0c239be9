//! The writes of a watch. The raw facts they rely on are in `patch`, `delete`, `create` and `update`. The watch is never
//! started: its writes read the server, and nothing enters the store.

use std::{rc::Rc, time::Duration};

use anyhow::{Context as _, Result, bail};
use cluster::{
    AnswerRoom, ApiError, CachedFields, Cluster, ClusterEnv, ClusterOptions, Context, Fence, Lock, NoObserver,
    Resource, Watch, WatchOptions, Watches, Wrote, object::NamespacedName,
};
use gardener_resource_manager::api::{kinds, resources::side::Side};
use kit::{Clock, Cpu, Deadline, Env, Fatal, Priority, Random, StatusRegistry, Unobserved};
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
    watch: Watch<CachedFields<()>>,
    ctx: Context,
    name: NamespacedName,
}

impl Hand {
    fn of(api: &Api) -> Result<Self> {
        let options = ClusterOptions {
            label: Side::Target.label(),
            host: "api".into(),
            qps: -1.0,
            burst: 0,
            namespaces: Vec::new(),
        };
        let (clock, random) = (Clock::starting_at("2030-01-01T00:00:00Z".parse()?), Random::seeded(1));
        let env = Env {
            clock: clock.clone(),
            random: random.clone(),
            status_registry: StatusRegistry::default(),
            cpu: Cpu::inline(),
            observers: Rc::new(Unobserved),
            fatal: Fatal::default(),
            sync_timeout: Duration::from_secs(30),
        };
        let cluster_env = ClusterEnv { clock, random, fence: Fence::open(), room: AnswerRoom::default() };
        let cluster = Cluster::new(api.client(), options, cluster_env, Rc::new(NoObserver));
        let options = WatchOptions::new(kinds::CONFIG_MAP, |object| CachedFields::of(object, ()));
        Ok(Self {
            watch: Watches::new(&cluster, &env).open(options),
            cluster,
            ctx: Context::new(Priority::High, Deadline::after(Duration::from_secs(30)), "contract"),
            name: NamespacedName::new(api.namespace.as_str(), "a"),
        })
    }

    async fn live(&self) -> Result<Option<Value>, ApiError> {
        self.watch.read_object(&self.ctx, &self.name).await
    }

    async fn set(&self, key: &str, value: &str) -> Result<Wrote, ApiError> {
        let change = |object: &mut Value| object["data"][key] = value.into();
        self.watch.ensure(&self.ctx, &self.name, Lock::Version, change).await
    }

    async fn patch(&self, seen: &Value, value: &str, lock: Lock) -> Result<Wrote, ApiError> {
        let wants = |object: &Value| (object["data"]["v"] != value).then(|| json!({"data": {"v": value}}));
        self.watch.patch(&self.ctx, seen, lock, wants).await
    }

    async fn finalizer(&self, seen: &Value, name: &str, held: bool) -> Result<Wrote, ApiError> {
        self.watch.set_finalizer(&self.ctx, seen, name, held).await
    }
}

fn gone(what: &str, wrote: &Wrote) -> Result<()> {
    if *wrote == Wrote::Gone { Ok(()) } else { bail!("{what}\n    expected that it is gone\n    got      {wrote:?}") }
}

fn by_difference() -> Vec<Row> {
    vec![
        row("ensure creates, changes what differs, and keeps the version otherwise", "facts §5", |api| async move {
            let hand = Hand::of(&api)?;

            holds(hand.live().await?.is_none(), "nothing yet", &json!(null))?;
            let Wrote::Created(created) = hand.set("v", "1").await? else { bail!("it was not created") };
            let Wrote::Unchanged(same) = hand.set("v", "1").await? else { bail!("it was written again") };
            let Wrote::Updated(updated) = hand.set("w", "2").await? else { bail!("it was not updated") };

            equal("version", &json!(version(&same)), &json!(version(&created)))?;
            equal("data", &updated["data"], &json!({"v": "1", "w": "2"}))?;
            let live = hand.live().await?.context("it exists")?;
            equal("stored", &json!(version(&live)), &json!(version(&updated)))
        }),
        row("ensure leaves an object in deletion alone", "facts §1", |api| async move {
            let hand = Hand::of(&api)?;
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let live = api.delete(format!("{}/a", api.maps())).await?.code(200)?.body;

            let Wrote::Deleting(reported) = hand.set("v", "2").await? else { bail!("it was written") };

            equal("object", &reported, &live)
        }),
        row("kind that is not served is no absence", "facts §2", |api| async move {
            let hand = Hand::of(&api)?;
            for group in ["nowhere.example.org", "apps"] {
                let at = Resource::new(group, "v9", "Thing", "things", true).named(&hand.name);

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
        row(
            "patch on a former version decides again, and another incarnation is left alone",
            "facts §5",
            |api| async move {
                let hand = Hand::of(&api)?;
                let former = api.create_map("a", json!({})).await?;
                let path = format!("{}/a", api.maps());
                hand.set("other", "1").await?;

                for (lock, value) in [(Lock::Version, "2"), (Lock::Uid, "3")] {
                    let patched = hand.patch(&former, value, lock).await?.into_object().context("it exists")?;
                    equal("data", &patched["data"], &json!({"v": value, "other": "1"}))?;
                }
                api.delete(&path).await?.code(200)?;
                let now = api.create_map("a", json!({})).await?;
                for lock in [Lock::Version, Lock::Uid] {
                    gone("another incarnation", &hand.patch(&former, "2", lock).await?)?;
                }

                equal("the later incarnation", &api.get(&path).await?.code(200)?.body, &now)
            },
        ),
        row("deletion deletes exactly the object that was seen", "facts §6", |api| async move {
            let hand = Hand::of(&api)?;
            let former = api.create_map("a", json!({})).await?;
            hand.set("other", "1").await?;

            let is_former = |object: &Value| object["data"]["other"].is_null();
            let kept = hand.watch.delete_if(&hand.ctx, &former, None, is_former).await?;
            holds(matches!(kept, Wrote::Unchanged(_)), "a later version", &json!(null))?;
            gone("deleted", &hand.watch.delete(&hand.ctx, &former, None).await?)?;
            gone("gone already", &hand.watch.delete(&hand.ctx, &former, None).await?)?;
            let now = api.create_map("a", json!({})).await?;
            gone("another incarnation", &hand.watch.delete(&hand.ctx, &former, None).await?)?;

            equal("the later incarnation", &api.get(format!("{}/a", api.maps())).await?.code(200)?.body, &now)
        }),
        row("set_finalizer holds an object and lets it go, and no other incarnation", "facts §3", |api| async move {
            let hand = Hand::of(&api)?;
            let former = api.create_map("a", json!({})).await?;

            let held = hand.finalizer(&former, "a.b/c", true).await?.into_object().context("it exists")?;
            equal("finalizers", &held["metadata"]["finalizers"], &json!(["a.b/c"]))?;
            let more = hand.finalizer(&former, "a.b/d", true).await?.into_object().context("it exists")?;
            equal("finalizers", &more["metadata"]["finalizers"], &json!(["a.b/c", "a.b/d"]))?;
            let deleting = hand.watch.delete(&hand.ctx, &more, None).await?;
            let Wrote::Deleting(live) = deleting else { bail!("nothing held it") };
            hand.finalizer(&live, "a.b/c", false).await?;
            gone("the last one", &hand.finalizer(&live, "a.b/d", false).await?)?;
            api.get(format!("{}/a", api.maps())).await?.is_status(&map_not_found("a"))?;
            api.create_map("a", json!({})).await?;

            gone("another incarnation", &hand.finalizer(&former, "a.b/c", true).await?)
        }),
    ]
}
