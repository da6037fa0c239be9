//! The built binary against a real control plane: `cargo test --features e2e`. Binaries of the control plane come from
//! `KUBEBUILDER_ASSETS` or from `tests/controlplane/build`.
#![cfg(feature = "e2e")]

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod broken_bundles;
mod collecting;
mod ending;
mod landscape;
mod objects;
mod placement;
mod rights;
mod roll_out;
mod take_over;
#[cfg(feature = "otel")]
mod traces;
