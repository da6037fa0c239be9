//! Istio's kinds at a start: the API server does not serve them yet, or never.

use std::time::Duration;

use serde_json::json;
use sim::Start;
use tracing::Level;

use super::{DEFAULT, begin, has, https, rule, service, start};
use crate::{
    log_capture::logged,
    world::{seconds, world},
};

/// decision 38: an API server that is starting does not serve Istio's kinds yet.
#[test]
fn filters_stay_while_the_api_server_starts() {
    for is_program_started_too in [false, true] {
        world(1, |world| async move {
            begin(&world).await;
            service(&world, Some("*"), https());
            rule(&world, json!({}));
            has(&world, &[("istio-ingress", &[DEFAULT])]).await;
            if is_program_started_too {
                world.stop().await;
            }
            world.sim.clear_requests();
            world.sim.restart(Start { installing: Duration::from_secs(20), ..Start::default() });
            if is_program_started_too {
                world.start().await;
            }
            seconds(120).await;

            let writes = world.writes();
            assert!(!writes.iter().any(|write| write.starts_with("delete")), "{writes:?}");
            has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        });
    }
}

/// spec 42 §2
#[test]
fn missing_istio_is_logged() {
    let (_, log) = logged(Level::INFO, || {
        world(1, |world| async move {
            start(&world).await;
            seconds(60).await;
        });
    });
    let text = "No watches will be added because Istio CRDs are not installed";
    assert_eq!(log.matches(text).count(), 1, "{log}");
}
