//! Secrets (spec 61 §5.6): those that all agents read, and the pool's OperatingSystemConfig with the Secrets it names.

use std::borrow::Cow;

use super::{
    End, Host, KUBE_SYSTEM, OscSecret, Request, SECRETS,
    lookup::{self, node_of, osc_secret},
    texts,
};
use crate::webhooks::{authorizing::Decision, view::Failure};

/// Secrets that every node agent may read. The last three exist in self-hosted shoots only.
const BASE: [&str; 5] = [
    "gardener-valitail",
    "gardener-opentelemetry-collector",
    "shoot-access-kube-controller-manager",
    "shoot-access-kube-scheduler",
    "shoot-access-cluster-admin",
];

/// The names that may be read. None is empty: an empty name would allow a list without a name (spec 61 §11.1).
struct Names<'a>(Vec<Cow<'a, str>>);

pub(super) fn decide(request: Request<'_>) -> Result<Decision, End> {
    let mut names = Names(BASE.map(Cow::Borrowed).into());
    match &request.settings.machine_namespace {
        Some(namespace) => names.of_machine(request, namespace)?,
        None => names.of_node(request)?,
    }
    let action = request.action;
    if *action.namespace == *KUBE_SYSTEM && names.contains(&action.name) {
        return Ok(Decision::Allow);
    }
    Err(End::Deny(texts::only_secrets(&names.0)))
}

impl Names<'_> {
    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|allowed| allowed == name)
    }

    fn add(&mut self, name: &str) {
        if !name.is_empty() {
            self.0.push(Cow::Owned(name.to_owned()));
        }
    }

    fn add_references(&mut self, name: &str, secret: &OscSecret, host: Host<'_>) -> Result<(), End> {
        match secret.references(host) {
            Ok(references) => references.for_each(|reference| self.add(reference)),
            Err(cause) => {
                let message = texts::reading_references(name, cause);
                return Err(End::Failed(Failure::Errored { code: 500, message }));
            }
        }
        Ok(())
    }

    /// Machine mode: the Machine names the OSC secret.
    fn of_machine(&mut self, request: Request<'_>, namespace: &str) -> Result<(), End> {
        let machine = lookup::machine(request, namespace)?;
        let name = &*machine.secret_name;
        if name.is_empty() {
            return Ok(());
        }
        self.add(name);
        let secret = osc_secret(request, name, || texts::getting_osc_secret(name))?;
        let Some(secret) = secret else { return Ok(()) };
        let node = if machine.node.is_empty() { None } else { node_of(request, &machine.node)? };
        self.add_references(name, &secret, node.as_ref().map_or(Host::Any, |node| Host::of(node)))
    }

    /// Node mode: the Node names the OSC secret. The name counts only if the Secret has the pool label: a node agent
    /// can change the labels of its Node (spec 61 §11.9).
    fn of_node(&mut self, request: Request<'_>) -> Result<(), End> {
        let Some(node) = node_of(request, request.machine)? else { return self.of_all(request) };
        let name = &*node.secret_name;
        if name.is_empty() {
            return Ok(());
        }
        match osc_secret(request, name, texts::listing_osc_secrets)?.filter(|secret| secret.of_pool) {
            None => Ok(()),
            Some(secret) => {
                self.add(name);
                self.add_references(name, &secret, Host::of(&node))
            }
        }
    }

    /// Without a Node, the OSC secret is unknown, so all of them count.
    fn of_all(&mut self, request: Request<'_>) -> Result<(), End> {
        let all = request.view.objects(&SECRETS);
        for (name, secret) in all.map_err(|failure| End::while_reading(failure, texts::listing_osc_secrets))? {
            if secret.of_pool && name.namespace == KUBE_SYSTEM {
                self.add(&name.name);
                self.add_references(&name.name, &secret, Host::Any)?;
            }
        }
        let (namespace, name) = (&*request.action.namespace, &*request.action.name);
        // A Secret that was just created may be missing from the list.
        if namespace == KUBE_SYSTEM
            && !name.is_empty()
            && !self.contains(name)
            && osc_secret(request, name, texts::listing_osc_secrets)?.is_some_and(|secret| secret.of_pool)
        {
            self.add(name);
        }
        Ok(())
    }
}
