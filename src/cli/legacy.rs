//! The flags from before there was a configuration file (spec 70 §5), with defaults and effects.

use std::{collections::BTreeMap, fmt};

use kit::duration::GoDuration;
use process::{
    command_line::{UsageError, parse_bool},
    config::{Enabled, PlainServer, Workers},
};

use crate::api::config::resource_manager::{Connection, Controllers, Draft, LOCK_REPLACED, Warning, WarningKind};

pub(super) struct LegacyFlag {
    pub(super) name: &'static str,
    /// Value in flag mode if the flag is not set, as written on the command line.
    pub(super) default: &'static str,
    pub(super) help: &'static str,
    effect: Effect,
}

enum Effect {
    Text(fn(&mut Draft, String)),
    Bool(fn(&mut Draft, bool)),
    Int(fn(&mut Draft, i64)),
    Duration(fn(&mut Draft, GoDuration)),
    /// `host:port`, or `0` (`None`) for no server.
    Address(fn(&mut Draft, Option<PlainServer>)),
    /// Only a warning. `bool`: the flag is a boolean, which needs no value.
    None {
        bool: bool,
    },
}

macro_rules! flags {
    ($($name:literal $default:literal $effect:expr, $help:literal;)*) => {
        &[$(LegacyFlag { name: $name, default: $default, help: $help, effect: $effect },)*]
    };
}

use Effect::{Address, Bool, Duration, Int, Text};

pub(super) static FLAGS: &[LegacyFlag] = flags! {
    "kubeconfig" ""
        Text(|d, v| d.config.source.kubeconfig = v), "Kubeconfig of the source cluster";
    "namespace" ""
        Text(|d, v| only_namespace(&mut d.config.source, v)), "The only namespace to watch in the source cluster";
    "cache-resync-period" "24h"
        Duration(|d, v| d.config.source.cache_resync_period = v.into()), "Resync period for the source cluster";
    "target-kubeconfig" ""
        Text(|d, v| d.config.target.kubeconfig = v), "Kubeconfig of the target cluster";
    "target-namespace" ""
        Text(|d, v| only_namespace(&mut d.config.target, v)), "The only namespace to watch in the target cluster";
    "target-disable-cache" "false"
        Bool(|d, v| d.config.target.disable_cached_client = v), "Do not watch managed objects of the target; read them whenever they are needed";
    "target-cache-resync-period" "24h"
        Duration(|d, v| d.config.target.cache_resync_period = v.into()), "Resync period for the target cluster";
    "leader-election" "true"
        Bool(|d, v| d.config.leader_election.leader_elect = v), "Enable leader election";
    "leader-election-resource-lock" "leases"
        Text(resource_lock), "Lock type; only leases is supported";
    "leader-election-namespace" ""
        Text(|d, v| d.config.leader_election.resource_namespace = v), "Namespace of the Lease";
    "leader-election-lease-duration" "15s"
        Duration(|d, v| d.config.leader_election.lease_duration = v.into()), "How long other replicas wait before they take over";
    "leader-election-renew-deadline" "10s"
        Duration(|d, v| d.config.leader_election.renew_deadline = v.into()), "How long the leader tries to renew the Lease before it gives up";
    "leader-election-retry-period" "2s"
        Duration(|d, v| d.config.leader_election.retry_period = v.into()), "Time between attempts to acquire or renew the Lease";
    "tls-cert-dir" ""
        Text(|d, v| d.config.server.webhooks.tls.server_cert_dir = v), "Directory of the webhook server's tls.crt and tls.key";
    "bind-address" "0.0.0.0"
        Text(|d, v| d.config.server.webhooks.bind_address = v), "Address of the webhook server";
    "port" "9449"
        Int(|d, v| d.config.server.webhooks.port = v), "Port of the webhook server";
    "metrics-bind-address" ":8080"
        Address(metrics_server), "Address of the metrics server; 0 disables it";
    "health-bind-address" ":8081"
        Address(|d, v| plain_server(&mut d.config.server.health_probes, &mut d.config.server.health_probes_off, v)), "Address of the probe server; 0 disables it";
    "profiling" "false"
        Bool(|d, v| d.config.debugging.enable_profiling = v), "Serve /debug/pprof on the metrics server";
    "contention-profiling" "false"
        Bool(|d, v| d.config.debugging.enable_contention_profiling = v), "Accepted, no effect";
    "log-level" "info"
        Text(|d, v| d.config.log_level = v), "Log level: debug, info or error";
    "log-format" "json"
        Text(|d, v| d.config.log_format = v), "Log format: json or text";
    "resource-class" "resources"
        Text(resource_class), "Class of the ManagedResources to handle";
    "cluster-id" ""
        Text(|d, v| d.config.controllers.cluster_id = v), "Identity of the source cluster";
    "max-concurrent-workers" "10"
        Int(|d, v| d.config.controllers.managed_resource.concurrent_syncs = Workers::new(v)), "ManagedResources reconciled at the same time";
    "sync-period" "1m"
        Duration(|d, v| d.config.controllers.managed_resource.sync_period = v.into()), "Time between reconciliations of a ManagedResource";
    "always-update" "false"
        Bool(|d, v| d.config.controllers.managed_resource.always_update = v), "Update objects even if nothing differs";
    "managed-by-label" "gardener"
        Text(|d, v| d.config.controllers.managed_resource.managed_by_label_value = v), "Value of the label resources.gardener.cloud/managed-by";
    "health-max-concurrent-workers" "10"
        Int(|d, v| d.config.controllers.health.concurrent_syncs = Workers::new(v)), "ManagedResources checked at the same time";
    "health-sync-period" "1m"
        Duration(|d, v| d.config.controllers.health.sync_period = v.into()), "Time between health checks of a ManagedResource";
    "garbage-collector-sync-period" "0"
        Duration(|d, v| turn(&mut d.config.controllers.garbage_collector, v > GoDuration::ZERO, |it| it.sync_period = v.into())), "Time between garbage collections; 0 disables them";
    "token-invalidator-max-concurrent-workers" "0"
        Int(token_invalidator), "Tokens invalidated at the same time; 0 disables this";
    "token-requestor-max-concurrent-workers" "0"
        Int(|d, v| turn(&mut d.config.controllers.token_requestor, v > 0, |it| it.concurrent_syncs = Workers::new(v))), "Tokens requested at the same time; 0 disables this";
    "kubelet-csr-approver-max-concurrent-workers" "0"
        Int(|d, v| turn(&mut d.config.controllers.csr_approver, v > 0, |it| it.concurrent_syncs = Workers::new(v))), "CertificateSigningRequests decided at the same time; 0 disables this";
    "pod-scheduler-name-webhook-enabled" "false"
        Bool(|d, v| d.config.webhooks.pod_scheduler_name.enabled = v), "Set the scheduler of Pods";
    "pod-scheduler-name-webhook-scheduler" "default-scheduler"
        Text(|d, v| d.config.webhooks.pod_scheduler_name.settings.scheduler_name = v), "Scheduler to set";
    "pod-topology-spread-constraints-webhook-enabled" "false"
        Bool(|d, v| d.config.webhooks.pod_topology_spread_constraints.enabled = v), "Complete the topology spread constraints of Pods";
    "seccomp-profile-webhook-enabled" "false"
        Bool(|d, v| d.config.webhooks.seccomp_profile.enabled = v), "Set the seccomp profile of Pods";
    "projected-token-mount-expiration-seconds" "43200"
        Int(|d, v| d.config.webhooks.projected_token_mount.settings.expiration_seconds = v), "Lifetime of projected tokens, in seconds";
    "root-ca-file" ""
        Effect::None { bool: false }, "Has no effect";
    "root-ca-publisher-max-concurrent-workers" ""
        Effect::None { bool: false }, "Has no effect";
    "secret-max-concurrent-workers" ""
        Effect::None { bool: false }, "Has no effect";
    "pod-zone-affinity-webhook-enabled" "false"
        Effect::None { bool: true }, "Has no effect";
};

/// Returns the set flags by name, with their texts. Fails if a flag does not take its text.
pub(super) fn explicit(
    text: impl Fn(&'static str) -> Option<String>,
) -> Result<BTreeMap<&'static str, String>, UsageError> {
    let mut set = BTreeMap::new();
    for flag in FLAGS {
        let Some(text) = text(flag.name) else { continue };
        // Applied to a draft that is thrown away, only to check the text.
        flag.apply(&mut Draft::default(), &text)?;
        set.insert(flag.name, text);
    }
    Ok(set)
}

impl LegacyFlag {
    pub(super) fn apply(&self, draft: &mut Draft, text: &str) -> Result<(), UsageError> {
        match &self.effect {
            Text(set) => set(draft, text.to_owned()),
            Bool(set) => set(draft, parse_bool(text).map_err(|cause| self.invalid(text, cause))?),
            Int(set) => set(draft, text.parse().map_err(|_| self.invalid(text, "must be an integer"))?),
            Duration(set) => set(draft, text.parse().map_err(|cause| self.invalid(text, cause))?),
            Address(set) => set(draft, parse_address(text).map_err(|cause| self.invalid(text, cause))?),
            Effect::None { .. } => {
                draft.warnings.push(Warning::new(format!("--{}", self.name), WarningKind::NoEffect));
            }
        }
        Ok(())
    }

    fn invalid(&self, text: &str, cause: impl fmt::Display) -> UsageError {
        UsageError::invalid(self.name, text, cause)
    }

    pub(super) fn apply_default(&self, draft: &mut Draft) -> Result<(), UsageError> {
        match &self.effect {
            Text(_) | Bool(_) | Int(_) | Duration(_) | Address(_) => self.apply(draft, self.default),
            Effect::None { .. } => Ok(()),
        }
    }

    /// Whether the flag without a value means true.
    pub(super) fn is_bool(&self) -> bool {
        match &self.effect {
            Bool(_) => true,
            Effect::None { bool } => *bool,
            Text(_) | Int(_) | Duration(_) | Address(_) => false,
        }
    }

    pub(super) fn value_name(&self) -> &'static str {
        match &self.effect {
            Text(_) => "STRING",
            Bool(_) | Effect::None { bool: true } => "BOOL",
            Int(_) => "INT",
            Duration(_) => "DURATION",
            Address(_) => "HOST:PORT",
            Effect::None { bool: false } => "VALUE",
        }
    }
}

fn only_namespace(connection: &mut Connection, namespace: String) {
    connection.namespace.clear();
    connection.namespaces = Some(namespace).filter(|namespace| !namespace.is_empty()).into_iter().collect();
}

/// Two lock types that were replaced by leases long ago count as `leases`.
fn resource_lock(draft: &mut Draft, lock: String) {
    let replaced = matches!(lock.as_str(), "configmapsleases" | "endpointsleases");
    if replaced {
        draft.warnings.push(Warning::new("--leader-election-resource-lock", LOCK_REPLACED));
    }
    draft.config.leader_election.resource_lock = if replaced { "leases".to_owned() } else { lock };
}

/// An empty class means the default class; in the file it does not.
fn resource_class(draft: &mut Draft, class: String) {
    let default = || Controllers::default().resource_class;
    draft.config.controllers.resource_class = if class.is_empty() { default() } else { class };
}

fn plain_server(server: &mut PlainServer, off: &mut bool, address: Option<PlainServer>) {
    *off = address.is_none();
    *server = address.unwrap_or_default();
}

fn metrics_server(draft: &mut Draft, address: Option<PlainServer>) {
    let server = &mut draft.config.server;
    server.metrics_off = address.is_none();
    server.metrics.listen(address.unwrap_or_default());
}

fn token_invalidator(draft: &mut Draft, workers: i64) {
    let on = workers > 0;
    turn(&mut draft.config.controllers.token_invalidator, on, |it| it.concurrent_syncs = Workers::new(workers));
    draft.config.webhooks.token_invalidator.enabled = on;
}

/// Turns a block on or off. Its settings change only if it is on.
fn turn<T>(block: &mut Enabled<T>, on: bool, set: impl FnOnce(&mut T)) {
    block.enabled = on;
    if on {
        set(&mut block.settings);
    }
}

/// Parses `host:port`; the host may be empty or an IPv6 address in brackets. Returns `None` (no server) for `0`.
fn parse_address(text: &str) -> Result<Option<PlainServer>, &'static str> {
    if text == "0" {
        return Ok(None);
    }
    let (host, port) = text.rsplit_once(':').ok_or("must be host:port, or 0 for no server")?;
    let port: u16 = port.parse().map_err(|_| "the port must be a number from 0 to 65535")?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if bare.is_none() && host.contains([':', '[', ']']) {
        return Err("an IPv6 address must be in brackets");
    }
    let host = bare.unwrap_or(host).to_owned();
    Ok(Some(PlainServer { bind_address: host, port: i64::from(port) }))
}
