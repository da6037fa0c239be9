//! Which kinds are defined by CustomResourceDefinitions and APIServices. Their names end in an API group. When one
//! changes, discovery reads that group, which makes new kinds known at once.

use std::{rc::Rc, time::Duration};

use kit::SyncRequirement;

use super::{CachedFields, Cluster, How, Resource, Watch, WatchOptions, Watches};
use crate::object::NamespacedName;

/// After an event of a CustomResourceDefinition the server takes some 30 ms until it serves the kind (measured).
const ESTABLISHING: Duration = Duration::from_millis(150);

/// The definitions of a cluster, watched. Cheap to clone.
#[derive(Clone)]
pub struct Definitions {
    /// By `plural.group`.
    custom: Watch<CachedFields<()>>,
    cluster: Cluster,
}

impl Definitions {
    /// Opens both watches. Readiness does not wait: APIServices and the right to list are optional (spec 70, trap 6).
    pub fn open(watches: &Watches) -> Self {
        let kind = |group, kind, plural| Resource::new(group, "v1", kind, plural, false);
        let custom = kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
        let services = kind("apiregistration.k8s.io", "APIService", "apiservices");
        // The names of these are `version.group`.
        follow_groups(watches, services);
        Self { custom: follow_groups(watches, custom), cluster: watches.cluster().clone() }
    }

    /// For reconcilers that use [`Self::is_custom`]: met after the first list, or if the right to list is missing, or while
    /// the credentials are rejected, which reconciles report (spec 71 §8 R4).
    pub fn sync_requirement(&self) -> SyncRequirement {
        let mut requirement = self.custom.sync_requirement();
        let (is_listed, watch, cluster) = (requirement.ready.clone(), self.custom.clone(), self.cluster.clone());
        requirement.ready = Rc::new(move || is_listed() || watch.is_forbidden() || cluster.is_unauthorized());
        requirement
    }

    /// Returns true if a CustomResourceDefinition defines the kind; always false before the first list, which may never come.
    pub fn is_custom(&self, resource: &Resource) -> bool {
        let name = NamespacedName::new("", format!("{}.{}", resource.plural, resource.group));
        self.custom.store().with(&name, |_| ()).is_some()
    }
}

/// Watches objects whose names end in an API group. A change makes discovery read that group again.
fn follow_groups(watches: &Watches, definitions: Resource) -> Watch<CachedFields<()>> {
    let options = WatchOptions::new(definitions, |definition| CachedFields::of(definition, ()));
    let watch = watches.open(options.metadata().unawaited());
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
