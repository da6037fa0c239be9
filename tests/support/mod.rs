//! What tests against real processes stand on: a control plane on loopback, the built program, and waiting.
//!
//! | File | What it is |
//! |---|---|
//! | `control_plane.rs` | etcd, kube-apiserver and, on request, kube-controller-manager in a folder of their own |
//! | `etcd.rs` | the store behind that API server |
//! | `grm.rs` | the built binary with a configuration, its probes, metrics, log and webhooks |
//! | `http.rs` | one request over one connection |
//! | `process.rs` | a child process that ends with its owner, whatever way the owner ends |
//! | `files.rs` | folders, files, free ports |
//! | `certificates.rs` | keys and certificates by the `openssl` command |
//! | `wait.rs` | a condition with a deadline; the only place that polls |
//!
//! Start reading at [`ControlPlane::start`] and [`Grm::start`]. Everything is stopped and removed on drop; with `KEEP=1`
//! in the environment the folders stay, and their paths are printed. Needs a tokio runtime with I/O and real time.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part of this folder")]

mod certificates;
mod control_plane;
mod etcd;
mod files;
mod grm;
mod http;
mod process;
mod wait;

pub(crate) use certificates::Authority;
pub(crate) use control_plane::{Component, ControlPlane, Options, User};
pub(crate) use grm::{Grm, Settings};
pub(crate) use http::Answer;
pub(crate) use process::Signal;
pub(crate) use wait::eventually;
