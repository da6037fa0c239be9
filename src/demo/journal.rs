use std::collections::BTreeMap;

use sim::Recorded;

const READS: [&str; 3] = ["get", "list", "watch"];

pub(super) struct Journal {
    requests: Vec<Recorded>,
}

impl Journal {
    pub(super) fn new(requests: Vec<Recorded>) -> Self {
        Self { requests }
    }

    /// Counts the requests by verb: `5 requests: 3 get, 2 update`.
    pub(super) fn counts(&self) -> String {
        let mut verbs = BTreeMap::<&str, usize>::new();
        for request in &self.requests {
            *verbs.entry(request.info.verb.as_str()).or_default() += 1;
        }
        let verbs: Vec<_> = verbs.iter().map(|(verb, count)| format!("{count} {verb}")).collect();
        match self.requests.len() {
            0 => "no request".to_owned(),
            1 => format!("1 request: {}", verbs.join(", ")),
            many => format!("{many} requests: {}", verbs.join(", ")),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Names the requests that store something. Reviews do not.
    pub(super) fn writes(&self) -> Vec<String> {
        let writes = self.requests.iter().filter(|request| {
            !READS.contains(&request.info.verb.as_str()) && !request.info.resource.ends_with("reviews")
        });
        writes.map(|request| format!("{} {}", request.info.verb, label(request))).collect()
    }

    pub(super) fn created(&self) -> impl Iterator<Item = (String, &str)> {
        let created = self.requests.iter().filter(|request| request.info.verb == "create" && request.code == Some(201));
        created.map(|request| (resource(request), request.info.namespace.as_str()))
    }

    pub(super) fn deleted(&self) -> Vec<(u64, String)> {
        let deleted = self.requests.iter().filter(|request| {
            request.info.verb == "delete" && request.code.is_some_and(|code| (200..300).contains(&code))
        });
        deleted.map(|request| (request.info.number, label(request))).collect()
    }

    /// Number of the last change of this ManagedResource, without changes of its status.
    pub(super) fn last_change_of(&self, bundle: &str) -> Option<u64> {
        let changes = self.requests.iter().rev().map(|request| &request.info).find(|info| {
            let changes = matches!(info.verb.as_str(), "patch" | "update");
            changes && info.subresource.is_empty() && info.resource == "managedresources" && info.name == bundle
        });
        changes.map(|info| info.number)
    }
}

fn resource(request: &Recorded) -> String {
    let info = &request.info;
    if info.group.is_empty() { info.resource.clone() } else { format!("{}.{}", info.resource, info.group) }
}

fn label(request: &Recorded) -> String {
    let info = &request.info;
    if info.name.is_empty() { info.resource.clone() } else { format!("{}/{}", info.resource, info.name) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn journal_names_writes_but_neither_reads_nor_reviews() {
        let sim = sim::Sim::new(sim::SimOptions::new(kit::Clock::system(), kit::Random::from_entropy()));
        let client = sim.client();
        let (group, review) = ("authentication.k8s.io", json!({"spec": {"token": "t"}}));
        for (path, kind, body) in [
            (format!("/apis/{group}/v1/tokenreviews"), format!("{group}/v1 TokenReview"), review),
            ("/api/v1/namespaces".to_owned(), "v1 Namespace".to_owned(), json!({"metadata": {"name": "n"}})),
        ] {
            let (api_version, kind) = kind.split_once(' ').unwrap();
            let mut object = json!({"apiVersion": api_version, "kind": kind});
            object.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            let request = http::Request::post(path).header("content-type", "application/json");
            client.request::<Value>(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap();
        }
        client.request_text(http::Request::get("/api/v1/namespaces").body(Vec::new()).unwrap()).await.unwrap();

        let journal = Journal::new(sim.requests());

        assert_eq!(journal.writes(), ["create namespaces"]);
        assert_eq!(journal.counts(), "3 requests: 2 create, 1 list");
    }
}
