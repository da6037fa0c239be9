//! Which kinds are defined by CustomResourceDefinitions and APIServices. Their names end in an API group. When one
//! changes, discovery reads that group, which makes new kinds known at once.

use std::{rc::Rc, sync::Arc, time::Duration};

use kit::SyncRequirement;
use serde_json::Value;

use super::{Cached, How, Resource, Watch, WatchOptions, Watches};
use crate::object::{self, NamespacedName};

/// After an event of a CustomResourceDefinition the server takes some 30 ms until it serves the kind (measured).
const ESTABLISHING: Duration = Duration::from_millis(150);

/// The cached fields of a CustomResourceDefinition or an APIService; its name contains the group.
#[derive(Clone, Debug)]
pub struct Definition {
    uid: Arc<str>,
    version: u64,
}

/// The definitions of a cluster, watched. Cheap to clone.
#[derive(Clone)]
pub struct Definitions {
    /// By `plural.group`.
    custom: Watch<Definition>,
}

impl Definitions {
    /// Opens both watches. Readiness does not wait: APIServices and the right to list are optional (spec 70, trap 6).
    pub fn open(watches: &Watches) -> Self {
        let kind = |group, kind, plural| Resource::new(group, "v1", kind, plural, false);
        let custom = kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
        let services = kind("apiregistration.k8s.io", "APIService", "apiservices");
        // The names of these are `version.group`.
        follow_groups(watches, WatchOptions::new(services, Definition::of).unawaited());
        Self { custom: follow_groups(watches, WatchOptions::new(custom, Definition::of).unawaited()) }
    }

    /// For reconcilers that use [`Self::is_custom`]: met after the first list, or if the right to list is missing.
    pub fn sync_requirement(&self) -> SyncRequirement {
        let mut requirement = self.custom.sync_requirement();
        let (is_listed, watch) = (requirement.ready.clone(), self.custom.clone());
        requirement.ready = Rc::new(move || is_listed() || watch.is_forbidden());
        requirement
    }

    /// Returns true if a CustomResourceDefinition defines the kind; always false without the right to list them.
    pub fn is_custom(&self, resource: &Resource) -> bool {
        let name = NamespacedName::new("", format!("{}.{}", resource.plural, resource.group));
        self.custom.store().with(&name, |_| ()).is_some()
    }
}

/// Watches objects whose names end in an API group. A change makes discovery read that group again.
fn follow_groups(watches: &Watches, options: WatchOptions<Definition>) -> Watch<Definition> {
    let watch = watches.open(options.metadata());
    let cluster = watches.cluster().clone();
    watch.subscribe(move |change| {
        if change.how == How::First {
            return;
        }
        if let Some((_, group)) = change.name.name.split_once('.') {
            let (cluster, group) = (cluster.clone(), group.to_owned());
            actix::spawn(async move {
                tokio::time::sleep(ESTABLISHING).await;
                cluster.discovery().refresh_requested(&group);
            });
        }
    });
    watch
}

impl Definition {
    fn of(object: &Value) -> Option<Self> {
        let version = object::resource_version(object).parse().unwrap_or_default();
        Some(Self { uid: object::uid(object).into(), version })
    }
}

impl Cached for Definition {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}
