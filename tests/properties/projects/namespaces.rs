use gardener_resource_manager::actors::controller_manager::project::namespace::{
    NamespaceState, NamespaceVerdict, ProjectId, Release, adoption_patch, disown_patch, judge_namespace, judge_release,
    new_namespace, release_patch,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::merged;

const NAME: &str = "garden-x";
const OWNER: &str = "namespace.gardener.cloud/project";
const ORIGIN: &str = "namespace.gardener.cloud/created-by-project-controller";
const ROLE: &str = "gardener.cloud/role";
const PROJECT: &str = "project.gardener.cloud/name";

/// Projects that want the Namespace; the last is another instance of the first.
const PROJECTS: [ProjectId<'static>; 3] =
    [ProjectId { name: "p", uid: "p1" }, ProjectId { name: "q", uid: "q1" }, ProjectId { name: "p", uid: "p2" }];

#[derive(Debug, Clone)]
enum Step {
    /// A reconcile of a Project that lives.
    Reconcile(usize),
    /// A reconcile of a deleted Project.
    Release(usize),
    /// Somebody edits the Namespace.
    Edit(Value),
    /// The Namespace ends.
    End,
    /// Somebody creates a Namespace.
    Appear(Value),
}

/// Returns the Project that the marks of a Namespace name: labels and uid.
fn marks(namespace: &Value) -> (Value, Value) {
    let metadata = &namespace["metadata"];
    let labels = json!([metadata["labels"][ROLE], metadata["labels"][PROJECT]]);
    (labels, metadata["annotations"][OWNER].clone())
}

fn metadata() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(vec![json!("project"), Value::Null, json!("shoot")]);
    let project = prop::sample::select(vec![json!("p"), json!("q"), Value::Null]);
    let owner = prop::sample::select(vec![json!("p1"), json!("q1"), json!("p2"), json!("x"), json!(""), Value::Null]);
    let origin = prop::sample::select(vec![json!("true"), Value::Null]);
    let owners =
        prop::sample::select(vec![Value::Null, json!([{"uid": "p1"}]), json!([{"uid": "x", "controller": true}])]);
    let deletion = prop::sample::select(vec![Value::Null, Value::Null, Value::Null, json!("2026-01-01T00:00:00Z")]);
    (role, project, owner, origin, owners, deletion).prop_map(|(role, project, owner, origin, owners, deletion)| {
        json!({
            "labels": {ROLE: role, PROJECT: project, "a": "b"}, "annotations": {OWNER: owner, ORIGIN: origin, "c": "d"},
            "ownerReferences": owners, "deletionTimestamp": deletion,
        })
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PROJECTS.len()).prop_map(Step::Reconcile),
        2 => (0..PROJECTS.len()).prop_map(Step::Release),
        2 => metadata().prop_map(|metadata| Step::Edit(json!({"metadata": metadata}))),
        1 => Just(Step::End),
        1 => metadata().prop_map(|mut metadata| {
            metadata["name"] = json!(NAME);
            Step::Appear(json!({"metadata": metadata}))
        }),
    ]
}

fn judged(project: ProjectId<'static>, namespace: Option<&Value>) -> Result<NamespaceVerdict, String> {
    let state = namespace.map(NamespaceState::of);
    judge_namespace(project, NAME, state.as_ref()).map_err(|refusal| refusal.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// spec 82 N5 to N8, A.10 step 5: a Namespace gets a new owner only from whoever labels it, and after the old owner's
    /// mark is gone. Nothing is deleted that was not created for the Project.
    #[test]
    fn no_sequence_of_events_lets_a_project_take_a_foreign_namespace(steps in prop::collection::vec(step(), 1..20)) {
        let mut namespace: Option<Value> = None;
        for step in steps {
            let before = namespace.clone();
            match step {
                Step::Appear(new) => { namespace.get_or_insert(new); }
                Step::End => namespace = None,
                Step::Edit(patch) => namespace = namespace.map(|live| merged(live, &patch)),
                Step::Reconcile(index) => {
                    let project = PROJECTS[index];
                    match (judged(project, before.as_ref()), before) {
                        (Ok(NamespaceVerdict::Create), None) => namespace = Some(new_namespace(project, NAME)),
                        (Ok(NamespaceVerdict::Create), Some(_)) => prop_assert!(false, "it exists"),
                        (verdict, Some(live)) => {
                            let patch = adoption_patch(project, &live);
                            let (labels, owner) = marks(&live);
                            let is_deleting = live["metadata"]["deletionTimestamp"].is_string();
                            let may_have = labels == json!(["project", project.name])
                                && (owner.is_null() || owner == project.uid) && !is_deleting;
                            prop_assert_eq!(patch.is_some(), verdict == Ok(NamespaceVerdict::Adopt));
                            prop_assert!(may_have || patch.is_none(), "{} takes {}", project.uid, live);
                            prop_assert_eq!(may_have, matches!(verdict, Ok(NamespaceVerdict::Keep | NamespaceVerdict::Adopt)));
                            let after = patch.map_or(live.clone(), |patch| merged(live.clone(), &patch));
                            prop_assert_eq!(&marks(&after).0, &labels, "labels come from others");
                            prop_assert_eq!(&after["metadata"]["labels"]["a"], &live["metadata"]["labels"]["a"]);
                            prop_assert_eq!(&after["metadata"]["annotations"]["c"], &live["metadata"]["annotations"]["c"]);
                            prop_assert!(!may_have || judged(project, Some(&after)) == Ok(NamespaceVerdict::Keep));
                            namespace = Some(after);
                        }
                        (_, None) => {}
                    }
                }
                Step::Release(index) => {
                    let project = PROJECTS[index];
                    let state = before.as_ref().map(NamespaceState::of);
                    let Some(live) = before else { continue };
                    let (labels, owner) = marks(&live);
                    let is_own = labels == json!(["project", project.name]) && (owner.is_null() || owner == project.uid);
                    match judge_release(project, NAME, state.as_ref()) {
                        Release::Gone => prop_assert!(false, "it exists"),
                        Release::Foreign => {}
                        Release::Ending => prop_assert!(live["metadata"]["deletionTimestamp"].is_string()),
                        Release::Keep => {
                            prop_assert!(is_own, "{} releases {}", project.uid, live);
                            let after = merged(live.clone(), &release_patch(project, &live));
                            let again = judge_release(project, NAME, Some(&NamespaceState::of(&after)));
                            prop_assert_eq!(again, Release::Foreign);
                            prop_assert_eq!(&after["metadata"]["labels"]["a"], &live["metadata"]["labels"]["a"]);
                            namespace = Some(after);
                        }
                        Release::Disown => {
                            prop_assert!(!is_own, "{} disowns {}", project.uid, live);
                            let after = merged(live.clone(), &disown_patch(project, &live));
                            let again = judge_release(project, NAME, Some(&NamespaceState::of(&after)));
                            prop_assert_eq!(again, Release::Foreign);
                            prop_assert_eq!(&after["metadata"]["labels"], &live["metadata"]["labels"]);
                            prop_assert_eq!(&after["metadata"]["annotations"], &live["metadata"]["annotations"]);
                            namespace = Some(after);
                        }
                        Release::Delete => {
                            prop_assert!(is_own && live["metadata"]["annotations"][ORIGIN].is_string(), "{}", live);
                            namespace = None;
                        }
                    }
                }
            }
        }
    }
}
