//! How many requests guards make.

use std::time::Duration;

use gardener_resource_manager::api::kinds;
use serde_json::json;

use super::{
    garden::{garden, object},
    guards::{GUARDED, uses},
};

/// spec 80 scenarios 26 and 27: the world checks the requests of each test. At rest nothing is requested.
#[test]
fn guard_at_rest_requests_nothing() {
    garden(|garden| async move {
        for (kind, namespace) in GUARDED {
            garden.put(object(kind, namespace, "o", json!({})));
        }
        for (number, case) in uses().iter().enumerate() {
            garden.put(object(&case.referrer, "a", &format!("r{number}"), case.fields.clone()));
        }
        garden.settled().await;

        tokio::time::sleep(Duration::from_secs(3600)).await;

        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 80 §16 S-13: a burst of deletions shares its live lists.
#[test]
fn guard_confirms_many_releases_with_few_lists() {
    garden(|garden| async move {
        let names: Vec<_> = (0..50).map(|number| format!("o{number}")).collect();
        for name in &names {
            garden.put(object(&kinds::EXPOSURE_CLASS, "", name, json!({})));
        }
        garden.settled().await;

        for name in &names {
            garden.delete(&kinds::EXPOSURE_CLASS, "", name).await;
        }
        garden.settle().await;

        assert!(names.iter().all(|name| garden.find(&kinds::EXPOSURE_CLASS, "", name).is_none()));
        let lists = garden.asked().iter().filter(|asked| *asked == "list shoots").count();
        assert!((1..=15).contains(&lists), "{lists}");
    });
}
