use std::sync::Arc;

use http::Method;
use serde_json::json;

use super::{
    documents,
    kinds::ServedKind,
    request::{Request, Target},
    state::{Answer, ApiState, Refusal},
    status::Failure,
    watch::WatchPlan,
};

pub(super) enum Reply {
    Body(Answer),
    Watch(Box<WatchPlan>),
}

impl ApiState {
    /// Carries out a request. `read_as_of` makes reads stale.
    pub(super) fn handle(&mut self, request: &Request, read_as_of: Option<u64>) -> Result<Reply, Refusal> {
        if let Some(answer) = self.while_starting(request) {
            return Ok(Reply::Body(answer?));
        }
        let answer = match &request.target {
            Target::Resource => return self.resource(request, read_as_of),
            Target::Version => documents::version(),
            Target::Health => documents::health(),
            Target::Groups { core } => self.groups(*core, request)?,
            Target::Group(group) => self.group(group)?,
            Target::GroupVersion { group, version } => self.group_version(group, version)?,
            Target::Unknown => return Err(Failure::page_not_found().into()),
        };
        Ok(Reply::Body(answer))
    }

    fn while_starting(&self, request: &Request) -> Option<Result<Answer, Failure>> {
        let starting = self.starting.as_ref().filter(|starting| !starting.is_ready())?;
        if matches!(request.target, Target::Health) {
            return Some(Ok(documents::unhealthy()));
        }
        starting.refusal(request, &self.registry).map(Err)
    }

    fn resource(&mut self, request: &Request, read_as_of: Option<u64>) -> Result<Reply, Refusal> {
        self.check_rights(request)?;
        let kind = self.resolve(request)?;
        let reply = self.resource_of(&kind, request, read_as_of)?;
        Ok(match (reply, &kind.warning) {
            (Reply::Body(answer), Some(warning)) => Reply::Body(answer.with_warnings(std::slice::from_ref(warning))),
            (reply, _) => reply,
        })
    }

    fn resource_of(
        &mut self,
        kind: &Arc<ServedKind>,
        request: &Request,
        read_as_of: Option<u64>,
    ) -> Result<Reply, Refusal> {
        let info = &request.info;
        let allowed = |verb: &str| kind.verbs.contains(&verb);
        if !info.subresource.is_empty() {
            return Ok(Reply::Body(self.subresource(kind, request)?));
        }
        if !allowed(&info.verb) {
            return Err(Failure::method_not_allowed().into());
        }
        if kind.is_review() {
            return Ok(Reply::Body(self.review(kind, request)?));
        }
        let reply = match (&request.method, info.name.is_empty()) {
            (&Method::GET, false) => Reply::Body(self.get(kind, request, read_as_of)?),
            (&Method::GET, true) if info.verb == "watch" => Reply::Watch(Box::new(self.watch(kind, request)?)),
            (&Method::GET, true) => Reply::Body(self.list(kind, request, read_as_of)?),
            (&Method::POST, true) => Reply::Body(self.create(kind, request)?),
            (&Method::PUT, false) => Reply::Body(self.replace(kind, request)?),
            (&Method::PATCH, false) => Reply::Body(self.patch(kind, request)?),
            (&Method::DELETE, false) => Reply::Body(self.delete(kind, request)?),
            (&Method::DELETE, true) => Reply::Body(self.delete_collection(kind, request)?),
            _ => return Err(Failure::method_not_allowed().into()),
        };
        Ok(reply)
    }

    /// Asks the reviewer about the rights of an impersonated user. Clients themselves may do everything.
    fn check_rights(&mut self, request: &Request) -> Result<(), Failure> {
        let info = &request.info;
        let Some(reviewer) = self.reviewer.as_mut().filter(|_| request.impersonated) else { return Ok(()) };
        let attributes = json!({
            "namespace": info.namespace, "verb": info.verb, "group": info.group, "version": info.version,
            "resource": info.resource, "subresource": info.subresource, "name": info.name,
        });
        let spec = json!({"user": info.user, "groups": request.groups, "resourceAttributes": attributes});
        if reviewer(&spec).0 {
            return Ok(());
        }
        let resource = match info.subresource.as_str() {
            "" => info.resource.clone(),
            subresource => format!("{}/{subresource}", info.resource),
        };
        match self.registry.find(&info.group, &info.version, &info.resource) {
            Some(kind) => {
                Err(Failure::not_allowed(&kind, &info.name, &info.user, &info.verb, &resource, &info.namespace))
            }
            None => Err(Failure::not_simulated("rights to resources that are not served")),
        }
    }

    fn resolve(&self, request: &Request) -> Result<Arc<ServedKind>, Failure> {
        let info = &request.info;
        let Some(kind) = self.registry.find(&info.group, &info.version, &info.resource) else {
            return Err(self.unknown(&info.group, &info.version));
        };
        if kind.namespaced && info.namespace.is_empty() {
            match (info.name.is_empty(), info.verb.as_str()) {
                (true, "list" | "watch") => {}
                (true, _) if kind.custom => return Err(Failure::page_not_found()),
                (true, _) => return Err(Failure::method_not_allowed()),
                (false, _) if kind.custom => return Err(Failure::page_not_found()),
                (false, _) => return Err(Failure::unknown_resource()),
            }
        }
        if !kind.namespaced && !info.namespace.is_empty() {
            return Err(if kind.custom { Failure::page_not_found() } else { Failure::unknown_resource() });
        }
        Ok(kind)
    }
}
