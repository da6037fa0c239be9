//! ServiceAccounts, Secrets with static tokens and Pods that mount them come and go. No token is invalidated that its
//! ServiceAccount wants or that a Pod mounts, and no unwanted token becomes valid again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gardener_resource_manager::api::config::resource_manager::{Workers, WorkersOnly};
use serde_json::{Value, json};
use sim::{RequestInfo, Sim};
use tokio::time::Instant;

use crate::world::{NAMESPACE, World};

const CONSIDER: &str = "token-invalidator.resources.gardener.cloud/consider";
const PURPOSE: &str = "resources.gardener.cloud/purpose";
/// ServiceAccounts `a0` to `a2`, Secrets `t0` to `t2`, Pods `p0` to `p2`.
const NUMBERS: u8 = 3;

/// A reconcile takes 3 min at most, and itself reads the facts that make a token invalid.
const RECONCILE: Duration = Duration::from_secs(200);
const SHORT_RECONCILE: Duration = Duration::from_secs(5);
/// A watch counts as fresh for 150 s.
const LAG: Duration = Duration::from_secs(360);

#[derive(Clone)]
pub(super) struct Tokens {
    observed: Arc<Mutex<Observed>>,
    random: Arc<Mutex<fastrand::Rng>>,
    sim: Sim,
    calm: bool,
    /// Whether events get lost: the program's cache may then be arbitrarily old.
    lossy: bool,
}

#[derive(Default)]
struct Observed {
    states: Vec<(Instant, TokenState)>,
    patched: BTreeMap<String, Vec<Instant>>,
    considered: BTreeSet<String>,
    violations: Vec<String>,
}

#[derive(Clone, Default)]
struct TokenState {
    accounts: BTreeMap<String, bool>,
    secrets: BTreeMap<String, String>,
    pods: BTreeMap<String, String>,
}

impl TokenState {
    /// Whether the ServiceAccount of a Secret wants no tokens; `None` if either is missing.
    fn wants_no_tokens(&self, secret: &str) -> Option<bool> {
        self.accounts.get(self.secrets.get(secret)?).copied()
    }

    fn is_mounted(&self, secret: &str) -> bool {
        self.pods.values().any(|mounted| mounted == secret)
    }

    fn may_consider(&self, secret: &str) -> bool {
        self.wants_no_tokens(secret) == Some(true) && !self.is_mounted(secret)
    }
}

impl Tokens {
    pub(super) fn new(world: &World, seed: u64, calm: bool, lossy: bool) -> Self {
        world.config.borrow_mut().controllers.token_invalidator =
            WorkersOnly { concurrent_syncs: Workers::new(2) }.into();
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed ^ 0x5eed_0003)));
        let this = Self { observed: Arc::default(), random, sim: world.sim.clone(), calm, lossy };
        this.observed().states.push((Instant::now(), TokenState::default()));
        this
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        if info.verb == "patch" && info.resource == "secrets" {
            self.observed().patched.entry(info.name.clone()).or_default().push(Instant::now());
        }
    }

    pub(super) fn act(&self) -> String {
        self.look();
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut texts = Vec::new();
        for _ in 0..random.u8(1..6) {
            let number = random.u8(0..NUMBERS);
            texts.push(match random.u8(0..3) {
                0 => self.change_account(&format!("a{number}"), &mut random),
                1 => self.change_secret(&format!("t{number}"), &mut random),
                _ => self.change_pod(&format!("p{number}"), &mut random),
            });
        }
        let mut observed = self.observed();
        observed.considered = self.considered(&observed);
        texts.join("; ")
    }

    fn change(&self, change: impl FnOnce(&mut TokenState)) {
        let mut observed = self.observed();
        let mut state = observed.states.last().map(|(_, state)| state.clone()).unwrap_or_default();
        change(&mut state);
        observed.states.push((Instant::now(), state));
    }

    fn put(&self, kind: &str, name: &str, mut object: Value) {
        (object["apiVersion"], object["kind"]) = (json!("v1"), json!(kind));
        (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!(NAMESPACE), json!(name));
        self.sim.put(object).expect("it is valid");
    }

    fn change_account(&self, name: &str, random: &mut fastrand::Rng) -> String {
        if self.sim.object("serviceaccounts", NAMESPACE, name).is_some() && random.u8(0..4) == 0 {
            self.sim.remove("serviceaccounts", NAMESPACE, name);
            self.change(|state| _ = state.accounts.remove(name));
            return format!("ServiceAccount {name} goes");
        }
        let automount = [None, Some(true), Some(false), Some(false), Some(false)][random.usize(0..5)];
        let skip = random.u8(0..5) == 0;
        let labels =
            if skip { json!({ "token-invalidator.resources.gardener.cloud/skip": "true" }) } else { json!({}) };
        let account = json!({ "metadata": { "labels": labels }, "automountServiceAccountToken": automount });
        self.put("ServiceAccount", name, account);
        self.change(|state| _ = state.accounts.insert(name.to_owned(), automount == Some(false) && !skip));
        format!("ServiceAccount {name} has automount {automount:?}, skip {skip}")
    }

    fn change_secret(&self, name: &str, random: &mut fastrand::Rng) -> String {
        let is_there = self.sim.object("secrets", NAMESPACE, name).is_some();
        if is_there && random.bool() {
            self.sim.edit("secrets", NAMESPACE, name, |live| live["metadata"]["labels"] = json!({}));
            return format!("Secret {name} loses its labels");
        }
        if is_there {
            self.sim.remove("secrets", NAMESPACE, name);
            self.change(|state| drop(state.secrets.remove(name)));
            if random.bool() {
                return format!("Secret {name} goes");
            }
        }
        let account = format!("a{}", random.u8(0..NUMBERS));
        let labels = match random.u8(0..4) {
            0 => json!({ PURPOSE: "token-invalidator", CONSIDER: "true" }),
            1 => json!({ PURPOSE: "other" }),
            _ => json!({}),
        };
        let metadata = json!({ "annotations": { "kubernetes.io/service-account.name": account }, "labels": labels });
        self.put("Secret", name, json!({ "metadata": metadata, "data": { "token": "dmFsaWQ=" } }));
        self.change(|state| drop(state.secrets.insert(name.to_owned(), account.clone())));
        format!("Secret {name} of ServiceAccount {account} comes with {labels}")
    }

    fn change_pod(&self, name: &str, random: &mut fastrand::Rng) -> String {
        if self.sim.object("pods", NAMESPACE, name).is_some() {
            let ends = random.bool();
            if ends {
                self.sim.edit("pods", NAMESPACE, name, |live| live["status"]["phase"] = json!("Succeeded"));
            } else {
                self.sim.remove("pods", NAMESPACE, name);
            }
            self.change(|state| drop(state.pods.remove(name)));
            return format!("Pod {name} {}", if ends { "ends" } else { "goes" });
        }
        let secret = format!("t{}", random.u8(0..NUMBERS));
        let volume = json!({ "name": "v", "secret": { "secretName": secret } });
        let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
        self.put("Pod", name, json!({ "spec": spec }));
        self.change(|state| drop(state.pods.insert(name.to_owned(), secret.clone())));
        format!("Pod {name} mounts Secret {secret}")
    }

    fn considered(&self, observed: &Observed) -> BTreeSet<String> {
        let secrets = observed.states.last().into_iter().flat_map(|(_, state)| state.secrets.keys());
        let is_considered = |live: &Value| live["metadata"]["labels"].get(CONSIDER).is_some();
        let is_considered = |name: &&String| self.sim.look_at("secrets", NAMESPACE, name, is_considered) == Some(true);
        secrets.filter(is_considered).cloned().collect()
    }

    fn look(&self) {
        let mut observed = self.observed();
        let now = self.considered(&observed);
        let changed: Vec<String> = observed.considered.symmetric_difference(&now).cloned().collect();
        for secret in changed {
            let considered = now.contains(&secret);
            let window = match considered {
                true if self.calm => SHORT_RECONCILE,
                true => RECONCILE,
                false if self.lossy => continue,
                false => LAG,
            };
            let patches = observed.patched.get(&secret).into_iter().flatten();
            let is_right = patches.clone().any(|sent| observed.supported(&secret, considered, *sent, window));
            if !is_right {
                let sent: Vec<_> = patches.map(Instant::elapsed).collect();
                let text = format!("{secret} became considered: {considered}, by one of the patches of {sent:?} ago");
                observed.violations.push(text);
            }
        }
        observed.considered = now;
    }

    pub(super) fn violations(&self) -> Vec<String> {
        self.look();
        std::mem::take(&mut self.observed().violations)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let observed = self.observed();
        let Some((_, state)) = observed.states.last() else { return Vec::new() };
        let now = self.considered(&observed);
        let has_purpose = |live: &Value| live["metadata"]["labels"].get(PURPOSE).is_some();
        let is_wrong = |secret: &&String| match state.wants_no_tokens(secret) {
            None => false,
            Some(_) if self.sim.look_at("secrets", NAMESPACE, secret, has_purpose) != Some(true) => true,
            // Once it is considered, later Pods do not undo it.
            Some(wants_none) => now.contains(*secret) != wants_none && !(wants_none && state.is_mounted(secret)),
        };
        state.secrets.keys().filter(is_wrong).cloned().collect()
    }

    pub(super) fn has(&self, secret: &str) -> bool {
        self.observed().states.last().is_some_and(|(_, state)| state.secrets.contains_key(secret))
    }
}

impl Observed {
    /// Whether a patch sent at that time was justified by a state at most `window` earlier. A read makes a Secret
    /// considered. Two watches end that, and the second watch may lag behind the first.
    fn supported(&self, secret: &str, considered: bool, sent: Instant, window: Duration) -> bool {
        let ends = self.states.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let counted: Vec<&TokenState> = (self.states.iter().zip(ends))
            .filter(|((since, _), end)| *since <= sent && end.is_none_or(|end| end + window >= sent))
            .map(|((_, state), _)| state)
            .collect();
        if considered {
            return counted.iter().any(|state| state.may_consider(secret));
        }
        let mut accounts = counted.iter().filter_map(|state| state.secrets.get(secret));
        accounts.any(|account| counted.iter().any(|state| state.accounts.get(account) == Some(&false)))
    }
}
