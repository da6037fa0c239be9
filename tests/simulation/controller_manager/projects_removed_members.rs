//! Members who are removed lose their rights, also while a Project ends or a cache lags behind.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::object::name;
use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::{EventFault, Fault};

use super::{
    garden::garden,
    projects::{becomes, is_ending, phase, put_dev, shoot},
    projects_rbac::{FOO, bound, find, member, set_members},
};

/// The end of the names of the bindings of viewers.
const VIEWER: &str = "project-viewer";

/// spec 82 A.10 step 3: who is no member any more loses all rights while the Project waits.
#[test]
fn members_of_a_project_that_waits_for_a_shoot_can_be_removed() {
    garden(|garden| async move {
        garden.settled().await;
        put_dev(&garden, json!({"members": [member("m", &["viewer", "extension:foo"]), member("n", &["viewer"])]}));
        becomes(&garden, "dev", "Ready").await;
        garden.put(shoot("garden-dev", "s"));
        garden.delete(&kinds::PROJECT, "", "dev").await;
        becomes(&garden, "dev", "Terminating").await;
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, VIEWER), ["m", "n"]);

        set_members(&garden, json!([member("n", &["viewer"])])).await;

        garden.gone(&kinds::ROLE_BINDING, "garden-dev", FOO).await;
        garden.gone(&kinds::CLUSTER_ROLE, "", FOO).await;
        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, VIEWER), ["n"]);
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, VIEWER), ["n"]);
        assert_eq!(phase(&garden, "dev"), "Terminating");
        assert!(!is_ending(&garden, "garden-dev"));
    });
}

/// spec 82 A.10 step 3, B6: a leader whose cache of Projects lags behind gives nobody the rights back that the last leader
/// took away.
#[test]
fn members_who_were_removed_get_no_rights_back_from_a_cache_that_lags_behind() {
    garden(|garden| async move {
        garden.settled().await;
        put_dev(&garden, json!({"members": [member("m", &["viewer"]), member("n", &["viewer"])]}));
        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;
        let all = find(&garden, &kinds::ROLE_BINDING, VIEWER).unwrap();
        garden.sim.set_event_faults(|event| match event.resource.as_str() {
            "projects" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        set_members(&garden, json!([member("n", &["viewer"])])).await;
        let rights = Arc::new(Mutex::new(Vec::new()));
        let (sim, seen, binding) = (garden.sim.clone(), rights.clone(), name(&all).to_owned());
        garden.sim.set_faults(move |_| {
            let live = sim.object("rolebindings.rbac.authorization.k8s.io", "garden-dev", &binding);
            seen.lock().expect("no test panics with the lock").push(live.unwrap_or_default()["subjects"].clone());
            Fault::None
        });

        // As the last leader did it.
        let only = json!([all["subjects"][1]]);
        assert_eq!(only[0]["name"], "n");
        garden.edit(&kinds::ROLE_BINDING, "garden-dev", name(&all), |live| live["subjects"] = only.clone());
        garden.settle().await;
        tokio::time::sleep(Duration::from_secs(600)).await;

        assert_eq!(bound(&garden, &kinds::ROLE_BINDING, VIEWER), ["n"]);
        assert_eq!(bound(&garden, &kinds::CLUSTER_ROLE_BINDING, VIEWER), ["n"]);
        let rights = rights.lock().expect("no test panics with the lock");
        assert!(!rights.is_empty() && rights.iter().all(|subjects| *subjects == only), "{rights:?}");
    });
}
