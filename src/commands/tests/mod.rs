#[cfg(feature = "sim")]
mod annotate;
#[cfg(feature = "sim")]
mod diff;
#[cfg(feature = "sim")]
mod extensions;
#[cfg(feature = "sim")]
mod garbage;
#[cfg(feature = "sim")]
mod get;
mod hibernation;
#[cfg(feature = "sim")]
mod inspect;
mod packing;
mod policies;
#[cfg(feature = "sim")]
mod referrers;
mod registration;
mod review;
mod validating;
mod validating_fields;

#[cfg(feature = "sim")]
use kit::{Clock, Random};
#[cfg(feature = "sim")]
use sim::{Sim, SimOptions};

#[cfg(feature = "sim")]
use super::screen::{Look, Screen};
use super::{Said, input::Source};
#[cfg(feature = "sim")]
use crate::api::resources::crd;

#[cfg(feature = "sim")]
const MANAGED_RESOURCE: &str = "managedresources.resources.gardener.cloud";

#[cfg(feature = "sim")]
fn cluster_and_clock() -> (Sim, Clock) {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let sim = Sim::new(SimOptions::new(clock.clone(), Random::seeded(1)));
    sim.put(serde_saphyr::from_str(crd::MANAGED_RESOURCES).unwrap()).unwrap();
    sim.put(serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();
    (sim, clock)
}

/// A stream that remembers what is written.
#[cfg(feature = "sim")]
#[derive(Clone, Default)]
struct Printed(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

#[cfg(feature = "sim")]
impl Printed {
    fn take(&self) -> String {
        String::from_utf8(self.0.take()).unwrap()
    }
}

#[cfg(feature = "sim")]
impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a command printed on its screen.
#[cfg(feature = "sim")]
async fn on_screen<T>(work: impl AsyncFnOnce(&mut Screen<'_>) -> T) -> (T, String, Vec<String>) {
    let (out, remarks) = (Printed::default(), Printed::default());
    let result = {
        let (out, remarks) = (&mut out.clone(), &mut remarks.clone());
        work(&mut Screen::new(out, remarks, Look::default())).await
    };
    (result, out.take(), remarks.take().lines().map(str::to_owned).collect())
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), bytes: text.as_bytes().to_vec() }
}

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: ns\ndata:\n  key: value\n")
}

fn errors(said: &Said) -> Vec<&str> {
    said.remarks.iter().map(String::as_str).filter(|remark| !remark.starts_with("warning: ")).collect()
}
