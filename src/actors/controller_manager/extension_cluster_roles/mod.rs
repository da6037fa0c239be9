//! `controllerregistration-extension-clusterrole`: binds the ServiceAccounts of extensions to ClusterRoles (spec 85 E).
//!
//! `ClusterRole with a selector, ServiceAccounts ─ rules.rs ─► ClusterRoleBinding`
//!
//! [`rules`] is pure. This file has the watches and an actor per labelled ClusterRole. In strict mode, a ServiceAccount of a
//! project counts only if its Shoot and its installation exist, and gardenlet has reported on the installation.

pub mod rules;

use std::{collections::BTreeSet, rc::Rc, sync::Arc, time::Duration};

use cluster::{
    CachedFields, Context, EventType, How, Index, Lock, Predicate, Recorder, Reference, Watch, WatchOptions, Wrote,
    object, object::NamespacedName,
};
use jiff::Timestamp;
use kit::{Causes, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, Wake, hash_of};
use serde_json::Value;
use tokio::time::Instant;

use self::rules::{
    BindingFacts, MOST_OF_PROJECTS, RoleFacts, SelectedAccount, Subjects, account_of, binding, is_extension_account,
    is_of_seed, shoot_and_installation, subjects,
};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::{list, text, time},
    shoot_record::CachedShoot,
};
use crate::{
    actors::shared::drift_backoff::{DriftBackoff, LONGEST_PAUSE},
    api::{
        config::controller_manager::Config,
        kinds,
        meta::selector::{Labels, labels_in},
    },
};

const NAME: &str = "controllerregistration-extension-clusterrole"; // spec 80 §15

const WORKERS: usize = 5;

/// Shortest time between two computations of the subjects of a ClusterRole: each walks over all ServiceAccounts, and each
/// write sends all subjects. Members of Projects may create many ServiceAccounts.
const PAUSE: Duration = Duration::from_secs(1);

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

type CachedRole = CachedFields<KnownRole>;
type CachedAccount = CachedFields<Arc<AccountFacts>>;
type CachedBinding = CachedFields<BindingFacts>;
/// The Shoot of an installation on which gardenlet has reported.
type CachedInstallation = CachedFields<Option<NamespacedName>>;

/// What is kept of a ClusterRole.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownRole {
    uid: Box<str>,
    /// `None` without the label.
    facts: Option<Arc<RoleFacts>>,
}

/// What is kept of a ServiceAccount.
#[derive(Debug, PartialEq, Eq)]
struct AccountFacts {
    labels: Labels,
    created: Option<Timestamp>,
}

struct ExtensionRoles {
    roles: Watch<CachedRole>,
    /// ClusterRoles with the label.
    labelled: Index<()>,
    accounts: Watch<CachedAccount>,
    bindings: Watch<CachedBinding>,
    events: Recorder,
    /// For the strict mode.
    owners: Option<AccountOwners>,
}

/// What a ServiceAccount of a project belongs to.
#[derive(Clone)]
struct AccountOwners {
    shoots: Watch<CachedShoot>,
    installations: Watch<CachedInstallation>,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// When the subjects were computed last.
    computed: Option<Instant>,
    /// It was told that ServiceAccounts found no place.
    is_told: bool,
    /// The binding, which another client may write, too.
    repairs: DriftBackoff<()>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let watches = &ctx.garden.watches;
    let roles: Watch<CachedRole> = watches.open(WatchOptions::fields(kinds::CLUSTER_ROLE, KnownRole::of));
    let labelled = roles.index(|_, role: &CachedRole| role.fields.facts.as_ref().map(|_| ()).into_iter().collect());
    let account = |account: &Value| Arc::new(AccountFacts::of(account));
    let accounts = WatchOptions::fields(kinds::SERVICE_ACCOUNT, account).metadata().keeping(is_extension_account);
    let is_strict = config.controllers.controller_registration.strict_extension_service_accounts;
    let shoot = |installation: &Value| {
        let name = text(installation, "/spec/shootRef/name");
        // Only gardenlet writes the status: the Shoot was not merely created (E.4 rule 3).
        let is_reported = list(installation, "/status/conditions").next().is_some();
        (is_reported && !name.is_empty())
            .then(|| NamespacedName::new(text(installation, "/spec/shootRef/namespace"), name))
    };
    let owners = is_strict.then(|| AccountOwners {
        shoots: ctx.shoots.clone(),
        installations: watches.open(WatchOptions::fields(kinds::CONTROLLER_INSTALLATION, shoot)),
    });
    let controller = ExtensionRoles {
        roles,
        labelled,
        accounts: watches.open(accounts),
        bindings: watches.open(WatchOptions::fields(kinds::CLUSTER_ROLE_BINDING, BindingFacts::of)),
        events: ctx.garden.events.for_component(format!("{NAME}-controller")),
        owners,
    };
    Some(start(controller, |controller, supervised| controller.subscribe(supervised)))
}

impl KnownRole {
    fn of(role: &Value) -> Self {
        Self { uid: object::uid(role).into(), facts: RoleFacts::of(role).map(Arc::new) }
    }
}

impl AccountFacts {
    fn of(account: &Value) -> Self {
        Self {
            labels: labels_in(account.pointer("/metadata/labels").unwrap_or(&Value::Null)),
            created: time(account, "/metadata/creationTimestamp"),
        }
    }
}

impl AccountOwners {
    /// Returns true if the Shoot and the installation of a ServiceAccount exist, and gardenlet reported on it (E.4).
    fn have(&self, account: &NamespacedName) -> bool {
        let Some((shoot, installation)) = shoot_and_installation(account) else { return false };
        let is_self_hosted = self.shoots.store().with(&shoot, |shoot| shoot.fields.needs.is_self_hosted());
        let of_shoot = self.installations.store().with(&installation, |it| it.fields.as_ref() == Some(&shoot));
        is_self_hosted == Some(true) && of_shoot == Some(true)
    }
}

impl ExtensionRoles {
    /// A ServiceAccount wakes the ClusterRoles that select it, before or after a change. So do the Shoot and the
    /// installation of a ServiceAccount, and a binding that somebody else changed (DEV-16).
    fn subscribe(&self, supervised: &Supervised<Self>) {
        let (waker, is_left) = (supervised.weak(), self.is_left());
        self.roles.subscribe(move |change| {
            let facts = |role: Option<&CachedRole>| role.and_then(|role| role.fields.facts.clone());
            if facts(change.old) != facts(change.new) || is_left(change.name) {
                let is_first = change.how == How::First;
                waker.wake(change.name, if is_first { Wake::low(Causes::OBJECT) } else { Wake::high(Causes::OBJECT) });
            }
        });
        let selecting = self.selecting();
        let changed = Predicate::<CachedAccount>::fields_changed().ignoring_first_list();
        self.accounts.on_change(supervised, changed, move |_, account| selecting(&account.fields.labels));
        let (waker, is_left) = (supervised.weak(), self.is_left());
        self.bindings.subscribe(move |change| {
            if is_left(change.name) {
                waker.wake(change.name, Wake::high(Causes::OBJECT));
            }
        });
        let labelled = self.labelled.clone();
        let changed = Predicate::<CachedBinding>::fields_changed().ignoring_first_list();
        self.bindings.on_change(supervised, changed, move |name, _| {
            labelled.with(&(), |roles| roles.binary_search(name).is_ok()).then(|| name.clone())
        });
        if let Some(owners) = &self.owners {
            self.subscribe_to_owners(owners, supervised);
        }
    }

    fn subscribe_to_owners(&self, owners: &AccountOwners, supervised: &Supervised<Self>) {
        let (selecting, accounts) = (self.selecting(), self.accounts.store().clone());
        let changed = Predicate::<CachedInstallation>::fields_changed().ignoring_first_list().including_own_writes();
        owners.installations.on_change(supervised, changed, move |name, installation| {
            let account = installation.fields.as_ref().map(|shoot| account_of(shoot, &name.name));
            let known = account.and_then(|account| accounts.with(&account, |account| account.fields.clone()));
            known.map(|known| selecting(&known.labels)).unwrap_or_default()
        });
        let (selecting, accounts) = (self.selecting(), self.accounts.store().clone());
        let is_self_hosted = |shoot: &CachedShoot| shoot.fields.needs.is_self_hosted();
        let changed = Predicate::differing(move |old, new| is_self_hosted(old) != is_self_hosted(new));
        let changed = changed.ignoring_first_list().including_own_writes();
        owners.shoots.on_change(supervised, changed, move |name, shoot| {
            let mut all = Vec::new();
            if is_self_hosted(shoot) {
                accounts.for_each_in(&name.namespace, |account, known| {
                    let of_shoot = shoot_and_installation(account).is_some_and(|(shoot, _)| shoot == *name);
                    all.extend(of_shoot.then(|| known.fields.clone()));
                });
            }
            all.iter().flat_map(|known| selecting(&known.labels)).collect::<BTreeSet<_>>()
        });
    }

    /// Returns a function that returns the ClusterRoles that select a ServiceAccount with these labels.
    fn selecting(&self) -> impl Fn(&Labels) -> Vec<NamespacedName> + use<> {
        let (labelled, roles) = (self.labelled.clone(), self.roles.store().clone());
        move |labels| {
            let selects = |role: &CachedRole| {
                let selector = role.fields.facts.as_ref().and_then(|role| role.selector.as_ref().ok());
                selector.is_some_and(|selector| selector.matches(labels))
            };
            let mut names = labelled.get(&());
            names.retain(|name| roles.with(name, selects) == Some(true));
            names
        }
    }

    /// Returns a function that returns true if a ClusterRole without the label still has its binding: perhaps it lost the
    /// label while no process ran (DEV-15).
    fn is_left(&self) -> impl Fn(&NamespacedName) -> bool + use<> {
        let (roles, bindings) = (self.roles.store().clone(), self.bindings.store().clone());
        move |name| {
            let unlabelled = |role: &CachedRole| role.fields.facts.is_none().then(|| role.fields.uid.clone());
            let uid = roles.with(name, unlabelled).flatten();
            uid.is_some_and(|uid| bindings.with(name, |it| it.fields.is_of(&name.name, &uid)) == Some(true))
        }
    }

    /// Returns the subjects of a ClusterRole.
    fn subjects_of(&self, role: &RoleFacts) -> Result<Subjects, Failure> {
        let selector = role.selector.as_ref().map_err(|error| {
            // A change of the annotation wakes the ClusterRole.
            Failure::terminal(format!(
                "failed computing subjects for ClusterRoleBinding: failed parsing label selector: {error}"
            ))
        })?;
        let mut selected = Vec::new();
        self.accounts.store().for_each(|name, account| {
            if selector.matches(&account.fields.labels) {
                selected.push(SelectedAccount { name: name.clone(), created: account.fields.created });
            }
        });
        if let Some(owners) = &self.owners {
            selected.retain(|account| is_of_seed(&account.name) || owners.have(&account.name));
        }
        Ok(subjects(selected))
    }

    /// Tells that ServiceAccounts found no place, once.
    fn tell(&self, memory: &mut Memory, key: &NamespacedName, uid: &str, left_out: usize) {
        let was_told = std::mem::replace(&mut memory.is_told, left_out > 0);
        if left_out == 0 || was_told {
            return;
        }
        tracing::warn!(
            clusterRoleName = key.name,
            leftOut = left_out,
            "Too many ServiceAccounts of Projects for one ClusterRoleBinding"
        );
        let note = format!(
            "The selector selects more than {MOST_OF_PROJECTS} ServiceAccounts in namespaces of Projects. The others are not \
             bound."
        );
        let regarding = Reference::new(&kinds::CLUSTER_ROLE, key, uid);
        self.events.record(EventType::Warning, &regarding, "Reconcile", "TooManyServiceAccounts", &note);
    }

    /// Returns true if the caches prove which ServiceAccounts are meant: rights are neither granted nor taken away on doubt.
    fn are_fresh(&self) -> bool {
        let are_fresh = |owners: &AccountOwners| owners.shoots.is_fresh() && owners.installations.is_fresh();
        self.roles.is_fresh() && self.accounts.is_fresh() && self.owners.as_ref().is_none_or(are_fresh)
    }

    async fn bind(
        &self,
        repairs: &mut DriftBackoff<()>,
        context: &Context,
        key: &NamespacedName,
        wanted: &Value,
    ) -> Result<Outcome, Failure> {
        repairs.take_due(Instant::now()); // what still differs is noted again
        let known = self.binding(context, key).await?;
        if known.as_ref().is_some_and(|known| known.fields.patch(wanted).is_none()) {
            return Ok(Outcome::Done);
        }
        let (intent, now) = (hash_of(&wanted.to_string()), Instant::now());
        if !repairs.may_repair(&(), intent, now) {
            return Ok(repairs.next_in(now).map_or(Outcome::Done, Outcome::After));
        }
        let is_settled = if known.is_none() {
            self.bindings.create(context, wanted).await?;
            true
        } else {
            let patch = |known: &CachedBinding| known.fields.patch(wanted);
            let wrote = self.bindings.patch_cached(context, key, Lock::Version, patch).await?;
            matches!(wrote, Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_))
        };
        repairs.repaired(&(), intent, Instant::now(), LONGEST_PAUSE);
        Ok(if is_settled { Outcome::Done } else { Outcome::Again })
    }

    async fn binding(&self, context: &Context, key: &NamespacedName) -> Result<Option<CachedBinding>, Failure> {
        Ok(match self.bindings.known(key) {
            Some(known) => known,
            None => self.bindings.read_live(context, key).await?,
        })
    }

    /// Deletes the binding of a ClusterRole without the label, if it is of this ClusterRole (DEV-15).
    async fn unbind(&self, context: &Context, key: &NamespacedName, uid: &str) -> Result<Outcome, Failure> {
        let is_ours = |it: &CachedBinding| it.fields.is_of(&key.name, uid);
        if !self.binding(context, key).await?.is_some_and(|binding| is_ours(&binding)) {
            return Ok(Outcome::Retire); // an event of a binding that comes later wakes it
        }
        let Some(role) = self.roles.read_object(context, key).await? else { return Ok(Outcome::Retire) };
        if object::uid(&role) != uid || RoleFacts::of(&role).is_some() {
            return Ok(Outcome::Again);
        }
        tracing::info!(clusterRoleName = key.name, "Deleting ClusterRoleBinding of ClusterRole without the label");
        self.bindings.delete_cached_if(context, key, None, is_ours).await?;
        Ok(Outcome::Retire)
    }
}

impl Controller for ExtensionRoles {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, WORKERS)
            .about(("rbac.authorization.k8s.io", "ClusterRole"))
            .requires(self.roles.sync_requirement())
            .requires(self.accounts.sync_requirement())
            .requires(self.bindings.sync_requirement());
        let owners = self.owners.iter();
        let owners =
            owners.flat_map(|owners| [owners.shoots.sync_requirement(), owners.installations.sync_requirement()]);
        vec![owners.fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(KnownRole { uid, facts }) = self.roles.store().with(key, |role| role.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let Some(role) = facts else { return self.unbind(&context, key, &uid).await };
        if role.is_deleting {
            return Ok(Outcome::Retire); // the binding goes by its owner reference
        }
        let now = Instant::now();
        let next = memory.computed.map(|computed| computed + PAUSE).filter(|next| now < *next);
        if let Some(next) = next {
            return Ok(Outcome::After(next - now));
        }
        memory.computed = Some(now);
        let Subjects { accounts, left_out } = self.subjects_of(&role)?;
        if !self.are_fresh() {
            return Ok(Outcome::Again);
        }
        reconcile.note(match left_out {
            0 => format!("{} ServiceAccounts", accounts.len()),
            left_out => format!("{} ServiceAccounts; {left_out} of Projects find no place", accounts.len()),
        });
        self.tell(memory, key, &role.uid, left_out);
        let wanted = binding(&key.name, &role.uid, &accounts);
        self.bind(&mut memory.repairs, &context, key, &wanted).await
    }
}
