//! A thousand tokens for thirty days, with outages of the API server, restarts and changes of the leader.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sim::{Fault, Seen};
use tokio::time::Instant;

use super::{SA, claims, configure, put, value};
use crate::world::{NAMESPACE, World, seconds, world};

const SECRETS: usize = 1_000;
const DAYS: u64 = 30;
/// The longest time for which a token may be overdue while the API server is reachable.
const PATIENCE: Duration = Duration::from_secs(900);

fn tokens(world: &World) -> BTreeMap<String, (Timestamp, Timestamp)> {
    let token = |secret: &Value| {
        let expires = claims(&value(secret, "token"))["exp"].as_i64()?;
        let renewal = secret["metadata"]["annotations"][super::RENEW].as_str()?.parse().ok()?;
        Some((Timestamp::from_second(expires).ok()?, renewal))
    };
    let names = (0..SECRETS).map(|number| format!("access-{number}"));
    let found = names.filter_map(|name| {
        let token = world.sim.look_at("secrets", NAMESPACE, &name, token)??;
        Some((name, token))
    });
    found.collect()
}

#[test]
fn tokens_never_expire_while_the_api_server_is_reachable() {
    world(1, |world| async move {
        configure(&world, false, false);
        world.config.borrow_mut().source.cache_resync_period = Duration::from_secs(7 * 86_400).into();
        world.sim.set_recording(false);
        let issued = Arc::new(Mutex::new(0_usize));
        let is_down = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (counter, down) = (issued.clone(), is_down.clone());
        world.sim.set_faults(move |info| {
            if down.load(std::sync::atomic::Ordering::Relaxed) && info.user.starts_with("grm") {
                return Fault::FailBefore(Seen::unavailable());
            }
            if info.subresource == "token" {
                *counter.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            }
            Fault::None
        });
        for number in 0..SECRETS {
            let lifetime = format!("{SA}token-expiration-duration");
            put(&world, &format!("access-{number}"), &[(&lifetime, "24h")], &[]);
        }
        let mut leader = "grm".to_owned();
        world.start().await;
        let mut random = fastrand::Rng::with_seed(7);
        let mut up_since = Instant::now();
        seconds(300).await;
        assert_eq!(tokens(&world).len(), SECRETS);

        for hour in 1..DAYS * 24 {
            seconds(3600).await;
            let now = world.universe.env.clock.wall();
            let is_up = !is_down.load(std::sync::atomic::Ordering::Relaxed);
            let is_checked = is_up && hour % 6 == 0 && up_since.elapsed() > PATIENCE;
            if is_checked {
                let tokens = tokens(&world);
                let expired = tokens.values().filter(|(expires, _)| *expires < now).count();
                assert_eq!(expired, 0, "hour {hour}");
                let late: Vec<String> = tokens
                    .into_iter()
                    .filter(|(_, (_, renewal))| *renewal + SignedDuration::try_from(PATIENCE).expect("it fits") < now)
                    .map(|(name, _)| name)
                    .collect();
                assert_eq!(late, [""; 0], "hour {hour}: their renewal is overdue");
            }
            match random.u8(0..96) {
                0..=3 if is_up => is_down.store(true, std::sync::atomic::Ordering::Relaxed),
                4 => world.restart_as(&leader).await,
                5 => {
                    let next = format!("grm-{hour}");
                    world.depose(&leader);
                    let config = world.config.borrow().clone();
                    world.start_as(&next, config).await;
                    world.stop_as(&leader).await;
                    leader = next;
                }
                _ => {
                    if is_down.swap(false, std::sync::atomic::Ordering::Relaxed) {
                        up_since = Instant::now();
                    }
                }
            }
        }

        // With 24 h and renewal after 80 % to 84 % of it, plus the first ones.
        let issued = *issued.lock().unwrap_or_else(PoisonError::into_inner);
        let days = Duration::from_secs(DAYS * 86_400).as_secs_f64();
        let necessary = 1.0 + days / (86_400.0 * 0.82);
        let factor = f64::from(u32::try_from(issued).expect("they fit")) / (necessary * 1_000.0);
        assert!((0.95..=1.05).contains(&factor), "{issued} tokens, {factor:.3} of the necessary number");
        world.sim.clear_faults();
        world.stop_as(&leader).await;
    });
}
