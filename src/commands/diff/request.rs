use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
    time::Duration,
};

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::DiffError;
use crate::{
    api::resources::{keys, managed_resource::ManagedResource},
    cli::DiffOptions,
    commands::{
        bundles::{Bundles as FileContent, Located},
        input::Source,
        selection,
    },
};

/// What to compare.
#[derive(Debug)]
pub struct Request {
    pub(super) bundles: Bundles,
    /// `--namespace`.
    pub(super) namespace: Option<String>,
    pub(super) remarks: Vec<String>,
    pub(super) cluster_id: String,
    pub(super) managed_by: String,
    /// Whether the server must answer all dry runs, also those of creations.
    pub(super) strict: bool,
    /// Time limit of one request.
    pub(super) timeout: Duration,
}

/// Which bundles are compared.
#[derive(Debug)]
pub(super) enum Bundles {
    /// Their namespaces may be missing.
    Given(Vec<Wanted>),
    Listed {
        scope: Scoped,
        selector: Option<String>,
        class: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scoped {
    Namespace,
    All,
}

pub(super) struct Wanted {
    pub(super) key: NamespacedName,
    /// From a file; `None`: the ManagedResource in the cluster.
    pub(super) managed_resource: Option<ManagedResource>,
    /// `None`: the Secrets in the cluster.
    pub(super) parts: Option<Vec<Part>>,
}

pub(super) enum Part {
    /// From a file.
    Manifest(Value),
    /// From a file; several ManagedResources may name it.
    Secret(Rc<Value>),
    InCluster(String),
}

impl Request {
    /// Fails if a document is not an object, or if it is not known which ManagedResource the files belong to.
    pub(in crate::commands) fn new(options: &DiffOptions, sources: &[Source]) -> Result<Self, DiffError> {
        let files = FileContent::of(sources);
        let remarks = files.manifests.iter().flat_map(|located| {
            located.warnings.iter().map(|warning| format!("warning: {}: {warning}", located.location))
        });
        let remarks = remarks.collect();
        let selection = &options.selection;
        // A namespace that is empty is filled in later.
        let names: Vec<NamespacedName> = selection.names.iter().map(|name| selection::key(name, "")).collect();
        let bundles = if !options.files.is_empty() {
            Bundles::Given(from_files(files, names.first())?)
        } else if names.is_empty() {
            let scope = if selection.all_namespaces { Scoped::All } else { Scoped::Namespace };
            Bundles::Listed { scope, selector: selection.selector.clone(), class: options.class.clone() }
        } else {
            Bundles::Given(names.into_iter().map(Wanted::in_cluster).collect())
        };
        Ok(Self {
            bundles,
            namespace: selection.namespace.clone(),
            remarks,
            cluster_id: options.cluster_id.clone(),
            managed_by: options.managed_by.clone().unwrap_or_else(|| keys::DEFAULT_MANAGED_BY.to_owned()),
            strict: options.server_side_dry_run,
            timeout: options.clusters.connection.request_timeout.get(),
        })
    }

    /// Whether there may be several bundles.
    pub(in crate::commands) fn may_be_several(&self) -> bool {
        match &self.bundles {
            Bundles::Given(bundles) => bundles.len() > 1,
            Bundles::Listed { .. } => true,
        }
    }

    /// Takes the bundles that the command line names, those of the cluster once each. Those without a namespace are in
    /// `default`.
    pub(super) fn take_given(&mut self, default: &str) -> Vec<Wanted> {
        let Bundles::Given(bundles) = &mut self.bundles else { return Vec::new() };
        let mut bundles = std::mem::take(bundles);
        for wanted in &mut bundles {
            if wanted.key.namespace.is_empty() {
                default.clone_into(&mut wanted.key.namespace);
            }
        }
        let mut seen = BTreeSet::new();
        bundles.retain(|wanted| wanted.parts.is_some() || seen.insert(wanted.key.clone()));
        bundles
    }
}

impl Wanted {
    /// The ManagedResource and the Secrets as they are in the cluster.
    pub(super) fn in_cluster(key: NamespacedName) -> Self {
        Self { key, managed_resource: None, parts: None }
    }
}

fn from_files(files: FileContent, name: Option<&NamespacedName>) -> Result<Vec<Wanted>, DiffError> {
    if let Some((location, text)) = files.broken.first() {
        return Err(DiffError::Input(format!("{location}: {text} — correct the document")));
    }
    if files.managed_resources.is_empty() {
        let Some(key) = name.cloned() else {
            let text = "the files hold no ManagedResource — name the one they belong to: [<namespace>/]<name>";
            return Err(DiffError::Input(text.to_owned()));
        };
        let secrets = files.secrets.into_iter().map(|secret| (secret.location, Part::Secret(secret.object.into())));
        let manifests = files.manifests.into_iter().map(|it| (it.location, Part::Manifest(it.object)));
        let mut parts: Vec<_> = secrets.chain(manifests).collect();
        parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        let parts = Some(parts.into_iter().map(|(_, part)| part).collect());
        return Ok(vec![Wanted { key, managed_resource: None, parts }]);
    }
    if let Some(stray) = files.manifests.first() {
        let text = "manifests beside a ManagedResource are not part of it — give them alone, with a name, or pack them";
        return Err(DiffError::Input(format!("{}: {text}", stray.location)));
    }
    if name.is_some() && files.managed_resources.len() > 1 {
        let text = "the files hold several ManagedResources — a name can only mean one";
        return Err(DiffError::Input(text.to_owned()));
    }
    let mut secrets: Secrets = BTreeMap::new();
    for Located { object, .. } in files.secrets {
        let (name, namespace) = (object::name(&object).to_owned(), object::namespace(&object).to_owned());
        secrets.entry(name).or_default().entry(namespace).or_insert_with(|| object.into());
    }
    files.managed_resources.iter().map(|located| packed(located, name, &secrets)).collect()
}

/// The Secrets of files, by name and namespace; of several with the same, the first.
type Secrets = BTreeMap<String, BTreeMap<String, Rc<Value>>>;

fn packed(located: &Located, name: Option<&NamespacedName>, secrets: &Secrets) -> Result<Wanted, DiffError> {
    let mr = ManagedResource::from_value(&located.object)
        .map_err(|error| DiffError::Input(format!("{}: {error} — see the command validate", located.location)))?;
    let key = name.cloned().unwrap_or_else(|| mr.key());
    if key.name.is_empty() {
        let text = "the ManagedResource has no name — say which one it is: [<namespace>/]<name>";
        return Err(DiffError::Input(format!("{}: {text}", located.location)));
    }
    // Without a namespace in one of the two, the names alone must match.
    let of_file = |name: &str| {
        let named = secrets.get(name)?;
        let found = match key.namespace.as_str() {
            "" => named.values().next(),
            namespace => named.get(namespace).or_else(|| named.get("")),
        };
        found.map(|secret| Part::Secret(secret.clone()))
    };
    let parts =
        mr.secret_names().map(|name| of_file(name).unwrap_or_else(|| Part::InCluster(name.to_owned()))).collect();
    Ok(Wanted { key, managed_resource: Some(mr), parts: Some(parts) })
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wanted").field(&self.key).finish()
    }
}
