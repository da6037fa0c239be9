//! ResourceQuotas in namespaces of Projects leave room for what Gardener itself creates.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::{Map, Value, json};
use sim::{EventFault, Fault, Seen};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
};
use crate::log_capture::logged;

const NAMESPACE: &str = "garden-dev";

/// Keys of `spec.hard`: Shoots, ConfigMaps, Secrets.
const KEYS: [&str; 3] = ["count/shoots.core.gardener.cloud", "count/configmaps", "count/secrets"];

/// Annotations for ConfigMaps and Secrets.
const NOTES: [&str; 2] = ["quota.gardener.cloud/configmaps-per-shoot", "quota.gardener.cloud/secrets-per-shoot"];

/// Values by [`KEYS`], and by [`NOTES`].
type State = ([Option<&'static str>; 3], [Option<&'static str>; 2]);

/// Puts the Project `dev` with its Namespace.
pub(super) fn put_dev(garden: &Garden) {
    garden.put(object(&kinds::NAMESPACE, "", NAMESPACE, json!({})));
    garden.put(object(&kinds::PROJECT, "", "dev", json!({ "spec": { "namespace": NAMESPACE } })));
}

fn fields<const N: usize>(keys: [&str; N], values: [Option<&str>; N]) -> Map<String, Value> {
    keys.into_iter().zip(values).filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect()
}

pub(super) fn quota(namespace: &str, name: &str, (hard, notes): State) -> Value {
    let fields = json!({
        "metadata": { "annotations": fields(NOTES, notes) },
        "spec": { "hard": fields(KEYS, hard) },
    });
    object(&kinds::RESOURCE_QUOTA, namespace, name, fields)
}

fn is_in(garden: &Garden, namespace: &str, name: &str, (hard, notes): State) -> bool {
    let quota = garden.find(&kinds::RESOURCE_QUOTA, namespace, name).expect("the ResourceQuota exists");
    let annotations = quota["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    quota["spec"]["hard"] == json!(fields(KEYS, hard)) && annotations == fields(NOTES, notes)
}

const ALIGNED: [Option<&str>; 2] = [Some("2"), Some("4")];

/// spec 82 B.3, scenarios 29, 31, 33 and 35
#[test]
fn project_quotas_leave_room_for_what_shoots_need() {
    let table: [(&str, State, State); 7] = [
        ("too-small", ([Some("1"), Some("1"), Some("2")], [None; 2]), ([Some("1"), Some("2"), Some("4")], ALIGNED)),
        ("sufficient", ([Some("1"), Some("2"), Some("4")], [None; 2]), ([Some("1"), Some("2"), Some("4")], ALIGNED)),
        (
            "more",
            ([Some("10"), Some("10"), Some("30")], [Some("1"), Some("3")]),
            ([Some("10"), Some("20"), Some("40")], ALIGNED),
        ),
        (
            "less",
            ([Some("10"), Some("10"), Some("30")], [Some("3"), Some("5")]),
            ([Some("10"), Some("10"), Some("30")], ALIGNED),
        ),
        (
            "no-secrets",
            ([Some("3"), Some("6"), None], [None, Some("1")]),
            ([Some("3"), Some("6"), None], [Some("2"), None]),
        ),
        (
            "no-integer",
            ([Some("1"), Some("1"), Some("1")], [Some("abc"), Some("abc")]),
            ([Some("1"), Some("2"), Some("4")], ALIGNED),
        ),
        (
            "notation",
            ([Some("1k"), Some("1500m"), Some("1")], [None; 2]),
            ([Some("1k"), Some("2k"), Some("4k")], ALIGNED),
        ),
    ];
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        for (name, before, _) in table {
            garden.put(quota(NAMESPACE, name, before));
        }

        for (name, _, after) in table {
            garden.soon(name, || is_in(&garden, NAMESPACE, name, after)).await;
        }
        garden.settle().await;

        let mut asked = garden.asked();
        asked.sort_unstable();
        let mut patches: Vec<_> = table.iter().map(|(name, ..)| format!("patch resourcequotas {name}")).collect();
        patches.sort_unstable();
        assert_eq!(asked, patches, "one request for each");
        for (name, _, after) in table {
            assert!(is_in(&garden, NAMESPACE, name, after), "{name}");
        }
    });
}

/// spec 82 scenario 30; spec 80 §16 S-9
#[test]
fn project_quota_that_limits_neither_costs_no_request() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        let limits_shoots = ([Some("3"), None, None], [None; 2]);
        garden.put(quota(NAMESPACE, "shoots", limits_shoots));
        garden.put(quota(NAMESPACE, "aligned", ([Some("3"), Some("1"), Some("1")], ALIGNED)));
        garden.put(object(&kinds::RESOURCE_QUOTA, NAMESPACE, "empty", json!({})));
        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
        assert!(is_in(&garden, NAMESPACE, "shoots", limits_shoots));
    });
}

/// spec 82 B.3 step 2, scenario 32
#[test]
fn project_quota_without_a_limit_of_shoots_counts_them() {
    garden(|garden| async move {
        put_dev(&garden);
        for (namespace, name) in [(NAMESPACE, "a"), (NAMESPACE, "b"), (NAMESPACE, "c"), ("garden-devel", "d")] {
            garden.put(shoot(namespace, name, json!({})));
        }
        garden.settled().await;

        garden.put(quota(NAMESPACE, "q", ([None, Some("5"), Some("20")], [None; 2])));

        let after = ([None, Some("6"), Some("20")], ALIGNED);
        garden.soon("it is aligned", || is_in(&garden, NAMESPACE, "q", after)).await;
        assert_eq!(garden.asked(), ["patch resourcequotas q"]);
    });
}

/// spec 82 B.3 step 2: a cache that is not fresh does not tell how many Shoots there are.
#[test]
fn project_quota_waits_while_shoots_cannot_be_counted() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_dev(&garden);
            garden.settled().await;
            garden.sim.set_faults(|info| match info.resource == "shoots" && ["list", "watch"].contains(&&*info.verb) {
                true => Fault::FailBefore(Seen::internal_error("no shoots")),
                false => Fault::None,
            });
            garden.sim.break_watches(sim::WatchEnd::Disconnect);
            tokio::time::sleep(Duration::from_secs(300)).await;
            garden.put(shoot(NAMESPACE, "unseen", json!({})));
            let before = ([None, Some("1"), None], [None; 2]);
            garden.put(quota(NAMESPACE, "q", before));
            garden.settle().await;
            assert!(is_in(&garden, NAMESPACE, "q", before));

            garden.sim.clear_faults();

            tokio::time::sleep(Duration::from_secs(300)).await;
            assert!(is_in(&garden, NAMESPACE, "q", ([None, Some("2"), None], [Some("2"), None])));
        });
    });
    let text = "error aligning resource quota \"q\" in namespace \"garden-dev\": could not get maximum shoots in project: \
                could not list shoots in project namespace \"garden-dev\": ";
    assert!(log.replace("\\\"", "\"").contains(text), "{log}");
}

/// spec 82 B.2, scenario 34, decision 24: a Project with another namespace has none.
#[test]
fn project_quota_is_aligned_when_a_project_takes_its_namespace() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            let (before, after) =
                (([Some("1"), Some("1"), Some("1")], [None; 2]), ([Some("1"), Some("2"), Some("4")], ALIGNED));
            for namespace in [NAMESPACE, "kube-system"] {
                garden.put(quota(namespace, "q", before));
            }
            garden.settled().await;
            garden.put(quota(NAMESPACE, "r", before));
            garden.put(object(&kinds::PROJECT, "", "dev", json!({ "spec": {} })));
            garden.put(object(&kinds::PROJECT, "", "bad", json!({ "spec": { "namespace": "kube-system" } })));
            garden.settle().await;
            assert_eq!(garden.asked_for("resourcequotas"), Vec::<String>::new());

            garden.patch(&kinds::PROJECT, "", "dev", json!({ "spec": { "namespace": NAMESPACE } })).await;

            for name in ["q", "r"] {
                garden.soon(name, || is_in(&garden, NAMESPACE, name, after)).await;
            }
            garden.settle().await;
            assert!(is_in(&garden, "kube-system", "q", before));
        });
    });
    let is_error = |line: &&str| line.contains("ERROR") && line.contains("project-resourcequota");
    assert_eq!(log.lines().find(is_error), None);
}

/// spec 82 B.3 step 8: upstream overwrites what an operator writes at the same time.
#[test]
fn project_quota_that_is_raised_meanwhile_keeps_its_new_limits() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.settled().await;
        let (sim, mut is_raised) = (garden.sim.clone(), false);
        garden.sim.set_faults(move |info| {
            let is_meant = info.verb == "patch" && info.user == "gcm" && info.resource == "resourcequotas";
            if is_meant && !std::mem::replace(&mut is_raised, true) {
                let raise = |quota: &mut Value| quota["spec"]["hard"]["count/secrets"] = json!("1k");
                assert!(sim.edit("resourcequotas", NAMESPACE, "q", raise));
            }
            Fault::None
        });

        garden.put(quota(NAMESPACE, "q", ([Some("5"), Some("1"), Some("1")], [None; 2])));

        let after = ([Some("5"), Some("10"), Some("1k")], ALIGNED);
        garden.soon("it is aligned", || is_in(&garden, NAMESPACE, "q", after)).await;
        garden.settle().await;
        assert!(is_in(&garden, NAMESPACE, "q", after));
    });
}

/// spec 82 B.2: the usage changes with each object of the namespace.
#[test]
fn project_quota_is_not_reconciled_when_only_its_usage_changes() {
    garden(|garden| async move {
        put_dev(&garden);
        garden.put(quota(NAMESPACE, "q", ([Some("1"), Some("2"), Some("4")], ALIGNED)));
        garden.settled().await;
        let before = garden.reconciles("project-resourcequota");

        for used in 0..20 {
            garden.edit(&kinds::RESOURCE_QUOTA, NAMESPACE, "q", |quota| {
                quota["status"] = json!({ "used": { "count/secrets": used.to_string() } });
            });
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        assert_eq!(garden.reconciles("project-resourcequota"), before);
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// Two writers do not keep each other busy.
#[test]
fn project_quota_that_another_client_resets_is_aligned_ever_more_rarely() {
    garden(|garden| async move {
        put_dev(&garden);
        let before = ([Some("1"), Some("1"), Some("1")], [None; 2]);
        garden.put(quota(NAMESPACE, "q", before));
        garden.settled().await;

        garden
            .minute_beside(|| {
                if !is_in(&garden, NAMESPACE, "q", before) {
                    garden.put(quota(NAMESPACE, "q", before));
                }
            })
            .await;

        let asked = garden.asked();
        assert!((3..=10).contains(&asked.len()), "{asked:?}");
        tokio::time::sleep(Duration::from_secs(200)).await;
        assert!(is_in(&garden, NAMESPACE, "q", ([Some("1"), Some("2"), Some("4")], ALIGNED)));
    });
}

/// spec 82 B.3 step 1, spec 80 §16 S-1
#[test]
fn project_quota_that_goes_or_is_gone_is_no_error() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            put_dev(&garden);
            garden.settled().await;
            let sim = garden.sim.clone();
            garden.sim.set_faults(move |info| {
                if info.verb == "patch" && info.resource == "resourcequotas" && info.user == "gcm" {
                    sim.remove("resourcequotas", NAMESPACE, "q");
                }
                Fault::None
            });
            garden.put(quota(NAMESPACE, "q", ([Some("1"), Some("1"), Some("1")], [None; 2])));
            garden.settle().await;
            garden.sim.clear_faults();

            let mut ending = quota(NAMESPACE, "r", ([Some("1"), Some("1"), Some("1")], [None; 2]));
            ending["metadata"]["finalizers"] = json!(["example.com/x"]);
            garden.sim.set_event_faults(|_| EventFault::Drop); // it must be deleted before it is seen
            garden.put(ending);
            garden.delete(&kinds::RESOURCE_QUOTA, NAMESPACE, "r").await;
            garden.sim.clear_event_faults();
            garden.sim.clear_requests();
            garden.edit(&kinds::RESOURCE_QUOTA, NAMESPACE, "r", |quota| {
                quota["metadata"]["labels"] = json!({ "a": "b" })
            });
            garden.settle().await;
            assert_eq!(garden.asked_for("resourcequotas"), Vec::<String>::new());
        });
    });
    let is_error = |line: &&str| line.contains("Reconciler error") && line.contains("project-resourcequota");
    assert_eq!(log.lines().find(is_error), None);
}
