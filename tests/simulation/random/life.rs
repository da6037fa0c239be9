//! One life: ManagedResources that share and exchange objects, users who interfere, programs that end.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use serde_json::{Value, json};
use sim::{RequestInfo, WatchEnd};

use super::{
    beside::Beside,
    certificates::Registrar,
    check,
    disturbances::{Weather, calm, disturb, expire, rest},
    items::{self, Form, ITEMS, Item, TWINS, Want},
    runner::Diary,
    watchman::Watchman,
};
use crate::world::{NAMESPACE, World};

pub(super) const BUNDLES: [&str; 4] = ["b0", "b1", "b2", "b3"];
const STEPS: usize = 10;

const OPERATION: &str = "gardener.cloud/operation";

#[derive(Clone, Debug, Default)]
pub(super) struct Bundle {
    pub(super) wants: BTreeMap<Item, Want>,
    pub(super) away: bool,
    ignored: bool,
    asked: bool,
    broken: bool,
    keeps_objects: bool,
}

pub(super) struct Life {
    pub(super) world: Rc<World>,
    pub(super) watchman: Watchman,
    pub(super) registrar: Registrar,
    pub(super) beside: Beside,
    /// By name. Absent ones do not exist, or are being deleted.
    pub(super) bundles: BTreeMap<&'static str, Bundle>,
    /// The user of the program that leads.
    pub(super) leader: String,
    deposed: Vec<String>,
    /// Items with a finalizer that no user removes yet.
    pub(super) stuck: BTreeSet<Item>,
    pub(super) random: fastrand::Rng,
    diary: Diary,
    step: usize,
}

pub(super) async fn live(world: Rc<World>, seed: u64, diary: Diary) {
    let weather = Weather::of(seed);
    let watchman = Watchman::new(&world.sim, weather.lossy);
    let registrar = Registrar::new(&world, !seed.is_multiple_of(3), weather.is_calm(), weather.lossy);
    let beside = Beside::new(&world, seed, weather.is_calm(), weather.lossy);
    world.managed_resource().always_update = seed % 7 == 3;
    let mut life = Life {
        world: world.clone(),
        watchman: watchman.clone(),
        registrar: registrar.clone(),
        beside: beside.clone(),
        bundles: BTreeMap::new(),
        leader: "grm".into(),
        deposed: Vec::new(),
        stuck: BTreeSet::new(),
        random: fastrand::Rng::with_seed(seed),
        diary,
        step: 0,
    };
    let see = {
        let (watchman, registrar, beside) = (watchman.clone(), registrar.clone(), beside.clone());
        move |info: &RequestInfo| {
            watchman.see(info);
            registrar.see(info);
            beside.see(info);
        }
    };
    let seen = see.clone();
    disturb(&world.sim, weather, seed, move |info| {
        seen(info);
        None
    });
    let violations = || [watchman.violations(), registrar.violations(), beside.violations()].concat();
    world.start().await;
    for step in 0..STEPS {
        life.step = step;
        life.note(beside.act());
        life.act().await;
        life.revive().await;
        tokio::time::sleep(rest(&mut life.random)).await;
        life.revive().await;
        assert_eq!(violations(), [""; 0], "{:#?}", trace(&world));
    }
    calm(&world.sim, weather, see);
    life.end_disturbances().await;
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(violations(), [""; 0], "{:#?}", trace(&world));
    check::end(&life).await;
    assert_eq!(violations(), [""; 0], "{:#?}", trace(&world));
    world.sim.clear_faults();
    world.stop_as(&life.leader).await;
}

pub(super) fn trace(world: &World) -> Vec<String> {
    let requests = world.sim.requests().into_iter().rev().filter(|request| request.info.user.starts_with("grm"));
    let line =
        |r: sim::Recorded| format!("{} {} {}{} {:?}", r.info.number, r.info.user, r.info.verb, r.info.path, r.code);
    let mut lines: Vec<_> = requests.take(50).map(line).collect();
    lines.reverse();
    lines
}

impl Life {
    pub(super) fn note(&self, text: String) {
        self.diary.note(text);
    }

    /// Restarts the leader if a fault crashed it, and ends the previous leader.
    async fn revive(&mut self) {
        if self.world.is_crashed_as(&self.leader) {
            self.world.crash_as(&self.leader).await;
            self.start_leader().await;
        }
    }

    async fn start_leader(&self) {
        let config = self.world.config.borrow().clone();
        self.world.start_as(&self.leader, config).await;
    }

    pub(super) fn any_item(&mut self) -> Item {
        ITEMS[self.random.usize(0..ITEMS.len())]
    }

    fn any_want(&mut self, bundle: &str) -> Want {
        let form = match self.random.u8(0..24) {
            0 => Form::Kept,
            1 => Form::CreatedOnce,
            2 => Form::Released,
            _ => Form::Plain,
        };
        Want { value: format!("{bundle}-{}", self.step), form }
    }

    async fn act(&mut self) {
        let bundle = BUNDLES[self.random.usize(0..BUNDLES.len())];
        for old in std::mem::take(&mut self.deposed) {
            self.world.stop_as(&old).await;
        }
        match self.random.u8(0..48) {
            0..=9 => self.change_bundle(bundle).await,
            10..=14 => self.move_item(bundle).await,
            15 | 16 => self.delete_bundle(bundle).await,
            17 => self.change_class(bundle).await,
            18 | 19 => self.ignore(bundle).await,
            20 | 21 => self.break_secret(bundle),
            22 | 23 => self.delete_live().await,
            24 | 25 => self.edit_live(),
            26 | 27 => self.hold_live().await,
            28 | 29 => self.restart().await,
            30 => self.lose_lease().await,
            31 => {
                let seconds = self.random.i64(-40_000..40_000);
                self.note(format!("the clock jumps by {seconds} s"));
                self.world.universe.env.clock.jump(jiff::SignedDuration::from_secs(seconds));
                self.beside.jump(seconds);
            }
            32 => {
                self.note("the history is lost".into());
                self.expire();
            }
            33 => {
                self.note("all watches break".into());
                self.registrar.watches_broke();
                self.world.sim.break_watches(WatchEnd::Disconnect);
            }
            34..=37 => self.replace_live(),
            38 | 39 => self.create_anew().await,
            _ => {
                for _ in 0..self.random.u8(1..4) {
                    let text = self.registrar.act(&mut self.random, self.step);
                    self.note(text);
                }
            }
        }
    }

    async fn change_bundle(&mut self, name: &'static str) {
        let mut wants = self.bundles.get(name).map(|bundle| bundle.wants.clone()).unwrap_or_default();
        if wants.is_empty() || self.random.u8(0..3) == 0 {
            wants.clear();
            for item in ITEMS {
                if self.random.u8(0..10) < 4 {
                    wants.insert(item, self.any_want(name));
                }
            }
        } else {
            let item = self.any_item();
            if wants.remove(&item).is_none() || self.random.bool() {
                let want = self.any_want(name);
                wants.insert(item, want);
            }
        }
        self.set(name, wants).await;
    }

    async fn set(&mut self, name: &'static str, mut wants: BTreeMap<Item, Want>) {
        let before = self.bundles.get(name).map(|bundle| bundle.wants.clone()).unwrap_or_default();
        let mut twins = TWINS.into_iter().filter(|twin| wants.contains_key(twin));
        let twin = twins.clone().find(|twin| !before.contains_key(twin)).or_else(|| twins.next());
        wants.retain(|item, _| !TWINS.contains(item) || Some(*item) == twin);
        if TWINS.iter().any(|other| before.contains_key(other) && Some(*other) != twin) {
            // An equivalent object is not deleted for it, and belongs to no ManagedResource any more.
            self.watchman.keeps(TWINS);
        }
        self.note(format!("{name} wants {wants:?}"));
        if !self.bundles.contains_key(name) {
            self.wait_until_gone(name).await;
            self.world.bundle_with(name, &manifests(&wants), json!({ "equivalences": items::equivalences() }));
        } else if !self.bundles[name].broken {
            self.world.secret(name, &manifests(&wants));
        }
        self.bundles.entry(name).or_default().wants = wants;
        self.report(name);
    }

    fn report(&self, name: &'static str) {
        let forms = |bundle: &Bundle| bundle.wants.iter().map(|(item, want)| (*item, want.form)).collect();
        let held = self.bundles.get(name).filter(|bundle| !bundle.away).map(forms).unwrap_or_default();
        self.watchman.holds(name, held);
    }

    /// A former one of the same name may still be in deletion, and the event of its end may be lost.
    async fn wait_until_gone(&mut self, name: &str) {
        for second in 0..1000 {
            if self.world.mr(name).is_none() {
                return;
            }
            if second % 60 == 30 {
                self.free_stuck().await;
                self.expire();
            }
            self.revive().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("the deletion of a ManagedResource ends: {:#?}\n{:#?}", self.world.mr(name), trace(&self.world));
    }

    async fn delete_bundle(&mut self, name: &'static str) {
        let Some(bundle) = self.bundles.remove(name) else { return };
        self.note(format!("{name} is deleted"));
        if bundle.keeps_objects {
            self.watchman.keeps(bundle.wants.into_keys());
        }
        self.report(name);
        self.world.delete_bundle(name).await;
    }

    async fn change_class(&mut self, name: &'static str) {
        let Some(bundle) = self.bundles.get_mut(name).filter(|bundle| !bundle.keeps_objects) else { return };
        bundle.away = !bundle.away;
        let class = if bundle.away { json!("other") } else { Value::Null };
        self.note(format!("{name} is of class {class}"));
        self.report(name);
        self.world.patch_bundle(name, json!({ "spec": { "class": class } })).await;
    }

    async fn ignore(&mut self, name: &'static str) {
        let Some(bundle) = self.bundles.get_mut(name) else { return };
        if self.random.u8(0..6) == 0 {
            bundle.keeps_objects = true;
            self.watchman.keeps(ITEMS);
            self.note(format!("{name} keeps its objects"));
            return self.world.patch_bundle(name, json!({ "spec": { "keepObjects": true } })).await;
        }
        bundle.ignored = !bundle.ignored;
        let asks = bundle.ignored && self.random.bool();
        let is_asked = std::mem::replace(&mut bundle.asked, asks);
        if !bundle.ignored {
            return self.end_ignoring(name, is_asked).await;
        }
        self.note(format!("{name} is ignored; a user requests a run: {asks}"));
        self.annotate(name, json!({ "resources.gardener.cloud/ignore": "true" })).await;
        if asks {
            self.annotate(name, json!({ OPERATION: "reconcile" })).await;
        }
    }

    async fn annotate(&self, name: &str, annotations: Value) {
        self.world.patch_bundle(name, json!({ "metadata": { "annotations": annotations } })).await;
    }

    /// A run that was requested meanwhile is still due (spec 10 §5.5).
    async fn end_ignoring(&self, name: &str, is_asked: bool) {
        self.note(format!("{name} is ignored no longer"));
        let asked = self.world.mr(name).unwrap_or_default()["metadata"]["annotations"][OPERATION] == "reconcile";
        assert!(!is_asked || asked, "the requested run of {name} is still due: {:#?}", trace(&self.world));
        self.annotate(name, json!({ "resources.gardener.cloud/ignore": null })).await;
    }

    fn break_secret(&mut self, name: &'static str) {
        let how = self.random.u8(0..4);
        let Some(bundle) = self.bundles.get_mut(name) else { return };
        bundle.broken = !bundle.broken;
        let manifests = manifests(&bundle.wants);
        if !bundle.broken {
            self.note(format!("the Secret of {name} is whole again"));
            return self.world.secret(name, &manifests);
        }
        self.note(format!("the Secret of {name} is broken, kind {how}"));
        match how {
            0 => drop(self.world.sim.remove("secrets", NAMESPACE, name)),
            1 => self.world.secret_data(name, &[("objects.yaml", b"{\"a\": [1, 2")]),
            2 => self.world.secret_data(name, &[("objects.yaml.br", &[0xff, 0x13, 0x37])]),
            _ => {
                // Some of it can be read.
                let text = format!("{}---\n- no map\n", crate::world::stream(&manifests[..manifests.len() / 2]));
                self.world.secret_data(name, &[("objects.yaml", text.as_bytes())]);
            }
        }
    }

    async fn move_item(&mut self, from: &'static str) {
        let to = BUNDLES[self.random.usize(0..BUNDLES.len())];
        let Some(giver) = self.bundles.get(from).filter(|_| from != to) else { return };
        let plain: Vec<Item> =
            giver.wants.iter().filter(|(_, want)| want.form != Form::Released).map(|(item, _)| *item).collect();
        if plain.is_empty() {
            return;
        }
        let item = plain[self.random.usize(0..plain.len())];
        let mut given = giver.wants.clone();
        if self.random.bool() {
            given.insert(item, Want { form: Form::Released, ..given[&item].clone() });
        } else {
            given.remove(&item);
        }
        let mut taken = self.bundles.get(to).map(|bundle| bundle.wants.clone()).unwrap_or_default();
        taken.insert(item, Want { value: format!("{to}-{}", self.step), form: Form::Plain });
        self.note(format!("{item:?} moves from {from} to {to}"));
        if self.random.bool() {
            self.set(to, taken).await;
            let pause = [0, 10, 3_000][self.random.usize(0..3)];
            tokio::time::sleep(Duration::from_millis(pause)).await;
            self.set(from, given).await;
        } else {
            self.set(from, given).await;
            self.set(to, taken).await;
        }
    }

    async fn restart(&mut self) {
        if self.random.bool() {
            self.note("the program is restarted".into());
            self.world.stop_as(&self.leader).await;
        } else {
            self.note("the program is killed".into());
            self.world.crash_as(&self.leader).await;
        }
        self.start_leader().await;
    }

    /// Another replica leads now; the previous leader continues for a while.
    async fn lose_lease(&mut self) {
        let next = format!("grm-{}", self.step);
        self.note(format!("{next} leads instead of {}", self.leader));
        self.world.depose(&self.leader);
        self.watchman.deposed(&self.leader);
        self.deposed.push(std::mem::replace(&mut self.leader, next));
        self.start_leader().await;
    }

    async fn end_disturbances(&mut self) {
        self.step = STEPS;
        for old in std::mem::take(&mut self.deposed) {
            self.world.stop_as(&old).await;
        }
        self.free_stuck().await;
        for name in BUNDLES {
            if self.bundles.get(name).is_some_and(|bundle| bundle.broken) {
                self.break_secret(name);
            }
            if let Some(bundle) = self.bundles.get_mut(name).filter(|bundle| bundle.ignored) {
                bundle.ignored = false;
                let is_asked = std::mem::take(&mut bundle.asked);
                self.end_ignoring(name, is_asked).await;
            }
        }
        self.expire();
        self.revive().await;
    }

    /// Forces a list, which replaces lost events.
    fn expire(&self) {
        self.registrar.watches_broke();
        expire(&self.world.sim);
    }
}

fn manifests(wants: &BTreeMap<Item, Want>) -> Vec<Value> {
    wants.iter().flat_map(|(item, want)| item.manifests(want)).collect()
}
