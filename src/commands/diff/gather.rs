//! Asks the controller's own functions what they would do. The write fence is closed: only dry runs are sent.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{
    ApiError, ListQuery, Resource, Serving,
    object::{self, GroupVersionKind, NamespacedName, ObjectKey},
};
use kit::{Clock, Random};
use serde_json::Value;

use super::{
    Action, Change, DiffError, Report, Request,
    clusters::{Clusters, Owners, context},
    owners::Claimed,
    request::{Bundles, Part, Scoped, Wanted},
};
use crate::{
    actors::resource_manager::{
        bundle::{
            hpa,
            identity::{self, Equivalences},
            merge::{self, MergeContext, MergeSettings},
            normalise::{Scope, normalise_namespace},
            plan::{self, Plan, PlannedObject},
            up_to_date,
        },
        managed_resource::{
            OWN_MANAGER,
            clean::{self, Exclusion, itself},
            scope_of, served,
        },
    },
    api::{
        kinds,
        resources::{
            keys,
            managed_resource::{ManagedResource, ResourceRef},
            origin::Origin,
            side::Side,
        },
    },
    commands::{bundles::called, connect, decoding::Decoding},
    producer::{decode::SecretData, unique},
};

/// How the objects of a bundle are compared.
struct Comparison<'a> {
    bundle: &'a Bundle,
    request: &'a Request,
    origin: Origin,
    equivalences: Equivalences,
    kinds: Kinds,
    /// Namespaces that the bundle itself creates.
    namespaces: BTreeSet<String>,
}

struct Bundle {
    key: NamespacedName,
    mr: ManagedResource,
    uid: String,
    documents: Vec<Value>,
    decoding_failed: bool,
    before: BTreeMap<ObjectKey, Value>, // the manifests in the cluster; empty if they are also the wanted ones
}

type Kinds = BTreeMap<GroupVersionKind, Option<Resource>>;

/// Hands a report of each bundle to `sink`. Objects that cannot be applied are part of the report. Fails if something
/// cannot be read; among several bundles only if the cluster cannot be reached.
pub async fn compare(
    source: kube::Client,
    target: kube::Client,
    mut request: Request,
    mut sink: impl FnMut(Report) -> Result<(), DiffError>,
) -> Result<(), DiffError> {
    let namespace = source.default_namespace().to_owned();
    let (clock, random) = (Clock::system(), Random::from_entropy());
    let cluster =
        |client, side| connect::read_only(client, side, clock.clone(), random.clone()).limited(request.timeout);
    let (source, target) = (cluster(source, Side::Source), cluster(target, Side::Target));
    let clusters = Clusters { source, target, owners: Owners::default() };
    let mut remarks = std::mem::take(&mut request.remarks);
    let bundles = clusters.wanted(&mut request, &namespace).await?;
    let is_one = bundles.len() == 1;
    for wanted in bundles {
        let remarks = std::mem::take(&mut remarks);
        let mut report = Report { bundle: wanted.key.clone(), remarks, ..Report::default() };
        match clusters.compare_one(&wanted, &request, &mut report).await {
            Ok(()) => {}
            Err(error) if is_one || error.is_lost() => return Err(error),
            Err(error) => report.fail(error.to_string()),
        }
        sink(report)?;
    }
    Ok(())
}

impl Clusters {
    /// Returns the bundles. Those that the command line does not name are listed.
    async fn wanted(&self, request: &mut Request, default: &str) -> Result<Vec<Wanted>, DiffError> {
        let default = request.namespace.clone().unwrap_or_else(|| default.to_owned());
        let Bundles::Listed { scope, selector, class } = &request.bundles else {
            return Ok(request.take_given(&default));
        };
        let scope = if *scope == Scoped::All { None } else { Some(default) };
        let location = scope.as_ref().map_or_else(String::new, |namespace| format!(" of namespace {namespace}"));
        let query = ListQuery { label_selector: selector.clone(), ..ListQuery::default() };
        let mut pages = self.source.pages(context(), kinds::MANAGED_RESOURCE, scope, query);
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            let what = || format!("the ManagedResources{location}");
            let page = page.map_err(|source| DiffError::Read { what: what(), source })?;
            let is_meant = |object: &&Value| class.as_ref().is_none_or(|class| class_of(object) == class);
            keys.extend(page.items.iter().filter(is_meant).map(NamespacedName::of));
        }
        if keys.is_empty() {
            let class = class.as_ref().map(|class| format!(" of the class {class:?}")).unwrap_or_default();
            let labels = selector.as_ref().map(|selector| format!(" with the labels {selector}")).unwrap_or_default();
            return Err(DiffError::Input(format!("there are no ManagedResources{location}{class}{labels}")));
        }
        Ok(keys.into_iter().map(Wanted::in_cluster).collect())
    }

    async fn compare_one(&self, wanted: &Wanted, request: &Request, report: &mut Report) -> Result<(), DiffError> {
        let bundle = self.bundle(wanted, report).await?;
        self.compare(&bundle, request, report).await
    }

    async fn bundle(&self, wanted: &Wanted, report: &mut Report) -> Result<Bundle, DiffError> {
        let key = &wanted.key;
        let live = self.managed_resource(key).await?;
        if live.is_none() && wanted.parts.is_none() {
            let text = "check name, namespace and kubeconfig; files are given with -f";
            return Err(DiffError::Input(match connect::lacks_managed_resources(&self.source).await {
                true => connect::not_served(),
                false => format!("there is no ManagedResource {key} — {text}"),
            }));
        }
        let live = live.unwrap_or_default();
        let mut mr = wanted.managed_resource.clone().unwrap_or_else(|| live.clone());
        mr.status = live.status.clone();
        let uid = live.metadata.uid.clone();
        if live.is_ignored() {
            report.remarks.push(format!("warning: {key} has the annotation {}: nothing is applied", keys::IGNORE));
        }
        if live.is_deleting() {
            report.remarks.push(format!("warning: {key} is being deleted, and its objects with it"));
        }
        let mut bundle = Bundle {
            key: key.clone(),
            mr,
            uid,
            documents: Vec::new(),
            decoding_failed: false,
            before: BTreeMap::new(),
        };

        if bundle.mr.secret_names().count() < bundle.mr.spec.secret_refs.len() {
            let text = "names a Secret again in spec.secretRefs; its objects would be applied in turn — name it once";
            report.remarks.push(format!("warning: {key} {text}"));
        }
        let mut decoding = Decoding::default();
        let Some(parts) = &wanted.parts else {
            for name in live.secret_names() {
                bundle.decode(&self.secret(key, name).await?, &mut decoding, report)?;
            }
            return Ok(bundle);
        };
        for part in parts {
            match part {
                Part::Manifest(manifest) => bundle.documents.push(manifest.clone()),
                Part::Secret(secret) => bundle.decode(secret, &mut decoding, report)?,
                Part::InCluster(name) => bundle.decode(&self.secret(key, name).await?, &mut decoding, report)?,
            }
        }
        self.before(&mut bundle, &live).await?;
        Ok(bundle)
    }

    /// Reads the manifests of the current Secrets: fields that only they set are meant to be removed.
    async fn before(&self, bundle: &mut Bundle, live: &ManagedResource) -> Result<(), DiffError> {
        let mut decoding = Decoding::default();
        for name in live.secret_names() {
            let key = NamespacedName::new(&bundle.key.namespace, name);
            let Some(secret) = self.find(&self.source, &kinds::SECRET, &key).await? else { continue };
            let Ok(data) = unique::content(&secret) else { continue };
            let secret = SecretData { namespace: &key.namespace, name, data: &data };
            decoding.decode(secret, |read| {
                if let Ok(document) = read {
                    bundle.before.insert(identity::key_of_object(&document.manifest), document.manifest);
                }
            });
        }
        Ok(())
    }

    async fn compare(&self, bundle: &Bundle, request: &Request, report: &mut Report) -> Result<(), DiffError> {
        let equivalences = Equivalences::with(&bundle.mr.spec.equivalences);
        let origin = Origin::new(request.cluster_id.clone(), bundle.key.clone());
        let merging = MergeSettings::new(&bundle.mr.spec, &origin, &request.managed_by);
        let kinds = self.kinds(bundle).await?;
        let mut claimed = Claimed::default();
        let mut plan = plan::plan(plan::Input {
            documents: bundle.documents.clone(),
            old: &bundle.mr.status.resources,
            equivalences: &equivalences,
            labels: &merging.labels,
            incomplete: bundle.decoding_failed,
            scope: &|kind| scope(&kinds, kind),
        });
        for key in &plan.duplicates {
            report.remarks.push(format!("warning: several manifests of {key}; all would be applied in turn"));
        }
        let scaled = self.scaled(&plan).await?;
        let namespaces = plan.objects.iter().filter(|it| it.key.group.is_empty() && it.key.kind == "Namespace");
        let namespaces = namespaces.map(|it| it.key.name.clone()).collect();
        let of = Comparison { bundle, request, origin, equivalences, kinds, namespaces };
        plan.objects.sort_by_cached_key(|object| object.key.to_string());
        for planned in &plan.objects {
            let is_scaled = hpa::is_scalable(&planned.key.group_kind())
                && (scaled.contains(&planned.key)
                    || of.equivalences.of_key(&planned.key).any(|key| scaled.contains(&key)));
            let context = merging.context(planned.old.as_ref(), is_scaled);
            self.object(&of, planned, &context, &mut claimed, report).await?;
        }
        claimed.end(report);
        for reference in &plan.removed {
            self.removed(bundle, reference, &of.origin, &of.kinds, report).await?;
        }
        for reference in &plan.released {
            if let Some(live) = self.live(reference, &of.kinds).await?
                && clean::release_patch(&live, &of.origin.to_string()).is_some()
            {
                report.changes.push(Change::named(Action::Released, reference.to_string()));
            }
        }
        Ok(())
    }

    async fn object(
        &self,
        of: &Comparison<'_>,
        planned: &PlannedObject,
        context: &MergeContext<'_>,
        claimed: &mut Claimed,
        report: &mut Report,
    ) -> Result<(), DiffError> {
        let display = called(&planned.manifest);
        if let Some(error) = &planned.error {
            report.fail(format!("{display}: {error}"));
            return Ok(());
        }
        let resource = GroupVersionKind::of(&planned.manifest).and_then(|kind| of.kinds.get(&kind)?.as_ref());
        let live = match resource {
            Some(resource) => self.find(&self.target, resource, &NamespacedName::of(&planned.manifest)).await?,
            None => {
                report.remarks.push(format!("warning: {display}: the target does not serve this kind yet"));
                None
            }
        };
        if let Some(live) = &live {
            let object = (display.as_str(), &planned.key, live);
            self.warn_of_owner(object, (&of.origin, &of.equivalences), claimed, report).await;
        }
        let merged = match &live {
            Some(live) => merge::merge(&planned.manifest, live, context),
            None => merge::for_create(&planned.manifest, context),
        };
        match (merged, live) {
            (Err(error), _) => report.fail(format!("{display}: {error}")),
            (Ok(merged), None) => self.created(of, resource, (display, merged), report).await,
            (Ok(merged), Some(live)) => {
                let before = of.bundle.before.get(&planned.key);
                let expected = up_to_date::expected(&merged, &live, before, OWN_MANAGER);
                let change = Change::between(display.clone(), &live, &expected);
                let change = match self.would_become(resource, &merged).await {
                    Ok(after) => Change::between(display, &live, &after),
                    Err(error) if of.request.strict && (change.action.is_difference() || !error.is_invalid()) => {
                        report.fail(format!("{}: the server does not answer the dry run: {error}", change.object));
                        change
                    }
                    Err(error) => {
                        report.only_expected(&change, &error);
                        change
                    }
                };
                report.changes.push(change);
            }
        }
        Ok(())
    }

    /// Reports a new object: as it would be sent, or with `--server-side-dry-run` as the server would store it.
    async fn created(
        &self,
        of: &Comparison<'_>,
        resource: Option<&Resource>,
        (display, merged): (String, Value),
        report: &mut Report,
    ) {
        let Some(resource) = resource.filter(|_| of.request.strict) else {
            return report.changes.push(Change::created(display, &merged));
        };
        let namespace = object::namespace(&merged);
        let at = resource.at(namespace, object::name(&merged));
        match self.target.try_create(&context(), &at, &merged).await {
            Ok(stored) => report.changes.push(Change::created(display, &stored)),
            Err(error) => {
                if error.code() == Some(404) && of.namespaces.contains(namespace) {
                    report.remarks.push(format!(
                        "warning: {display}: the server cannot check it, because its Namespace does not exist yet"
                    ));
                } else {
                    report.fail(format!("{display}: the server would not create it: {error}"));
                }
                report.changes.push(Change::created(display, &merged));
            }
        }
    }

    /// Only the server knows which fields other attempts left and what admission does now (spec 10 §11.3, decision 40).
    async fn would_become(&self, resource: Option<&Resource>, merged: &Value) -> Result<Value, ApiError> {
        let resource = resource.ok_or_else(|| ApiError::BadRequest("its kind is not served".to_owned()))?;
        let at = resource.at(object::namespace(merged), object::name(merged));
        self.target.try_replace(&context(), &at, merged).await
    }

    async fn removed(
        &self,
        bundle: &Bundle,
        reference: &ResourceRef,
        origin: &Origin,
        kinds: &Kinds,
        report: &mut Report,
    ) -> Result<(), DiffError> {
        let Some(live) = self.live(reference, kinds).await? else { return Ok(()) };
        let display = reference.to_string();
        let stays = match clean::exclusion_of_object(&live, true) {
            Some(Exclusion::KeepObject) => Some(format!("annotation {}", keys::KEEP_OBJECT)),
            Some(Exclusion::GarbageCollectable) => Some("left to the garbage collector, if it is enabled".to_owned()),
            None => match self.part_of_itself(bundle, reference, &live).await? {
                Some(why) => Some(why.to_owned()),
                None => match clean::other_owner(object::annotation(&live, keys::ORIGIN), origin) {
                    Some(owner) => self.managed_resource(&owner).await?.map(|_| format!("belongs to {owner} now")),
                    None => None,
                },
            },
        };
        report.changes.push(match stays {
            Some(why) => Change::kept(display, why),
            None => Change::named(Action::Deleted, display),
        });
        Ok(())
    }

    /// If the object is a part of the bundle itself, returns why it stays (spec 10 §13.7).
    async fn part_of_itself(
        &self,
        bundle: &Bundle,
        reference: &ResourceRef,
        live: &Value,
    ) -> Result<Option<&'static str>, DiffError> {
        let key = reference.key();
        if itself::is_managed_resource(&key) {
            return Ok((object::uid(live) == bundle.uid).then_some("it is the ManagedResource itself"));
        }
        if !itself::is_named_secret(&bundle.mr, &bundle.key, &key) {
            return Ok(None);
        }
        let secret = self.find(&self.source, &kinds::SECRET, &NamespacedName::new(&key.namespace, &key.name)).await?;
        let is_own = secret.is_some_and(|secret| object::uid(&secret) == object::uid(live));
        Ok(is_own.then_some("the bundle reads its manifests from it"))
    }

    async fn live(&self, reference: &ResourceRef, kinds: &Kinds) -> Result<Option<Value>, DiffError> {
        let kind = reference.group_version_kind();
        let Some(resource) = kinds.get(&kind).and_then(Option::as_ref) else { return Ok(None) };
        let mut manifest = serde_json::json!({"kind": kind.kind, "metadata": {"namespace": reference.namespace}});
        normalise_namespace(&mut manifest, scope(kinds, &kind));
        let key = NamespacedName::new(object::namespace(&manifest), &reference.name);
        self.find(&self.target, resource, &key).await
    }

    async fn kinds(&self, bundle: &Bundle) -> Result<Kinds, DiffError> {
        let manifests = bundle.documents.iter();
        let served = served(self.target.discovery(), manifests, &bundle.mr.status.resources).await.into_iter();
        let entered = served.map(|(kind, resource)| match resource {
            Ok(resource) => Ok((kind, resource)),
            Err(ApiError::NoMatch(_)) => Ok((kind, None)),
            Err(source) => Err(DiffError::Read { what: format!("how the target serves {kind}"), source }),
        });
        entered.collect()
    }

    /// Returns the objects that autoscalers scale, if the bundle has scalable objects.
    async fn scaled(&self, plan: &Plan) -> Result<BTreeSet<ObjectKey>, DiffError> {
        if !plan.objects.iter().any(|object| hpa::is_scalable(&object.key.group_kind())) {
            return Ok(BTreeSet::new());
        }
        let kind = GroupVersionKind::new("autoscaling", "v1", "HorizontalPodAutoscaler");
        let failed = |source| DiffError::Read { what: "HorizontalPodAutoscalers".to_owned(), source };
        let resource = match self.target.discovery().serving(&kind).await.map_err(failed)? {
            Serving::Served(resource) => resource,
            Serving::Absent(_) => return Ok(BTreeSet::new()),
        };
        let mut scaled = BTreeSet::new();
        let mut pages = self.target.pages(context(), resource, None, ListQuery::default());
        while let Some(page) = pages.next().await {
            // An autoscaler whose target cannot be read scales nothing.
            scaled.extend(page.map_err(failed)?.items.iter().filter_map(|found| hpa::scale_target(found).ok()));
        }
        Ok(scaled)
    }
}

fn class_of(managed_resource: &Value) -> &str {
    let class = managed_resource.pointer("/spec/class").and_then(Value::as_str).unwrap_or_default();
    if class.is_empty() { keys::DEFAULT_CLASS } else { class }
}

fn scope(kinds: &Kinds, kind: &GroupVersionKind) -> Scope {
    scope_of(kinds.get(kind).and_then(Option::as_ref))
}

impl Bundle {
    fn decode(&mut self, secret: &Value, decoding: &mut Decoding, report: &mut Report) -> Result<(), DiffError> {
        let name = NamespacedName::of(secret);
        let data = unique::content(secret)
            .map_err(|error| DiffError::Unreadable { what: format!("Secret {name}"), cause: error.to_string() })?;
        let secret = SecretData { namespace: &name.namespace, name: &name.name, data: &data };
        decoding.decode(secret, |read| match read {
            Ok(document) => {
                report.remarks.extend(document.warnings.iter().map(|warning| format!("warning: {warning}")));
                self.documents.push(document.manifest);
            }
            Err(error) => {
                self.decoding_failed = true;
                report.fail(format!("{error} Nothing is deleted meanwhile"));
            }
        });
        Ok(())
    }
}
