//! A group whose kinds cannot be discovered: what is known of them stays, nothing is concluded, and all others go on.

use std::time::Duration;

use gardener_resource_manager::sim::{Fault, RequestInfo, Seen};
use serde_json::{Value, json};

use crate::{
    health_objects::{
        ALL_HEALTHY, HEALTHY, PROGRESSING, ROLLED_OUT, condition, ready, set_status, stands, unhealthy, workload,
    },
    objects::{definition, widget},
    world::{NAMESPACE, World, config_map, seconds, world},
};

/// Whether a request is answered badly, as by a server of the time before aggregated discovery, with an aggregated API
/// behind it that does not answer.
fn is_broken(info: &RequestInfo, plain: &mut bool) -> Option<Seen> {
    if info.path == "/apis" {
        // First the aggregated document is asked for, then the plain one.
        *plain = !*plain;
        return plain.then(|| Seen::status(406, "NotAcceptable", "only the plain document is served"));
    }
    (info.resource.is_empty() && info.path.starts_with("/apis/example.org")).then(Seen::unavailable)
}

/// From now on the kinds of `example.org` cannot be discovered.
fn break_group(world: &World) {
    let mut plain = false;
    world.sim.set_faults(move |info| is_broken(info, &mut plain).map_or(Fault::None, Fault::FailBefore));
}

/// A bundle `one` with a widget, applied by a program that is stopped then. The next one cannot discover the widget's group.
async fn stopped_with_a_broken_group(world: &World, others: &[Value]) {
    world.sim.put(definition()).unwrap();
    seconds(1).await;
    world.start().await;
    world.bundle("one", &[others, &[widget(1)]].concat());
    world.applied("one").await;
    seconds(5).await;
    world.stop().await;
    break_group(world);
}

fn has_widget(world: &World) -> bool {
    world.sim.object("widgets.example.org", NAMESPACE, "kept").is_some()
}
