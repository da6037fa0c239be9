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

    pub(super) fn writes(&self) -> Vec<String> {
        let writes = self.requests.iter().filter(|request| !READS.contains(&request.info.verb.as_str()));
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
