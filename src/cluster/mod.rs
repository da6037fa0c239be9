//! A cluster as this program sees it: requests, watches, discovery, Events.
//!
//! Start at [`Cluster`] (`handle.rs`): it owns everything below and is the only thing other modules call. A request goes
//! `fence` (may this process still write?) → `gate` (rate, writes in flight, whose turn it is) → `transport` (one HTTP
//! exchange, repeated by the rules of `retry`) → `error` (what the server said).
//!
//! * `resource`: names of kinds and objects as the server addresses them, paths and queries.
//! * `pages`, `watch`: lists in pages of bounded size, and watch streams line by line.
//! * `discovery/`: which kinds the server serves.
//! * `events`: the recorder of core/v1 Events.
//! * `client`, `token`: from a kubeconfig or the Pod's environment to a `kube::Client`.
//! * [`kubeconfig`]: how each cluster is reached, and which kubeconfigs are acceptable.
//! * `router`, `store`: watch routers and what they know of the objects of a kind.
//! * `metrics`: what others may observe of it; `warnings`: `Warning` headers, logged once.
//!
//! Everything runs on one thread; handles are `Rc`s and cheap to clone.

mod client;
mod discovery;
mod error;
mod events;
mod fence;
mod gate;
mod handle;
pub mod kubeconfig;
mod metrics;
mod pages;
mod resource;
mod retry;
mod router;
mod slim;
mod store;
mod token;
mod transport;
mod warnings;
mod watch;
mod watches;

#[cfg(test)]
pub(crate) mod testing;

pub use client::{Connection, ConnectionError, PodEnvironment, SERVICE_ACCOUNT, read_kubeconfig, user_agent};
pub use discovery::{Discovery, is_list_kind};
pub use error::{ApiError, Cause, Status};
pub use events::{Recorder, Reference};
pub use fence::{Fence, WriteGuard};
pub use gate::Gate;
pub use handle::{Cluster, ClusterEnv, ClusterOptions, Context, DeleteOptions, Deleted, Propagation, Side};
pub use metrics::{NoObserver, RequestObserver};
pub use pages::{ListQuery, Page, Pages};
pub(crate) use resource::uri;
pub use resource::{Resource, Target};
pub use router::{Router, RouterOptions};
pub use store::{IDLE_LIMIT, Record, Store, StoreState};
pub use watch::{WatchEvent, WatchKind, WatchQuery, WatchStream};
pub use watches::{Change, Found, How, Index, MOST_NAMESPACES, ReadRecord, Start, Synced, Want, Watch, Watches};
