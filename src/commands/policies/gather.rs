use std::time::Duration;

use cluster::{
    ApiError, Cluster, Context, ListQuery, Resource, Serving,
    object::{NamespacedName, field_mut},
};
use kit::{Deadline, Priority};

use super::super::CommandError;
use crate::{
    actors::resource_manager::network_policy::{
        plan::plan,
        policy::{SERVICE_NAME, SERVICE_NAMESPACE},
        rules::Rules,
        snapshot::Snapshot,
    },
    api::{kinds, meta::selector::Selector},
};

const TIME: Duration = Duration::from_secs(120);

struct Gathering<'a> {
    cluster: &'a Cluster,
    context: Context,
    snapshot: Snapshot,
}

/// Returns what the policies of a Service depend on, or `None` if the Service does not exist and has left no policies.
pub(in crate::commands) async fn gather(
    cluster: &Cluster,
    service: &NamespacedName,
    rules: &Rules,
) -> Result<Option<Snapshot>, CommandError> {
    let context = Context::new(Priority::High, Deadline::after(TIME), service.to_string());
    let mut gathering = Gathering { cluster, context, snapshot: Snapshot::default() };
    let selector = format!("{SERVICE_NAME}={},{SERVICE_NAMESPACE}={}", service.name, service.namespace);
    let is_there = gathering.one(kinds::SERVICE.at(&*service.namespace, &*service.name)).await?;
    gathering.list(&kinds::NETWORK_POLICY, None, ListQuery::labelled(selector)).await?;
    if !is_there {
        let has_left_some = !gathering.snapshot.policies_of(service).is_empty();
        return Ok(Some(gathering.snapshot).filter(|_| has_left_some));
    }
    gathering.what_is_around(service, rules).await?;
    gathering.policies_without_labels(service, rules).await?;
    Ok(Some(gathering.snapshot))
}

impl Gathering<'_> {
    async fn what_is_around(&mut self, service: &NamespacedName, rules: &Rules) -> Result<(), CommandError> {
        let own = Some(service.namespace.clone());
        self.list(&kinds::NAMESPACE, None, metadata()).await?;
        if rules.ingress_controller.is_some() {
            self.list(&kinds::INGRESS, own.clone(), ListQuery::default()).await?;
        }
        self.list(&kinds::VIRTUAL_SERVICE, own, ListQuery::default()).await?;
        for gateway in self.snapshot.gateways_of(service) {
            self.one(kinds::GATEWAY.named(&gateway)).await?;
        }
        if rules.only_for_matching_pods {
            self.list(&kinds::POD, None, metadata()).await?;
            for kind in crate::actors::resource_manager::network_policy::snapshot::templates() {
                self.list(&kind, None, ListQuery::default()).await?;
            }
            return Ok(());
        }
        let selectors = self.snapshot.gateway_selectors().into_iter();
        let selectors: Vec<String> = selectors.filter_map(Selector::to_query).collect();
        for selector in selectors {
            self.list(&kinds::POD, None, ListQuery { label_selector: Some(selector), ..metadata() }).await?;
        }
        Ok(())
    }

    /// Reads policies without labels that have a wanted name: the controller would adopt them.
    async fn policies_without_labels(&mut self, service: &NamespacedName, rules: &Rules) -> Result<(), CommandError> {
        let Ok(plan) = plan(service, rules, &self.snapshot) else { return Ok(()) };
        for policy in plan.desired.policies {
            if !self.snapshot.has_policy(&policy.name) {
                self.one(kinds::NETWORK_POLICY.named(&policy.name)).await?;
            }
        }
        Ok(())
    }

    async fn one(&mut self, at: cluster::ObjectRef) -> Result<bool, CommandError> {
        match self.cluster.find(&self.context, &at).await {
            Ok(Some(object)) => Ok(self.snapshot.add(&object)),
            Ok(None) => Ok(false),
            Err(error) if self.is_absent(&at.resource, &error).await => Ok(false),
            Err(error) => Err(CommandError::Usage(format!("cannot read {at}: {error}"))),
        }
    }

    /// Asks discovery whether a request failed because the kind is not served: the answer alone does not show it.
    async fn is_absent(&self, kind: &Resource, error: &ApiError) -> bool {
        let look_up = async || self.cluster.discovery().look_up(&kind.group_version_kind(), 0).await;
        error.is_not_served() && matches!(look_up().await, Ok(Serving::Absent(_)))
    }

    async fn list(&mut self, kind: &Resource, scope: Option<String>, query: ListQuery) -> Result<(), CommandError> {
        let mut pages = self.cluster.pages(self.context.clone(), kind.clone(), scope, query);
        while let Some(page) = pages.next().await {
            match page {
                Ok(page) => page.items.into_iter().for_each(|mut object| {
                    *field_mut(&mut object, &["apiVersion"]) = kind.group_version_kind().api_version().into();
                    *field_mut(&mut object, &["kind"]) = kind.kind.to_string().into();
                    self.snapshot.add(&object);
                }),
                Err(error) if self.is_absent(kind, &error).await => return Ok(()),
                Err(error) => return Err(CommandError::Usage(format!("cannot list {}: {error}", kind.plural))),
            }
        }
        Ok(())
    }
}

fn metadata() -> ListQuery {
    ListQuery { metadata_only: true, ..ListQuery::default() }
}
