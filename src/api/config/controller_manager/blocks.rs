//! The blocks of the file (spec 80 §3), with their defaults (§4). The key of a field is its name in camel case.

use std::time::Duration;

use process::{
    config::{Debugging, HOURS, LeaderElection, MINUTES, Period, PlainServer, Positive, Warning, WarningKind, Workers},
    config_blocks,
};

use super::{API_VERSION, DEFAULTS, FeatureGates, KIND, ProjectQuota};

config_blocks! {
    /// The whole configuration. [`Config::default`] is that of an empty file.
    pub struct Config {
        /// Group and version of the file.
        #[default(API_VERSION.to_owned())]
        pub api_version: String,
        /// Kind of the file.
        #[default(KIND.to_owned())]
        pub kind: String,
        /// The garden cluster.
        pub garden_client_connection: ClientConnection,
        /// Leader election.
        #[default(LeaderElection::with(&DEFAULTS))]
        pub leader_election: LeaderElection,
        /// Listening addresses.
        pub server: Server,
        /// Profiling.
        pub debugging: Debugging,
        /// Name of the least important level that is logged; see [`Config::logging`].
        #[default = "info"]
        pub log_level: String,
        /// Name of the form of a record.
        #[default = "json"]
        pub log_format: String,
        /// Switches of parts that are not settled.
        pub feature_gates: FeatureGates,
        /// Gardener version of the landscape, as gardenlets write it (`v1.145.0`). Empty: unknown.
        pub gardener_version: String,
        /// The controllers.
        pub controllers: Controllers,
    }

    /// Access to the garden cluster.
    pub struct ClientConnection {
        /// Path of a kubeconfig, after `KUBECONFIG`; empty: the cluster that the process runs in.
        pub kubeconfig: String,
        /// Accepted, without effect.
        pub accept_content_types: String,
        /// Accepted, without effect.
        pub content_type: String,
        /// Requests per second; negative is unlimited. See [`ClientConnection::rate_limit`].
        #[default(DEFAULTS.rate_limit.qps)]
        pub qps: f64,
        /// Additional requests at once.
        #[default(i64::from(DEFAULTS.rate_limit.burst))]
        pub burst: i64,
    }

    /// Listening addresses.
    pub struct Server {
        /// Probes.
        #[default(PlainServer::at(DEFAULTS.probes_port))]
        pub health_probes: PlainServer,
        /// Metrics and profiling.
        #[default(PlainServer::at(DEFAULTS.metrics_port))]
        pub metrics: PlainServer,
    }

    /// The controllers. An absent block has all its defaults, except for `event`.
    pub struct Controllers {
        /// Bastions.
        pub bastion: Bastion,
        /// CertificateSigningRequests.
        pub certificate_signing_request: WorkersOnly,
        /// CloudProfiles.
        pub cloud_profile: WorkersOnly,
        /// NamespacedCloudProfiles.
        pub namespaced_cloud_profile: WorkersOnly,
        /// ControllerDeployments.
        pub controller_deployment: WorkersOnly,
        /// Objects that ControllerDeployments refer to.
        pub controller_deployment_reference: WorkersOnly,
        /// ControllerRegistrations and ControllerInstallations.
        pub controller_registration: ControllerRegistration,
        /// ExposureClasses.
        pub exposure_class: WorkersOnly,
        /// Quotas.
        pub quota: WorkersOnly,
        /// SecretBindings.
        pub secret_binding: WorkersOnly,
        /// CredentialsBindings.
        pub credentials_binding: CredentialsBinding,
        /// Events. `None`: the controller does not run.
        pub event: Option<Event>,
        /// Projects.
        pub project: Project,
        /// Heartbeats of gardenlets.
        pub seed: Seed,
        /// Extensions of Seeds.
        pub seed_extensions_check: SeedCheck,
        /// BackupBuckets of Seeds.
        pub seed_backup_buckets_check: SeedCheck,
        /// Objects that Seeds refer to.
        pub seed_reference: WorkersOnly,
        /// Maintenance of Shoots.
        pub shoot_maintenance: ShootMaintenance,
        /// Life time of Shoots.
        pub shoot_quota: ShootQuota,
        /// Hibernation of Shoots.
        pub shoot_hibernation: ShootHibernation,
        /// Objects that Shoots refer to.
        pub shoot_reference: ShootReference,
        /// Retries of failed Shoots.
        pub shoot_retry: ShootRetry,
        /// Conditions of Shoots.
        pub shoot_conditions: WorkersOnly,
        /// The label with the status of a Shoot.
        pub shoot_status_label: WorkersOnly,
        /// Migration of Shoots between Seeds.
        pub shoot_migration: WorkersOnly,
        /// ShootStates. Their number of workers must not be negative.
        pub shoot_state: WorkersOnly,
        /// ManagedSeedSets.
        pub managed_seed_set: ManagedSeedSet,
        /// How long a controller waits for its caches before it counts as failed.
        pub cache_sync_timeout: Positive<{ 2 * MINUTES }>,
    }

    /// A controller without other settings.
    #[derive(Copy)]
    pub struct WorkersOnly {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
    }

    /// Bastions.
    #[derive(Copy)]
    pub struct Bastion {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Age at which a Bastion is deleted.
        pub max_lifetime: Period<{ 24 * HOURS }>,
    }

    /// ControllerRegistrations and ControllerInstallations.
    #[derive(Copy)]
    pub struct ControllerRegistration {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Bind a ServiceAccount in a namespace of a Project only if its Shoot and installation confirm it (decision 28).
        pub strict_extension_service_accounts: bool,
    }

    /// CredentialsBindings.
    #[derive(Copy)]
    pub struct CredentialsBinding {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// WorkloadIdentities get the label of their provider, as Secrets do (spec 81 D-3).
        #[default(true)]
        pub label_workload_identities: bool,
    }

    /// Events.
    #[derive(Copy)]
    pub struct Event {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Age at which Events of other kinds than Shoot are deleted.
        pub ttl_non_shoot_events: Period<HOURS>,
    }

    /// Projects.
    pub struct Project {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Age in days before which a Project is never stale.
        #[default(30)]
        pub minimum_lifetime_days: i64,
        /// Days without use until a Project becomes stale.
        #[default(14)]
        pub stale_grace_period_days: i64,
        /// Days until a stale Project is deleted.
        #[default(90)]
        pub stale_expiration_time_days: i64,
        /// Time between two looks at a Project for staleness.
        pub stale_sync_period: Positive<{ 12 * HOURS }>,
        /// ResourceQuotas for the namespaces of Projects. The first whose selector matches counts.
        pub quotas: Vec<ProjectQuota>,
    }

    /// Heartbeats of gardenlets (spec 81 part K).
    #[derive(Copy)]
    pub struct Seed {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time between two looks at the Lease of a gardenlet.
        pub sync_period: Positive<10>,
        /// Age of a Lease at which its gardenlet counts as stopped.
        pub monitor_period: Positive<40>,
        /// As in the file; see [`Seed::shoot_monitor_period`].
        pub shoot_monitor_period: Option<Period<0>>,
    }

    /// A condition of Seeds.
    pub struct SeedCheck {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time between two checks.
        pub sync_period: Positive<30>,
        /// How long conditions are `Progressing` before they become `False`.
        pub condition_thresholds: Vec<ConditionThreshold>,
    }

    /// How long a condition is `Progressing` before it becomes `False`.
    pub struct ConditionThreshold {
        /// Type of the condition.
        #[serde(rename = "type")]
        pub condition_type: String,
        /// The time; zero: it becomes `False` at once.
        pub duration: Period<0>,
    }

    /// Maintenance of Shoots.
    #[derive(Copy)]
    pub struct ShootMaintenance {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Restart some control plane components during maintenance.
        #[default(true)]
        pub enable_shoot_control_plane_restarter: bool,
        /// Restart some components in Shoots during maintenance.
        pub enable_shoot_core_addon_restarter: bool,
    }

    /// Life time of Shoots.
    #[derive(Copy)]
    pub struct ShootQuota {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time between two looks at a Shoot.
        pub sync_period: Positive<{ 60 * MINUTES }>,
        /// An expiration time later than the Quota allows is reduced (decision 22).
        pub enforce_maximum_expiration: bool,
    }

    /// Hibernation of Shoots.
    #[derive(Copy)]
    pub struct ShootHibernation {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// How late a missed trigger still counts.
        pub trigger_deadline_duration: Period<{ 2 * HOURS }>,
    }

    /// Objects that Shoots refer to.
    #[derive(Copy)]
    pub struct ShootReference {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// ConfigMaps with audit policies are protected, too (spec 80 D-3).
        #[default(true)]
        pub protect_audit_policy_config_maps: bool,
    }

    /// Retries of failed Shoots.
    #[derive(Copy)]
    pub struct ShootRetry {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Time between two retries.
        pub retry_period: Period<{ 10 * MINUTES }>,
        /// Longest random time in addition.
        pub retry_jitter_period: Period<{ 5 * MINUTES }>,
    }

    /// ManagedSeedSets.
    #[derive(Copy)]
    pub struct ManagedSeedSet {
        /// Concurrent reconciles.
        pub concurrent_syncs: Workers,
        /// Retries of a failed Shoot.
        #[default(3)]
        pub max_shoot_retries: i64,
        /// Time between two reconciles.
        pub sync_period: Positive<{ 30 * MINUTES }>,
    }
}

impl Seed {
    /// How long a gardenlet counts as stopped before the conditions of its Shoots become `Unknown`: as in the file, or
    /// five times `monitor_period`.
    pub fn shoot_monitor_period(&self) -> Duration {
        self.shoot_monitor_period.map_or_else(|| self.monitor_period.get().saturating_mul(5), Period::get)
    }
}

impl SeedCheck {
    /// Returns how long a condition is `Progressing` before it turns bad: the first entry of its type counts (spec 83 §4).
    pub fn threshold(&self, condition_type: &str) -> Duration {
        let threshold = self.condition_thresholds.iter().find(|threshold| threshold.condition_type == condition_type);
        threshold.map_or(Duration::ZERO, |threshold| threshold.duration.get())
    }
}

impl Controllers {
    /// Periods that are not positive count as absent (spec 80 §4), with a warning. A zero that cannot be told from an
    /// absent one gives none.
    pub(super) fn settle(&mut self, warnings: &mut Vec<Warning>) {
        self.seed.shoot_monitor_period = Some(self.seed.shoot_monitor_period().into());
        let unset = self.managed_seed_set.sync_period.written().nanos() == 0;
        let replaced = [
            ("seed.syncPeriod", self.seed.sync_period.is_replaced()),
            ("seed.monitorPeriod", self.seed.monitor_period.is_replaced()),
            ("seedExtensionsCheck.syncPeriod", self.seed_extensions_check.sync_period.is_replaced()),
            ("seedBackupBucketsCheck.syncPeriod", self.seed_backup_buckets_check.sync_period.is_replaced()),
            ("shootQuota.syncPeriod", self.shoot_quota.sync_period.is_replaced()),
            ("project.staleSyncPeriod", self.project.stale_sync_period.is_replaced()),
            ("managedSeedSet.syncPeriod", self.managed_seed_set.sync_period.is_replaced() && !unset),
            ("cacheSyncTimeout", self.cache_sync_timeout.is_replaced()),
        ];
        let replaced = replaced.into_iter().filter(|(_, is_replaced)| *is_replaced);
        warnings
            .extend(replaced.map(|(path, _)| Warning::new(format!("controllers.{path}"), WarningKind::NotPositive)));
    }
}
