//! What operators see of the bindings of one kind: rows of the dashboard, and metrics.

use std::rc::Rc;

use cluster::object::NamespacedName;
use kit::{Env, Reconcile, quote::cut};

use super::{
    binding::{Binding, BindingKind},
    caches::{CachedCredentials, Caches},
    controller::BindingKey,
    credentials::{CredentialsKind, CredentialsRef},
};
use crate::actors::{
    controller_manager::{
        figures::REFERRERS_WITH_MISSING_OBJECTS,
        held::{DeletionTime, HeldObjects},
        rows::{Lines, ReferrersOfKind, kept},
    },
    shared::state_counts::StateCounts,
};

pub(super) struct View {
    /// Name of the controller.
    controller: &'static str,
    kind: BindingKind,
    caches: Rc<Caches>,
    missing: StateCounts,
}

impl View {
    /// Shows the metrics of a controller from now on.
    pub(super) fn start(controller: &'static str, kind: BindingKind, caches: &Rc<Caches>, env: &Env) -> Self {
        let missing = StateCounts::new(&env.observers, REFERRERS_WITH_MISSING_OBJECTS, [controller]);
        missing.show();
        for credentials in CredentialsKind::ALL.into_iter().filter(|credentials| kind.may_have(*credentials)) {
            let watch = caches.credentials(credentials);
            let since = move |state: &CachedCredentials| state.fields.kept_since(kind);
            HeldObjects::show(&env.observers, (controller, credentials.resource()), watch, since);
        }
        Self { controller, kind, caches: caches.clone(), missing }
    }

    /// Counts a binding whose credentials are missing, or no longer.
    pub(super) fn count(&self, binding: &NamespacedName, is_missing: bool) {
        self.missing.enter(binding, is_missing.then_some(self.controller));
    }

    /// Shows that credentials are being deleted, and stay.
    pub(super) fn show_kept(
        &self,
        reconcile: &Reconcile<BindingKey>,
        credentials: &CredentialsRef,
        since: DeletionTime,
    ) {
        let kind = self.kind.resource();
        let bindings = self
            .caches
            .bindings(self.kind)
            .by_credentials
            .with(credentials, |names| ReferrersOfKind::new(&kind.kind, names));
        reconcile.note("its credentials are being deleted, and stay while it refers to them");
        let mut lines = kept(self.kind.finalizer(), Some(since), &[bindings]);
        lines.insert(0, ("Credentials".to_owned(), credentials.to_string()));
        reconcile.detail(lines);
    }
}

/// Returns what a binding refers to. A very long text is cut.
pub(super) fn targets(binding: &Binding) -> Lines {
    let credentials = match &binding.credentials {
        Ok(credentials) => cut(&credentials.to_string()).into_owned(),
        Err(problem) => cut(problem).into_owned(),
    };
    let quotas = binding.quotas.len().to_string();
    [("Credentials", credentials), ("Quotas", quotas)].map(|(label, text)| (label.to_owned(), text)).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn row_of_a_binding_cuts_the_text_about_credentials() {
        for kind in ["Secret".to_owned(), "x".repeat(100_000)] {
            let reference = json!({ "apiVersion": "v1", "kind": kind, "name": "s".repeat(10_000) });
            let object = json!({ "metadata": { "namespace": "a", "name": "b" }, "credentialsRef": reference });

            let lines = targets(&Binding::of(BindingKind::CredentialsBinding, &object));

            let [(label, text), _] = lines.as_slice() else { panic!("{} lines", lines.len()) };
            assert!(label == "Credentials" && text.len() < 1_000 && text.ends_with('…'), "{text}");
        }
    }
}
