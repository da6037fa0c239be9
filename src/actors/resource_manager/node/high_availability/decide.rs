//! Selects the workloads to patch (spec 41 §C.4), and predicts the effect.

use cluster::object::truthy;
use serde_json::Value;

const HOST: &str = "kubernetes.io/hostname";
const HOST_SPREAD: &str = "high-availability-config.resources.gardener.cloud/host-spread";
/// Annotation of namespaces: the failures that their workloads must survive.
pub const FAILURE_TOLERANCE_TYPE: &str = "high-availability-config.resources.gardener.cloud/failure-tolerance-type";

/// Returns true if the first constraint over hosts does not fit the number of nodes.
pub fn is_to_be_patched(workload: &Value, multiple_nodes: bool) -> bool {
    let unfit = if multiple_nodes { "ScheduleAnyway" } else { "DoNotSchedule" };
    host_spread(workload) == Some(unfit)
}

fn host_spread(workload: &Value) -> Option<&str> {
    let constraints = workload.pointer("/spec/template/spec/topologySpreadConstraints")?.as_array()?;
    constraints.iter().find(|constraint| constraint["topologyKey"] == HOST)?["whenUnsatisfiable"].as_str()
}

/// Returns true if the webhook should change a workload that is patched; `tolerance` is the failures its namespace must
/// survive. Workloads with one replica, or whose spread is always soft, never change (spec 51 §6).
pub fn is_to_change(workload: &Value, tolerance: Option<&str>, multiple_nodes: bool) -> bool {
    let has_several = workload.pointer("/spec/replicas").and_then(Value::as_i64).is_some_and(|replicas| replicas > 1);
    let is_enforced = truthy(cluster::object::annotation(workload, HOST_SPREAD));
    has_several && (!multiple_nodes || is_enforced || tolerance.is_some_and(|tolerance| !tolerance.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(constraints: &[(&str, &str)], replicas: i64) -> Value {
        let constraints: Vec<_> =
            constraints.iter().map(|(key, when)| json!({"topologyKey": key, "whenUnsatisfiable": when})).collect();
        let template = json!({"spec": {"topologySpreadConstraints": constraints}});
        json!({"metadata": {"annotations": {}}, "spec": {"replicas": replicas, "template": template}})
    }

    const SOFT: &str = "ScheduleAnyway";
    const HARD: &str = "DoNotSchedule";

    type Constraints = &'static [(&'static str, &'static str)];

    /// spec 41 §C.4
    #[test]
    fn host_spread_is_the_first_constraint_over_hosts() {
        let table: [(Constraints, bool, bool); 6] = [
            (&[(HOST, SOFT)], true, false),
            (&[(HOST, HARD)], false, true),
            (&[("zone", SOFT), (HOST, HARD), (HOST, SOFT)], false, true),
            (&[("zone", SOFT)], false, false),
            (&[(HOST, "Other")], false, false),
            (&[], false, false),
        ];

        for (constraints, with_several, with_one) in table {
            let workload = workload(constraints, 2);
            assert_eq!(is_to_be_patched(&workload, true), with_several, "{constraints:?}");
            assert_eq!(is_to_be_patched(&workload, false), with_one, "{constraints:?}");
        }
        assert!(!is_to_be_patched(&json!({"spec": "none"}), true));
    }

    /// spec 41 C-T2, spec 51 §6.1
    #[test]
    fn webhook_change_is_expected_where_the_webhook_makes_one() {
        let two = workload(&[], 2);
        assert!(is_to_change(&two, None, false), "one node: the spread becomes soft");
        assert!(is_to_change(&two, Some("node"), true));
        assert!(!is_to_change(&two, None, true) && !is_to_change(&two, Some(""), true), "it is soft anyway");
        assert!(!is_to_change(&workload(&[], 1), Some("node"), true), "one replica");
        let mut enforced = two;
        enforced["metadata"]["annotations"][HOST_SPREAD] = json!("true");
        assert!(is_to_change(&enforced, None, true));
    }
}
