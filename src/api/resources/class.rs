//! The class that is responsible for a ManagedResource, and its transfer between classes (spec 10 §6).

use super::{
    keys::{ALL_CLASSES, BASE_FINALIZER, DEFAULT_CLASS},
    managed_resource::ManagedResource,
};

/// The class of this process, and its finalizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnClass {
    class: String,
    finalizer: String,
}

impl OwnClass {
    /// From `controllers.resourceClass`; empty means `resources`.
    pub fn new(class: &str) -> Self {
        let class = if class.is_empty() { DEFAULT_CLASS } else { class };
        let finalizer = match class {
            DEFAULT_CLASS | ALL_CLASSES => BASE_FINALIZER.to_owned(),
            other => format!("{BASE_FINALIZER}-{other}"),
        };
        Self { class: class.to_owned(), finalizer }
    }

    /// Name of the class.
    pub fn name(&self) -> &str {
        &self.class
    }

    /// The finalizer this process sets and removes.
    pub fn finalizer(&self) -> &str {
        &self.finalizer
    }

    /// Returns true if the ManagedResource has our finalizer.
    pub fn holds(&self, mr: &ManagedResource) -> bool {
        mr.metadata.finalizers.contains(&self.finalizer)
    }

    /// Returns true if this process applies the ManagedResource. Without a class it has the default class.
    pub fn is_responsible(&self, mr: &ManagedResource) -> bool {
        let class = mr.spec.class.as_deref().unwrap_or_default();
        self.class == ALL_CLASSES || class == self.class || (class.is_empty() && self.class == DEFAULT_CLASS)
    }

    /// Returns true if the ManagedResource was ours and now has another class.
    pub fn is_transferring(&self, mr: &ManagedResource) -> bool {
        self.holds(mr) && !self.is_responsible(mr)
    }

    /// Returns true if it is ours, but the class before has not finished. Only the first finalizer of any class counts.
    pub fn is_waiting_for_cleanup(&self, mr: &ManagedResource) -> bool {
        let first = mr.metadata.finalizers.iter().find(|finalizer| finalizer.starts_with(BASE_FINALIZER));
        first.is_some_and(|finalizer| self.is_responsible(mr) && *finalizer != self.finalizer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managed_resource(class: Option<&str>, finalizers: &[&str]) -> ManagedResource {
        let mut mr = ManagedResource::default();
        mr.spec.class = class.map(str::to_owned);
        mr.metadata.finalizers = finalizers.iter().map(|&finalizer| finalizer.to_owned()).collect();
        mr
    }

    #[test]
    fn the_default_class_and_all_classes_share_the_base_finalizer() {
        for (class, finalizer) in [
            ("", "resources.gardener.cloud/gardener-resource-manager"),
            ("resources", "resources.gardener.cloud/gardener-resource-manager"),
            ("*", "resources.gardener.cloud/gardener-resource-manager"),
            ("seed", "resources.gardener.cloud/gardener-resource-manager-seed"),
        ] {
            assert_eq!(OwnClass::new(class).finalizer(), finalizer, "class {class:?}");
        }
    }

    /// spec 10 scenario 31
    #[test]
    fn class_must_match_and_an_absent_class_is_the_default() {
        for (own, class, responsible) in [
            ("resources", None, true),
            ("resources", Some(""), true),
            ("resources", Some("resources"), true),
            ("resources", Some("x"), false),
            ("y", Some("x"), false),
            ("y", None, false),
            ("y", Some("y"), true),
            ("*", Some("x"), true),
            ("*", None, true),
        ] {
            let mr = managed_resource(class, &[]);

            assert_eq!(OwnClass::new(own).is_responsible(&mr), responsible, "own {own:?}, class {class:?}");
        }
    }

    #[test]
    fn class_transfer_is_our_finalizer_with_another_class() {
        let seed = OwnClass::new("seed");

        assert!(seed.is_transferring(&managed_resource(Some("b"), &[seed.finalizer()])));
        assert!(!seed.is_transferring(&managed_resource(Some("seed"), &[seed.finalizer()])));
        assert!(!seed.is_transferring(&managed_resource(Some("b"), &[BASE_FINALIZER])));
    }

    /// spec 10 scenario 30
    #[test]
    fn class_transfer_waits_by_the_first_finalizer_of_any_class() {
        let other = "resources.gardener.cloud/gardener-resource-manager-a";
        for (own, class, finalizers, waiting) in [
            ("b", Some("b"), vec![other], true),
            ("b", Some("b"), vec!["foo/bar", other], true),
            ("b", Some("b"), vec!["resources.gardener.cloud/gardener-resource-manager-b", other], false),
            ("b", Some("b"), vec![other, "resources.gardener.cloud/gardener-resource-manager-b"], true),
            ("b", Some("b"), vec!["foo/bar"], false),
            ("b", Some("b"), vec![], false),
            ("b", Some("c"), vec![other], false),
            ("*", Some("c"), vec![other], true),
            ("resources", None, vec![BASE_FINALIZER], false),
        ] {
            let mr = managed_resource(class, &finalizers);

            assert_eq!(OwnClass::new(own).is_waiting_for_cleanup(&mr), waiting, "own {own}, {finalizers:?}");
        }
    }
}
