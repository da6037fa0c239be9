//! From a ManagedResource to its plan: read the Secrets, decode, look up the kinds, plan (spec 10 §9.1 to §9.6).

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::{
    ApiError, Discovery, Resource, Serving,
    object::{GroupKind, GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::{Failure, JobPanicked, Moment};
use serde_json::Value;

use super::{
    super::{
        known::{CachedManagedResource, Named},
        record::{DocumentPlace, Documents},
        report::status,
    },
    run::Run,
};
use crate::{
    actors::resource_manager::bundle::{
        checksum::checksum,
        decode::{self, DecodeError, Decoded, LabelWarning, ManifestDocument, SecretData},
        hpa,
        identity::Equivalences,
        merge::MergeSettings,
        normalise::Scope,
        plan::{self, Plan, PlannedObject},
    },
    api::resources::{
        keys::BROTLI_SUFFIX,
        managed_resource::{ResourceRef, SecretRef},
    },
};

/// How many times larger manifests usually are than their compressed form. Decides where to decode them.
const USUAL_RATIO: usize = 32;

/// The manifests of a ManagedResource, as its Secrets describe them now.
pub(crate) struct Bundle {
    pub(crate) secrets: Vec<(String, u64)>,
    pub(crate) plan: Plan,
    pub(crate) checksum: String,
    pub(crate) errors: Vec<DecodeError>,
    warnings: Vec<LabelWarning>,
    pub(crate) merging: Rc<MergeSettings>,
    pub(crate) equivalences: Equivalences,
    /// Where each manifest is, by its number.
    places: Vec<DocumentPlace>,
    /// How the target serves the kinds; `None` if it does not, or if that is unknown.
    kinds: BTreeMap<GroupVersionKind, Option<Resource>>,
    /// See [`Kinds::uncertain`].
    pub(crate) uncertain: Option<String>,
}

/// A Secret that could not be read, or could not be decoded for a reason outside its data.
#[derive(Debug)]
pub(crate) struct ReadError {
    secret: String,
    /// The text of the condition (spec 10 §9.1).
    text: String,
}

struct Source {
    namespace: String,
    name: String,
    data: Arc<BTreeMap<String, Vec<u8>>>,
}

#[derive(Default)]
struct Kinds {
    served: BTreeMap<GroupVersionKind, Option<Resource>>,
    /// Why some kind is unknown. Objects without a known scope may seem to have left the manifests (spec 10 §9.3).
    uncertain: Option<String>,
}

pub(crate) async fn read(run: &Run<'_>) -> Result<Bundle, ReadError> {
    let (secrets, sources) = read_secrets(run, &run.reconcile.key.namespace, &run.mr().spec.secret_refs).await?;
    let sources = Arc::new(sources);
    let decoded = decode_all(run, sources.clone()).await.map_err(|panicked| ReadError::decoder(run, panicked))?;
    let kinds = kinds_of(run, &decoded).await;
    let (mut bundle, kept) = planned(run, secrets, decoded, kinds);
    // A data key counts once for each of its manifests: with many manifests that is much more than the data itself.
    let lengths: Vec<usize> = data_keys(&sources).iter().map(|data| data.len()).collect();
    let size = kept.iter().filter_map(|index| lengths.get(*index)).sum();
    let sum = move || {
        let data_keys = data_keys(&sources);
        checksum(kept.iter().filter_map(|index| data_keys.get(*index).copied()))
    };
    let summed = run.controller.env.cpu.run(size, sum).await;
    bundle.checksum = summed.map_err(|panicked| ReadError::decoder(run, panicked))?;
    Ok(bundle)
}

/// Returns the objects that another ManagedResource gives away, by its Secrets now; none if they are unknown.
pub(crate) async fn given_away(run: &Run<'_>, bundle: &NamespacedName) -> BTreeSet<ObjectKey> {
    let known = run.controller.bundles.store().with(bundle, CachedManagedResource::managed_resource);
    let Some(Ok(mr)) = known else { return BTreeSet::new() };
    let read = read_secrets(run, &bundle.namespace, &mr.spec.secret_refs).await;
    let Ok((_, sources)) = read else { return BTreeSet::new() };
    let Ok(decoded) = decode_all(run, Arc::new(sources)).await else { return BTreeSet::new() };
    let discovery = run.controller.target.discovery();
    let manifests = decoded.documents.into_iter().map(|document| document.manifest).collect();
    plan::given_away(manifests, &|kind| scope_of(discovery.known(kind).as_ref()))
}

/// Reads Secrets in the order in which a ManagedResource names them. A Secret that is named twice is read once.
async fn read_secrets(
    run: &Run<'_>,
    namespace: &str,
    references: &[SecretRef],
) -> Result<(Vec<(String, u64)>, Vec<Source>), ReadError> {
    let mut known = BTreeMap::<&str, (u64, Arc<_>)>::new();
    let (mut secrets, mut sources) = (Vec::new(), Vec::new());
    for reference in references {
        let secret = reference.name.as_str();
        let (version, data) = match known.get(secret) {
            Some(read) => read.clone(),
            None => {
                let name = NamespacedName::new(namespace, secret);
                let read = run.controller.secrets.read(&run.context, &name).await;
                let read = read.map_err(|error| ReadError::request(secret, &error))?;
                let read = (read.version, Arc::new(read.data));
                known.insert(secret, read.clone());
                read
            }
        };
        secrets.push((secret.to_owned(), version));
        sources.push(Source { namespace: namespace.to_owned(), name: secret.to_owned(), data });
    }
    Ok((secrets, sources))
}

fn data_keys(sources: &[Source]) -> Vec<&[u8]> {
    sources.iter().flat_map(|source| source.data.values()).map(Vec::as_slice).collect()
}

/// Returns the estimated decoded size: text shrinks to a twentieth, a bomb much more, which the decoder bounds.
fn decoded_size(key: &str, data: &[u8]) -> usize {
    if key.ends_with(BROTLI_SUFFIX) { data.len().saturating_mul(USUAL_RATIO) } else { data.len() }
}

async fn decode_all(run: &Run<'_>, sources: Arc<Vec<Source>>) -> Result<Decoded, JobPanicked> {
    let size = sources.iter().flat_map(|source| source.data.iter()).map(|(key, data)| decoded_size(key, data)).sum();
    let decode = move || {
        decode::decode(sources.iter().map(|Source { namespace, name, data }| SecretData { namespace, name, data }))
    };
    run.controller.env.cpu.run(size, decode).await
}

async fn kinds_of(run: &Run<'_>, decoded: &Decoded) -> Kinds {
    let manifests = decoded.documents.iter().map(|document| &document.manifest);
    let mut kinds = Kinds::default();
    for (kind, resource) in served(run.controller.target.discovery(), manifests, &run.mr().status.resources).await {
        if let Err(error) = &resource {
            tracing::debug!(kind = %kind, error = %error, "the target does not serve a kind");
            if !error.is_no_match() {
                kinds.uncertain.get_or_insert_with(|| error.to_string());
            }
        }
        kinds.served.insert(kind, resource.ok().flatten());
    }
    kinds
}

/// Returns how the kinds of manifests and of old references are served; `None` for an old kind that is not.
pub(crate) async fn served(
    discovery: &Discovery,
    manifests: impl Iterator<Item = &Value>,
    old: &[ResourceRef],
) -> Vec<(GroupVersionKind, Result<Option<Resource>, ApiError>)> {
    let manifests: BTreeSet<_> = manifests.filter_map(GroupVersionKind::of).collect();
    let old: BTreeSet<_> = old.iter().map(ResourceRef::group_version_kind).collect();
    let old: Vec<_> = old.difference(&manifests).cloned().collect();
    let mut served = Vec::new();
    for kind in manifests {
        let mapping = discovery.mapping(&kind).await;
        served.push((kind, mapping.map(Some)));
    }
    // An existing object may be served in another version than the one in which it was applied.
    for kind in old {
        let serving = discovery.serving(&kind).await;
        let resource = serving.map(|serving| match serving {
            Serving::Served(resource) => Some(resource),
            Serving::Absent(_) => None,
        });
        served.push((kind, resource));
    }
    served
}

/// Returns the plan, still without its checksum, and the data keys of the kept manifests, by position.
fn planned(run: &Run<'_>, secrets: Vec<(String, u64)>, decoded: Decoded, kinds: Kinds) -> (Bundle, Vec<usize>) {
    let mr = run.mr();
    let equivalences = Equivalences::with(&mr.spec.equivalences);
    let merging =
        Rc::new(MergeSettings::new(&mr.spec, &run.origin(), &run.controller.settings.apply.managed_by_label_value));
    let Kinds { served: kinds, uncertain } = kinds;
    let scope = |kind: &GroupVersionKind| scope_of(kinds.get(kind).and_then(Option::as_ref));
    let Decoded { mut documents, errors, warnings } = decoded;
    let plan = plan::plan(plan::Input {
        documents: documents.iter_mut().map(|document| std::mem::take(&mut document.manifest)).collect(),
        old: &mr.status.resources,
        equivalences: &equivalences,
        labels: &merging.labels,
        incomplete: !errors.is_empty() || uncertain.is_some(),
        scope: &scope,
    });
    let kept = plan.objects.iter().filter_map(|object| Some(documents.get(object.document)?.raw)).collect();
    let place = |document: ManifestDocument| {
        let ManifestDocument { secret, data_key, index, .. } = document;
        DocumentPlace { secret, data_key, index }
    };
    let places = documents.into_iter().map(place).collect();
    let checksum = String::new();
    (Bundle { secrets, plan, checksum, errors, warnings, merging, equivalences, places, kinds, uncertain }, kept)
}

pub(crate) fn scope_of(resource: Option<&Resource>) -> Scope {
    match resource {
        Some(resource) if resource.namespaced => Scope::Namespaced,
        Some(_) => Scope::Cluster,
        None => Scope::Unknown,
    }
}

impl Bundle {
    /// Registers the owned objects and starts their watches. Returns the moments to wait for while these start.
    pub(crate) fn watch_kinds(&self, run: &Run<'_>) -> Vec<Moment> {
        let controller = run.controller;
        let old = run.mr().status.resources.iter().map(ResourceRef::key);
        let keys = self.plan.objects.iter().map(|object| object.key.clone()).chain(old).collect();
        controller.objects.register(&run.reconcile.key, keys);
        self.note_documents(run);
        let spec = &run.mr().spec;
        let (labels, annotations) = (spec.force_overwrite_labels, spec.force_overwrite_annotations);
        let named = |object: &PlannedObject| {
            (object.key.clone(), Named::of(&object.reference, object.old.as_ref(), labels, annotations))
        };
        controller.objects.name(&run.reconcile.key, self.plan.objects.iter().map(named));
        for resource in self.kinds.values().flatten() {
            controller.objects.watch(resource);
        }
        let kinds: BTreeSet<GroupKind> = self.kinds.keys().map(GroupVersionKind::group_kind).collect();
        let starting = controller.objects.starting(&kinds);
        controller.autoscalers.start();
        starting
    }

    pub(crate) fn log_warnings(&self) {
        for warning in &self.warnings {
            tracing::warn!(warning = %warning, "labels or annotations of a manifest are ignored");
        }
        for key in &self.plan.duplicates {
            tracing::warn!(object = %key, "several manifests describe one object; all are applied in turn");
        }
    }

    pub(crate) fn is_scalable(&self) -> bool {
        self.plan.objects.iter().any(|object| hpa::is_scalable(&object.key.group_kind()))
    }

    fn note_documents(&self, run: &Run<'_>) {
        let place = |object: &PlannedObject| {
            Some((run.controller.objects.shared(&object.key), self.places.get(object.document)?.clone()))
        };
        run.record.documents.replace(Documents::of(self.plan.objects.iter().filter_map(place)));
    }

    /// Returns the place of a document in words.
    pub(crate) fn place(&self, document: usize) -> String {
        let place = self.places.get(document);
        place
            .map(|DocumentPlace { secret, data_key, index }| {
                format!("document at index {index} in '{data_key}' in secret '{secret}'")
            })
            .unwrap_or_default()
    }

    pub(crate) fn all_kinds_known(&self) -> bool {
        let mut kinds = self.plan.objects.iter().map(|object| object.reference.group_version_kind());
        kinds.all(|kind| self.resource(&kind).is_some())
    }

    pub(crate) fn resource(&self, kind: &GroupVersionKind) -> Option<&Resource> {
        self.kinds.get(kind).and_then(Option::as_ref)
    }
}

impl ReadError {
    fn decoder(run: &Run<'_>, panicked: JobPanicked) -> Self {
        let first = run.mr().spec.secret_refs.first();
        let secret = first.map(|reference| reference.name.clone()).unwrap_or_default();
        Self { secret, text: panicked.to_string() }
    }

    /// A missing Secret is named, other errors stay as they are.
    fn request(secret: &str, error: &ApiError) -> Self {
        let text = if error.is_not_found() { format!("Secret \"{secret}\" not found") } else { error.to_string() };
        Self { secret: secret.to_owned(), text }
    }
}

impl Run<'_> {
    /// Reports a Secret that cannot be read (spec 10 §9.1). Returns the error of the reconcile.
    pub(crate) async fn secret_unreadable(&mut self, error: ReadError) -> Failure {
        let ReadError { secret, text } = error;
        if let Err(failure) = self.write_status(|status, now| status::secret_unreadable(status, &text, now)).await {
            return failure;
        }
        self.reconcile.note("a Secret cannot be read");
        Failure::new(format!("could not read secret '{secret}': {text}"))
    }
}
