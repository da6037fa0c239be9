//! A client of one cluster: requests, informers and watches, writes, discovery, Events. Start at [`Cluster`]: it owns
//! everything below and is the only type other modules call. A request passes `fence` (may this process still write?) →
//! `request_scheduler` (rate, writes in flight, fairness) → `transport` (one HTTP exchange, repeated by the rules of
//! `retry`) → `error` (the server's answer).
//! * [`object`], `resource`, `api_name`: kinds and objects by name, and as the server addresses them.
//! * `answers`, `whole`: memory bounds of answers, and whether they are the requested objects. `slim`: parses objects
//!   without their managed fields. `pages`, `watch_stream`: lists in pages, and watch streams line by line.
//! * `discovery/`: which kinds the server serves, and the proof that a kind is not served; `definitions`: notices
//!   changes of that; `locate`: finds an object, or proves its absence.
//! * `writes`: conditional writes, bound to the version that was read; `watches/writes.rs` decides, writes and enters
//!   answers. `events`: the recorder of Events.
//! * [`kubeconfig`]: where each cluster is. `client`, `token`, `proxy`: credentials, and the way to the cluster.
//! * `watches/`: one informer per kind for any number of readers. Start at [`Watches`], [`WatchOptions`]; `store`,
//!   `cached`: what a reader keeps of its objects. [`evidence`]: decisions on caches and live reads.
//! * `contact`: whether the server answers and accepts our credentials; `outage`: logs when it does not.
//! * `metrics`: observers of requests; `warnings`: `Warning` headers, logged once; [`files`]: files of bounded size.
//!
//! Everything runs on one thread; handles are `Rc`s and cheap to clone.

mod answers;
mod api_name;
mod cached;
mod client;
mod cluster;
mod contact;
mod definitions;
mod discovery;
mod error;
mod events;
pub mod evidence;
mod fence;
pub mod files;
pub mod kubeconfig;
mod label;
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
mod version;
mod warnings;
mod watch_stream;
mod watches;
mod whole;
mod writes;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use answers::AnswerRoom;
pub use api_name::ApiName;
pub use cached::CachedFields;
pub use client::{
    Connection, ConnectionError, SERVICE_ACCOUNT, kubeconfig_of_file, read_kubeconfig, shown_path, user_agent,
};
pub use cluster::{Cluster, ClusterEnv, ClusterOptions, Context, DeleteOptions, Deleted, Propagation};
pub use definitions::Definitions;
pub use discovery::{Discovery, DiscoverySummary, DiscoveryView, ProvedAbsent, Serving};
pub use error::{ApiError, Cause, Status};
pub use events::{EventType, RecordedEvent, Recorder, Reference};
pub use fence::{Fence, WriteGuard};
pub use label::ClusterLabel;
pub use locate::{Located, Nowhere};
pub use metrics::{NoObserver, RequestObserver};
pub use outage::report_outages;
pub use pages::{ListQuery, Page, Pages};
pub use proxy::{BadProxy, GivenProxy, Proxy, ProxySettings, client_through};
pub use request_scheduler::RequestScheduler;
pub use resource::{ObjectRef, Resource, ResourceScope};
pub use store::{Cached, IDLE_LIMIT, Store, StoreState};
pub use token::CredentialsError;
pub use version::KubernetesVersion;
pub use watch_stream::{WatchEvent, WatchKind, WatchQuery, WatchStream};
pub use watches::{
    Change, Found, How, Index, MOST_NAMESPACES, Predicate, ReadCached, Start, Subject, Synced, Watch, WatchOptions,
    Watches, pace,
};
pub use writes::{Lock, Wrote, difference};
