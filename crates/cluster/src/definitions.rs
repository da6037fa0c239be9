//! Which kinds are defined by CustomResourceDefinitions and APIServices. Their names end in an API group. When one
//! changes, discovery reads that group, which makes new kinds known at once.

use std::{rc::Rc, time::Duration};

use kit::{Signal, SyncRequirement};

use super::{CachedFields, How, Resource, Watch, WatchOptions, Watches};
use crate::object::NamespacedName;

/// After an event of a CustomResourceDefinition the server takes some 30 ms until it serves the kind (measured).
const ESTABLISHING: Duration = Duration::from_millis(150);

/// The definitions of a cluster, watched. Cheap to clone.
#[derive(Clone)]
pub struct Definitions {
    /// By `plural.group`.
    custom: Watch<CachedFields<()>>,
}

impl Definitions {
    /// Opens both watches. Readiness does not wait: APIServices and the right to list are optional (spec 70, trap 6).
    pub fn open(watches: &Watches) -> Self {
        let kind = |group, kind, plural| Resource::new(group, "v1", kind, plural, false);
        let custom = kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions");
        let services = kind("apiregistration.k8s.io", "APIService", "apiservices");
        // The names of these are `version.group`.
        follow_groups(watches, services);
        Self { custom: follow_groups(watches, custom) }
    }

    /// For reconcilers that use [`Self::is_custom`]: met while the definitions are known.
    pub fn sync_requirement(&self) -> SyncRequirement {
        let (mut requirement, definitions) = (self.custom.sync_requirement(), self.clone());
        requirement.ready = Rc::new(move || definitions.are_known());
        requirement
    }

    /// Returns true after the first list of CustomResourceDefinitions, or if the right to list them is missing.
    fn are_known(&self) -> bool {
        self.custom.store().is_listed() || self.custom.is_forbidden()
    }

    /// Raised when the definitions become known, and at other changes of their watch.
    pub fn signal(&self) -> &Signal {
        self.custom.signal()
    }

    /// Returns whether a CustomResourceDefinition defines the kind, or `None` while the definitions are not known. Without the
    /// right to list them, no kind counts as custom. API servers refuse definitions of a group without a dot.
    pub fn is_custom(&self, resource: &Resource) -> Option<bool> {
        let name = NamespacedName::new("", format!("{}.{}", resource.plural, resource.group));
        let is_defined = self.custom.store().with(&name, |_| ()).is_some();
        (is_defined || self.are_known() || !resource.group.contains('.')).then_some(is_defined)
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
