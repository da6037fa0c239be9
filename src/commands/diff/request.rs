use std::{fmt, time::Duration};

use cluster::object::{self, NamespacedName};
use serde_json::Value;

use super::DiffError;
use crate::{
    api::resources::{keys, managed_resource::ManagedResource},
    cli::DiffOptions,
    commands::{
        bundles::{Bundles, Located},
        input::Source,
    },
};

/// What to compare.
#[derive(Debug)]
pub struct Request {
    pub(super) bundles: Vec<Wanted>,
    pub(super) remarks: Vec<String>,
    pub(super) cluster_id: String,
    pub(super) managed_by: String,
    /// Time limit of one request.
    pub(super) timeout: Duration,
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
    /// From a file.
    Secret(Value),
    InCluster(String),
}

impl Request {
    /// Fails if a document is not an object, or if it is not known which ManagedResource the files belong to.
    pub(in crate::commands) fn new(options: &DiffOptions, sources: &[Source]) -> Result<Self, DiffError> {
        let files = Bundles::of(sources);
        let remarks = files.manifests.iter().flat_map(|located| {
            located.warnings.iter().map(|warning| format!("warning: {}: {warning}", located.location))
        });
        let remarks = remarks.collect();
        let bundles = match &options.managed_resource {
            Some(key) => vec![Wanted { key: key.clone(), managed_resource: None, parts: None }],
            None => from_files(files, options.name.as_ref())?,
        };
        Ok(Self {
            bundles,
            remarks,
            cluster_id: options.cluster_id.clone(),
            managed_by: options.managed_by.clone().unwrap_or_else(|| keys::DEFAULT_MANAGED_BY.to_owned()),
            timeout: options.connection.request_timeout.get(),
        })
    }
}

fn from_files(files: Bundles, name: Option<&NamespacedName>) -> Result<Vec<Wanted>, DiffError> {
    if let Some((location, text)) = files.broken.first() {
        return Err(DiffError::Input(format!("{location}: {text} — correct the document")));
    }
    if files.managed_resources.is_empty() {
        let Some(key) = name.cloned() else {
            let text = "the files hold no ManagedResource — name the one they belong to: --name <namespace>/<name>";
            return Err(DiffError::Input(text.to_owned()));
        };
        let secrets = files.secrets.into_iter().map(|secret| (secret.location, Part::Secret(secret.object)));
        let manifests = files.manifests.into_iter().map(|it| (it.location, Part::Manifest(it.object)));
        let mut parts: Vec<_> = secrets.chain(manifests).collect();
        parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        let parts = Some(parts.into_iter().map(|(_, part)| part).collect());
        return Ok(vec![Wanted { key, managed_resource: None, parts }]);
    }
    if let Some(stray) = files.manifests.first() {
        let text = "manifests beside a ManagedResource are not part of it — give them alone, with --name, or pack them";
        return Err(DiffError::Input(format!("{}: {text}", stray.location)));
    }
    if name.is_some() && files.managed_resources.len() > 1 {
        let text = "the files hold several ManagedResources — --name can name only one";
        return Err(DiffError::Input(text.to_owned()));
    }
    files.managed_resources.iter().map(|located| packed(located, name, &files.secrets)).collect()
}

fn packed(located: &Located, name: Option<&NamespacedName>, secrets: &[Located]) -> Result<Wanted, DiffError> {
    let mr = ManagedResource::from_value(&located.object)
        .map_err(|error| DiffError::Input(format!("{}: {error} — see the command validate", located.location)))?;
    let key = name.cloned().unwrap_or_else(|| mr.key());
    if key.namespace.is_empty() || key.name.is_empty() {
        let text = "the ManagedResource has no namespace or name — say which one it is: --name <namespace>/<name>";
        return Err(DiffError::Input(format!("{}: {text}", located.location)));
    }
    let of_file = |name: &str| {
        let found = secrets.iter().find(|secret| {
            let namespace = object::namespace(&secret.object);
            object::name(&secret.object) == name && (namespace.is_empty() || namespace == key.namespace)
        });
        found.map(|secret| Part::Secret(secret.object.clone()))
    };
    let refs = mr.spec.secret_refs.iter();
    let parts = refs.map(|it| of_file(&it.name).unwrap_or_else(|| Part::InCluster(it.name.clone()))).collect();
    Ok(Wanted { key, managed_resource: Some(mr), parts: Some(parts) })
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wanted").field(&self.key).finish()
    }
}
