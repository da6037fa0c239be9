//! A cluster as this program sees it: requests, feeds and watches, writes, discovery, Events.
//!
//! Start at [`Cluster`] (`handle.rs`): it owns everything below and is the only thing other modules call. A request goes
//! `fence` (may this process still write?) → `gate` (rate, writes in flight, whose turn it is) → `transport` (one HTTP
//! exchange, repeated by the rules of `retry`) → `error` (what the server said).
//!
//! * [`object`]: names of kinds and objects, metadata of raw objects.
//! * `resource`: names of kinds and objects as the server addresses them, paths and queries.
//! * `answers`: how much of the answers is in memory; `whole`: whether they are the objects that were meant.
//! * `pages`, `watch`: lists in pages of bounded size, and watch streams line by line.
//! * `discovery/`: which kinds the server serves, and the proof that it does not serve one; `definitions`: hears when that
//!   changes; `locate`: where an object is, or the proof that it is nowhere.
//! * `writes`: writes that decide before they send: create or update, by difference, bound to what was seen.
//! * `events`: the recorder of core/v1 Events.
//! * `client`, `token`: from a kubeconfig or the Pod's environment to a `kube::Client`.
//! * `proxy`: which proxy leads to a cluster, and the way through it.
//! * [`kubeconfig`]: how each cluster is reached, and which kubeconfigs are acceptable.
//! * `watches/`: one stream per kind, the feed, for any number of readers. Start at [`Watches`], [`Want`]; `store`,
//!   `projected`: what a reader keeps of its objects; `slim`: managed fields are passed over while objects are parsed.
//! * `contact`: whether the server answers at all, and accepts our credentials; `outage`: says in the log that it does not.
//! * `metrics`: what others may observe of it; `warnings`: `Warning` headers, logged once; [`files`]: files of bounded size.
//!
//! Everything runs on one thread; handles are `Rc`s and cheap to clone.

mod answers;
mod cached;
mod client;
mod cluster;
mod contact;
mod definitions;
mod discovery;
mod error;
mod events;
mod fence;
pub mod files;

pub mod kubeconfig;
mod locate;
mod metrics;
pub mod object;
mod outage;
mod pages;
mod proxy;
mod request_scheduler;
mod resource;
mod retry;
mod slim;
mod store;
mod token;
mod transport;
mod warnings;
mod watch_stream;
mod watches;
mod whole;
mod writes;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use answers::AnswerRoom;
pub use cached::CachedFields;
pub use client::{Connection, ConnectionError, PodEnvironment, SERVICE_ACCOUNT, read_kubeconfig, user_agent};
pub use cluster::{Cluster, ClusterEnv, ClusterOptions, Context, DeleteOptions, Deleted, Propagation, Side};
pub use definitions::{Definition, Definitions};
pub use discovery::{Discovery, ProvedAbsent, Serving, is_list_kind};
pub use error::{ApiError, Cause, Status};
pub use events::{Recorder, Reference};
pub use fence::{Fence, WriteGuard};
pub use locate::{Located, Nowhere};
pub use metrics::{NoObserver, RequestObserver};
pub use outage::report_outages;
pub use pages::{ListQuery, Page, Pages};
pub use proxy::{BadProxy, GivenProxy, Proxy, ProxySettings, client_through};
pub use request_scheduler::RequestScheduler;
pub use resource::{ObjectRef, Resource};
pub use store::{Cached, IDLE_LIMIT, Store, StoreState};
pub use token::CredentialsError;
pub use watch_stream::{WatchEvent, WatchKind, WatchQuery, WatchStream};
pub use watches::{
    Change, Found, How, Index, MOST_NAMESPACES, ReadCached, Start, Synced, Watch, WatchOptions, Watches, pace,
};
pub use writes::{Lock, Wrote, difference};
