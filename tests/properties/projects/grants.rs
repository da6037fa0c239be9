use std::collections::{BTreeMap, BTreeSet};

use gardener_resource_manager::actors::controller_manager::{
    project::{
        cached::Project,
        namespace::ProjectId,
        roles::{is_stale, rows},
    },
    rbac::{RbacState, RbacVerdict},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::merged;

const GROUP: &str = "rbac.authorization.k8s.io";
const NAMES: [&str; 3] = ["a", "b", "c"];
const ROLES: [&str; 9] = [
    "admin",
    "owner",
    "uam",
    "viewer",
    "serviceaccountmanager",
    "extension:foo",
    "extension:bar",
    "extension:",
    "Admin",
];

/// Objects by kind, namespace and name.
type Objects = BTreeMap<(String, String, String), Value>;

fn key(object: &Value) -> (String, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

/// What the server has, after each wanted object is settled as the controller does, and stale roles are deleted.
fn settled(mut objects: Objects, project: &Project) -> Objects {
    let id = ProjectId { name: "dev", uid: "u1" };
    for wanted in rows(id, project, "garden-dev").into_iter().flatten() {
        let key = key(wanted.object());
        let after = match objects.remove(&key) {
            None => wanted.object().clone(),
            Some(live) => match wanted.judge(&RbacState::of(&live)) {
                RbacVerdict::Keep => live,
                RbacVerdict::Patch(patch) => merged(live, &patch),
                RbacVerdict::Replace => wanted.object().clone(),
                RbacVerdict::Ending => panic!("nothing is being deleted"),
            },
        };
        assert_eq!(wanted.judge(&RbacState::of(&after)), RbacVerdict::Keep, "{after}");
        objects.insert(key, after);
    }
    let roles = project.extension_roles();
    objects.retain(|(kind, namespace, name), object| {
        let is_looked_at = kind == "ClusterRole" || namespace == "garden-dev";
        !(is_looked_at && is_stale("dev", &roles, name, &RbacState::of(object)))
    });
    objects
}

/// The ClusterRoles of other components (spec 82 A.7.1), and those that extension roles collect.
fn foreign_roles() -> Vec<Value> {
    let rule = |verb: &str, resource: &str| json!([{"apiGroups": ["x"], "resources": [resource], "verbs": [verb]}]);
    let role = |name: &str, labels: Value, rules: Value| json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules});
    let collected = |role: &str| json!({"rbac.gardener.cloud/aggregate-to-extension-role": role});
    vec![
        role("gardener.cloud:system:project-member", json!({}), rule("create", "shoots")),
        role("gardener.cloud:system:project-viewer", json!({}), rule("get", "shoots")),
        role("gardener.cloud:system:project-serviceaccountmanager", json!({}), rule("create", "serviceaccounts")),
        role("extension-foo", collected("foo"), rule("use", "foos")),
        role("extension-bar", collected("bar"), rule("use", "bars")),
        role("extension-baz", collected("baz"), rule("use", "bazs")),
    ]
}

/// Fills the rules of aggregated ClusterRoles, as kube-controller-manager does.
fn aggregated(objects: &Objects) -> Objects {
    let mut filled = objects.clone();
    for role in filled.values_mut().filter(|role| role["kind"] == "ClusterRole" && role["aggregationRule"].is_object())
    {
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array().cloned().unwrap_or_default();
        let is_collected = |other: &&Value| {
            let labels = &other["metadata"]["labels"];
            let matches = |selector: &Value| {
                selector["matchLabels"]
                    .as_object()
                    .is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value))
            };
            other["kind"] == "ClusterRole" && selectors.iter().any(matches)
        };
        let rules = objects
            .values()
            .filter(is_collected)
            .flat_map(|other| other["rules"].as_array().cloned().unwrap_or_default());
        role["rules"] = rules.collect();
    }
    filled
}

/// Someone who asks.
#[derive(Debug, Clone, Copy)]
enum Asker {
    User(&'static str),
    Group(&'static str),
    Account(&'static str),
}

/// A request to a resource: namespace (empty for cluster scope), group, resource, name and verb.
type Request = (&'static str, &'static str, &'static str, &'static str, &'static str);

const REQUESTS: [Request; 21] = [
    ("", "core.gardener.cloud", "projects", "dev", "get"),
    ("", "core.gardener.cloud", "projects", "dev", "patch"),
    ("", "core.gardener.cloud", "projects", "dev", "update"),
    ("", "core.gardener.cloud", "projects", "dev", "delete"),
    ("", "core.gardener.cloud", "projects", "dev", "manage-members"),
    ("", "core.gardener.cloud", "projects", "dev", "create"),
    ("", "core.gardener.cloud", "projects", "other", "get"),
    ("", "", "namespaces", "garden-dev", "get"),
    ("", "", "namespaces", "garden-dev", "delete"),
    ("", "", "namespaces", "garden-other", "get"),
    ("", "", "secrets", "x", "get"),
    ("garden-dev", "", "secrets", "x", "get"),
    ("garden-dev", "x", "shoots", "s", "create"),
    ("garden-dev", "x", "shoots", "s", "get"),
    ("garden-other", "x", "shoots", "s", "get"),
    ("", "x", "shoots", "s", "get"),
    ("garden-dev", "x", "serviceaccounts", "s", "create"),
    ("garden-dev", "x", "foos", "s", "use"),
    ("garden-dev", "x", "bars", "s", "use"),
    ("garden-dev", "x", "bazs", "s", "use"),
    ("", "x", "foos", "s", "use"),
];

impl Asker {
    fn all() -> impl Iterator<Item = Self> {
        let names = NAMES.into_iter().chain(["thief"]);
        names.flat_map(|name| [Self::User(name), Self::Group(name), Self::Account(name)])
    }

    /// As a member or owner names it.
    fn matches(self, subject: &Value) -> bool {
        let is = |kind: &str, name: &str| subject["kind"] == kind && subject["name"] == name;
        match self {
            Self::User(name) => is("User", name),
            Self::Group(name) => is("Group", name),
            Self::Account(name) => is("ServiceAccount", name) && subject["namespace"] == "garden-dev",
        }
    }
}

fn allows(rules: &Value, (_, group, resource, name, verb): Request) -> bool {
    let has =
        |list: &Value, wanted: &str| list.as_array().into_iter().flatten().any(|entry| entry == wanted || entry == "*");
    rules.as_array().into_iter().flatten().any(|rule| {
        let names = rule["resourceNames"].as_array().cloned().unwrap_or_default();
        has(&rule["apiGroups"], group)
            && has(&rule["resources"], resource)
            && has(&rule["verbs"], verb)
            && (names.is_empty() || names.iter().any(|entry| entry == name))
    })
}

/// Evaluates RBAC as an API server does.
fn is_allowed(objects: &Objects, asker: Asker, request: Request) -> bool {
    objects.values().any(|binding| {
        let is_in_scope = match binding["kind"].as_str() {
            Some("ClusterRoleBinding") => true,
            Some("RoleBinding") => !request.0.is_empty() && binding["metadata"]["namespace"] == request.0,
            _ => false,
        };
        let is_bound = binding["subjects"].as_array().into_iter().flatten().any(|subject| asker.matches(subject));
        let role = (
            "ClusterRole".to_owned(),
            String::new(),
            binding["roleRef"]["name"].as_str().unwrap_or_default().to_owned(),
        );
        is_in_scope && is_bound && objects.get(&role).is_some_and(|role| allows(&role["rules"], request))
    })
}

/// What spec 82 A.7 grants, read from the spec of the Project.
fn is_granted(spec: &Value, asker: Asker, request: Request) -> bool {
    let is_owner = asker.matches(&spec["owner"]);
    let roles: BTreeSet<&str> = spec["members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|member| asker.matches(member))
        .flat_map(|member| {
            std::iter::once(&member["role"])
                .chain(member["roles"].as_array().into_iter().flatten())
                .filter_map(Value::as_str)
        })
        .collect();
    let has = |wanted: &[&str]| wanted.iter().any(|role| roles.contains(role));
    let (is_uam, is_viewer, is_member) = (has(&["uam"]), has(&["viewer"]), has(&["admin", "owner"]));
    match request {
        ("", "core.gardener.cloud", "projects", "dev", verb) => match verb {
            "get" => is_owner || is_uam || is_member || is_viewer,
            "patch" | "update" => is_owner || is_uam || is_member,
            "delete" => is_owner || is_member,
            "manage-members" => is_owner || is_uam,
            _ => false,
        },
        ("", "", "namespaces", "garden-dev", "get") => is_owner || is_member || is_viewer,
        ("garden-dev", "x", "shoots", _, "create") => is_member,
        ("garden-dev", "x", "shoots", _, "get") => is_viewer,
        ("garden-dev", "x", "serviceaccounts", _, "create") => is_owner || has(&["serviceaccountmanager", "owner"]),
        ("garden-dev", "x", "foos", _, "use") => has(&["extension:foo"]),
        ("garden-dev", "x", "bars", _, "use") => has(&["extension:bar"]),
        _ => false,
    }
}

fn subject() -> impl Strategy<Value = Value> {
    let named = |kind: &'static str| {
        prop::sample::select(NAMES.to_vec()).prop_map(move |name| json!({"kind": kind, "name": name}))
    };
    let account = named("ServiceAccount").prop_map(|mut account| {
        account["namespace"] = json!("garden-dev");
        account
    });
    let explicit = named("User").prop_map(|mut user| {
        user["apiGroup"] = json!(GROUP);
        user
    });
    prop_oneof![named("User"), explicit, named("Group"), account]
}

fn member() -> impl Strategy<Value = Value> {
    let role = || prop::sample::select(ROLES.to_vec());
    (subject(), prop::option::of(role()), prop::collection::vec(role(), 0..4)).prop_map(|(mut member, role, roles)| {
        member["role"] = json!(role);
        member["roles"] = json!(roles);
        member
    })
}

fn spec() -> impl Strategy<Value = Value> {
    (prop::option::of(subject()), prop::collection::vec(member(), 0..5))
        .prop_map(|(owner, members)| json!({"owner": owner, "members": members, "namespace": "garden-dev"}))
}

/// What may have happened to an object that carries a name of the Project.
fn damage() -> impl Strategy<Value = Value> {
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let thief = json!([{"kind": "User", "name": "thief"}, {"kind": "Group", "name": "a"}]);
    let changes = vec![
        json!({"rules": everything}),
        json!({"rules": null}),
        json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"rbac.gardener.cloud/aggregate-to-extension-role": "baz"}}]}}),
        json!({"aggregationRule": null}),
        json!({"subjects": thief}),
        json!({"subjects": null}),
        json!({"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "extension-baz"}}),
        json!({"metadata": {"labels": {"rbac.gardener.cloud/aggregate-to-extension-role": "foo", "x": "y"}}}),
        json!({"metadata": {"labels": null, "ownerReferences": [{"uid": "u2"}], "annotations": {"a": "b"}}}),
    ];
    prop::sample::select(changes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// spec 82 A.7, A.8: whatever existed before, members can do what the spec of the Project says, and nobody can do more.
    #[test]
    fn project_grants_exactly_what_the_specification_says(
        before in spec(),
        spec in spec(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), damage(), any::<bool>()), 0..8),
    ) {
        let project = |spec: &Value| Project::of(&json!({"metadata": {"name": "dev", "uid": "u1"}, "spec": spec}));
        let mut objects: Objects = foreign_roles().into_iter().map(|role| (key(&role), role)).collect();
        let foreign = objects.clone();
        objects = settled(objects, &project(&before));
        let own: Vec<_> = objects.keys().filter(|key| !foreign.contains_key(*key)).cloned().collect();
        for (index, damage, is_deleted) in damages {
            let key = &own[index.index(own.len())];
            let is_fitting = damage.get("metadata").is_some()
                || (key.0 == "ClusterRole") == (damage.get("rules").is_some() || damage.get("aggregationRule").is_some());
            if is_deleted {
                objects.remove(key);
            } else if let Some(object) = objects.get_mut(key).filter(|_| is_fitting) {
                *object = merged(object.take(), &damage);
            }
        }

        let after = settled(objects, &project(&spec));

        prop_assert!(foreign.iter().all(|(key, role)| after.get(key) == Some(role)), "foreign roles stay");
        prop_assert_eq!(&settled(after.clone(), &project(&spec)), &after);
        let filled = aggregated(&after);
        for asker in Asker::all() {
            for request in REQUESTS {
                let (allowed, granted) = (is_allowed(&filled, asker, request), is_granted(&spec, asker, request));
                prop_assert_eq!(allowed, granted, "{:?} {:?}", asker, request);
            }
        }
    }
}
