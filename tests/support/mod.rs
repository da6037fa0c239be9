//! What tests against real processes use. Start at [`ControlPlane::start`] and [`Grm::start`]. Drop stops and removes
//! everything; with `KEEP=1` the folders stay, and their paths are printed. Tests need tokio with I/O and real time.
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
pub(crate) use files::{folder, free_port};
pub(crate) use grm::{Grm, Settings};
pub(crate) use http::{Answer, request};
pub(crate) use process::{Process, Signal};
pub(crate) use wait::eventually;
