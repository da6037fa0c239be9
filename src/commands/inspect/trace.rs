//! `trace`: from an object of the target cluster to its ManagedResource, Secret and document.

use std::collections::BTreeSet;

use cluster::{
    ListQuery, Located, Resource,
    object::{self, GroupKind, GroupVersionKind, NamespacedName, ObjectKey},
};
use serde_json::{Value, json};

use super::{Clusters, Found, InspectError, found, report_of};
use crate::{
    actors::resource_manager::bundle::identity::{self, Equivalences},
    api::{
        kinds,
        resources::{keys::ORIGIN, origin::Origin},
    },
    cli::{TraceOptions, short_names::long_name},
    commands::{
        DIFFERENT, OK, Said,
        columns::{lines, plain},
        screen::Content,
    },
};

/// Where an object comes from.
struct Trace {
    /// Kind and name, as the user knows them.
    object: String,
    exists: bool,
    /// The value of the annotation.
    origin: Option<String>,
    owners: Vec<Owner>,
}

/// What is known of the object itself.
#[derive(Default)]
struct Live {
    exists: bool,
    /// The value of the annotation.
    origin: Option<String>,
    /// Kind and name of the owner that controls it.
    controller: Option<String>,
}

struct Owner {
    key: NamespacedName,
    is_named: bool,
    documents: Vec<Place>,
    /// Secrets whose documents are unknown, and why.
    unread: Vec<String>,
}

struct Place {
    secret: String,
    data_key: String,
    number: usize,
}

pub(in crate::commands) async fn trace(
    clusters: &Clusters,
    options: &TraceOptions,
    colours: bool,
) -> Result<Said, InspectError> {
    let (kind, name) = options.object.split_once('/').unwrap_or((&options.object, ""));
    let resource = clusters.kind(kind).await?;
    let namespace = options.namespace.as_deref().unwrap_or(&clusters.namespace);
    let namespace = if resource.namespaced { namespace } else { "" };
    let key = identity::index_key(&resource.group, &resource.kind, namespace, name);
    let Live { exists, origin, controller } = clusters.live(&resource, namespace, name).await?;
    let object = match namespace {
        "" => format!("{} {name}", resource.group_kind()),
        namespace => format!("{} {namespace}/{name}", resource.group_kind()),
    };
    let owners = clusters.owners(&key, origin.as_deref()).await?;
    let trace = Trace { object, exists, origin, owners };
    let (out, content) = match &options.report.output {
        Some(format) => (report_of(&trace.json(), format)?, Content::Data),
        None => (trace.text(colours), Content::Painted),
    };
    if trace.owners.is_empty() {
        let hint = match controller {
            Some(controller) => format!("; {controller} owns it — trace that"),
            None if exists => String::new(),
            None if resource.namespaced && options.namespace.is_none() => {
                ", and it does not exist — -n names another namespace".to_owned()
            }
            None => ", and it does not exist".to_owned(),
        };
        let remarks = vec![format!("error: no ManagedResource has {}{hint}", trace.object)];
        let out = if options.report.output.is_some() { out } else { String::new() };
        return Ok(Said { out, content, remarks, code: DIFFERENT });
    }
    Ok(Said { out, content, code: OK, ..Said::default() })
}

impl Clusters {
    /// Finds a kind by `Kind`, `plural`, `Kind.group` or a short name, in any case. Without a group, the core group comes
    /// first.
    async fn kind(&self, text: &str) -> Result<Resource, InspectError> {
        let text = long_name(text);
        let discovery = self.target.discovery();
        // The first question loads all kinds.
        let asked = discovery.mapping(&kinds::NAMESPACE.group_version_kind()).await;
        asked.map_err(|source| InspectError::ReadTarget { what: "the kinds".to_owned(), source })?;
        let served = discovery.served();
        let groups: BTreeSet<GroupKind> =
            served.iter().filter(|resource| resource.is_called(text)).map(Resource::group_kind).collect();
        let mut candidates = groups.iter();
        match (candidates.next(), candidates.next()) {
            (None, _) => Err(InspectError::Input(format!(
                "the target cluster serves no kind {text} — name the kind as in a manifest, or its plural; a group follows a \
                 dot, e.g. Deployment.apps/web"
            ))),
            (Some(first), second) if second.is_none() || first.group.is_empty() => {
                let preferred = discovery.known_preferred(first);
                preferred.ok_or_else(|| InspectError::Input(format!("the target cluster does not serve {first}")))
            }
            (Some(_), _) => {
                let all: Vec<String> = groups.iter().map(ToString::to_string).collect();
                Err(InspectError::Input(format!("{text} may be {} — name one of them", all.join(" or "))))
            }
        }
    }

    async fn live(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Live, InspectError> {
        let kind: GroupVersionKind = resource.group_version_kind();
        match self.target.metadata_only().locate(&self.context(), &kind, (namespace, name), 0).await {
            Ok(Located::At(_, object)) => {
                let origin = object::annotation(&object, ORIGIN).map(str::to_owned);
                Ok(Live { exists: true, origin, controller: controller(&object) })
            }
            Ok(Located::Nowhere(_)) => Ok(Live::default()),
            Err(source) => Err(InspectError::ReadTarget { what: format!("{} {name}", resource.kind), source }),
        }
    }

    /// Returns the ManagedResource of the origin if its status names the object, else all that name it or are its origin.
    async fn owners(&self, key: &ObjectKey, origin: Option<&str>) -> Result<Vec<Owner>, InspectError> {
        let origin = origin.and_then(|origin| origin.parse::<Origin>().ok()).map(|origin| origin.key);
        let mut owners = Vec::new();
        if let Some(origin) = &origin
            && let Some(found) = self.managed_resource(origin).await?
        {
            let owner = self.owner(key, &found).await;
            if owner.is_named {
                return Ok(vec![owner]);
            }
            owners.push(owner);
        }
        let mut pages = self.pages(kinds::MANAGED_RESOURCE, None, ListQuery::default());
        while let Some(page) = pages.next().await {
            let page = page.map_err(|source| InspectError::Read { what: "the ManagedResources".to_owned(), source })?;
            for raw in page.items {
                let Ok(found) = found(raw) else { continue };
                if Some(found.mr.key()) != origin && is_named(key, &found) {
                    owners.push(self.owner(key, &found).await);
                }
            }
        }
        Ok(owners)
    }

    async fn owner(&self, key: &ObjectKey, found: &Found) -> Owner {
        let equivalences = Equivalences::with(&found.mr.spec.equivalences);
        let is_it = |other: &ObjectKey| other == key || equivalences.of_key(key).any(|equivalent| equivalent == *other);
        let (mut documents, mut unread) = (Vec::new(), Vec::new());
        for content in self.contents(found).await {
            match content.documents {
                Err(error) => unread.push(format!("{}: {error}", content.name)),
                Ok(all) => documents.extend(all.into_iter().filter_map(|document| {
                    let (found, _) = document.object.ok()?;
                    let (data_key, number) = (document.data_key, document.number);
                    is_it(&found).then(|| Place { secret: content.name.clone(), data_key, number })
                })),
            }
        }
        Owner { key: found.mr.key(), is_named: is_named(key, found), documents, unread }
    }
}

/// Returns kind and name of the owner that controls an object, as `trace` takes them.
fn controller(object: &Value) -> Option<String> {
    let references = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = references.iter().find(|owner| owner["controller"] == true)?;
    let (kind, name) = (GroupVersionKind::of(owner)?, owner["name"].as_str()?);
    Some(format!("{}/{name}", kind.group_kind()))
}

fn is_named(key: &ObjectKey, found: &Found) -> bool {
    let equivalences = Equivalences::with(&found.mr.spec.equivalences);
    let is_it = |other: &ObjectKey| other == key || equivalences.of_key(key).any(|equivalent| equivalent == *other);
    found.mr.status.resources.iter().any(|reference| is_it(&reference.key()))
}

impl Trace {
    fn text(&self, colours: bool) -> String {
        let missing = if self.exists { "" } else { " (does not exist)" };
        let mut rows = vec![
            ("Object:", format!("{}{missing}", self.object)),
            ("Origin:", self.origin.clone().unwrap_or_else(|| "none".to_owned())),
        ];
        for owner in &self.owners {
            let note = if owner.is_named { "" } else { " (its status does not name the object)" };
            rows.push(("ManagedResource:", format!("{}{note}", owner.key)));
            for place in &owner.documents {
                rows.push(("Secret:", format!("{}/{}", owner.key.namespace, place.secret)));
                rows.push(("Document:", format!("{} of {}", place.number, place.data_key)));
            }
            rows.extend(owner.unread.iter().map(|text| ("Secret:", text.clone())));
            if owner.documents.is_empty() && owner.unread.is_empty() {
                rows.push(("Document:", "none".to_owned()));
            }
        }
        let rows: Vec<_> = rows.into_iter().map(|(name, value)| vec![plain(name), plain(value)]).collect();
        lines(&rows, "", colours)
    }

    fn json(&self) -> Value {
        let place =
            |place: &Place| json!({"secret": place.secret, "dataKey": place.data_key, "document": place.number});
        let owner = |owner: &Owner| {
            json!({
                "namespace": owner.key.namespace, "name": owner.key.name, "namedInStatus": owner.is_named,
                "documents": owner.documents.iter().map(place).collect::<Vec<_>>(), "errors": owner.unread,
            })
        };
        json!({
            "object": self.object, "exists": self.exists, "origin": self.origin,
            "managedResources": self.owners.iter().map(owner).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_names_the_owner_that_controls_an_object() {
        let owner = |kind: &str, controls: bool| json!({"apiVersion": "apps/v1", "kind": kind, "name": "web", "controller": controls});
        let of = |owners: Value| controller(&json!({"metadata": {"ownerReferences": owners}}));

        assert_eq!(of(json!([owner("A", false), owner("ReplicaSet", true)])).as_deref(), Some("ReplicaSet.apps/web"));
        assert_eq!(of(json!([owner("A", false)])), None);
        assert_eq!(of(json!([{"controller": true}])), None);
    }
}
