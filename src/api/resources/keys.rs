//! Annotations, labels, finalizers, data keys and fixed texts of the `resources.gardener.cloud` API (spec 10 §2.7,
//! §2.8, §6). Values that must match exactly stand next to their key.

// --- identity of the API (spec 10 §2.1)

/// API group of ManagedResources.
pub const GROUP: &str = "resources.gardener.cloud";
/// The only version, served and stored.
pub const VERSION: &str = "v1alpha1";
/// Group and version as an object's `apiVersion`.
pub const API_VERSION: &str = "resources.gardener.cloud/v1alpha1";
/// Kind.
pub const KIND: &str = "ManagedResource";
/// Plural, as in URLs.
pub const PLURAL: &str = "managedresources";

// --- finalizers and classes (spec 10 §6)

/// The finalizer of the default class and of `*`; other classes append `-` and their name.
pub const BASE_FINALIZER: &str = "resources.gardener.cloud/gardener-resource-manager";
/// The class of ManagedResources without a class.
pub const DEFAULT_CLASS: &str = "resources";
/// The configured class that handles every ManagedResource.
pub const ALL_CLASSES: &str = "*";

// --- ManagedResources and their objects (spec 10 §2.7)

/// Annotation. On a ManagedResource: skip it. On a manifest: create the object once, never update it. Truthy.
pub const IGNORE: &str = "resources.gardener.cloud/ignore";
/// Annotation on a ManagedResource: one of the `OPERATION_` values (spec 10 §5.2).
pub const OPERATION: &str = "gardener.cloud/operation";
/// Reconcile once more; the annotation is removed first.
pub const OPERATION_RECONCILE: &str = "reconcile";
/// Reconcile; the annotation stays.
pub const OPERATION_MIGRATE: &str = "migrate";
/// Reconcile; the annotation stays.
pub const OPERATION_RESTORE: &str = "restore";
/// Do nothing until the annotation is gone.
pub const OPERATION_WAIT_FOR_STATE: &str = "wait-for-state";
/// Annotation on a manifest; only [`MODE_IGNORE`] has a meaning (spec 10 §9.4).
pub const MODE: &str = "resources.gardener.cloud/mode";
/// The object is released: not applied, not deleted (spec 10 §14).
pub const MODE_IGNORE: &str = "Ignore";
/// Annotation on a manifest: keep live `.spec.replicas`. Exactly `true`.
pub const PRESERVE_REPLICAS: &str = "resources.gardener.cloud/preserve-replicas";
/// Annotation on a manifest: keep live cpu and memory requests and limits. Exactly `true`.
pub const PRESERVE_RESOURCES: &str = "resources.gardener.cloud/preserve-resources";
/// Annotation on the merged object: delete it when an update is `Invalid` (spec 10 §11.7). Truthy.
pub const DELETE_ON_INVALID_UPDATE: &str = "resources.gardener.cloud/delete-on-invalid-update";
/// Annotation on the merged object: the propagation policy of that deletion.
pub const DELETION_PROPAGATION_ON_INVALID_UPDATE: &str =
    "resources.gardener.cloud/deletion-propagation-on-invalid-update";
/// Annotation on the live object: never delete it (spec 10 §13.2). Truthy.
pub const KEEP_OBJECT: &str = "resources.gardener.cloud/keep-object";
/// Annotation on the live object: a Go duration, after which a deleted object loses its finalizers (spec 10 §13.5).
pub const FINALIZE_DELETION_AFTER: &str = "resources.gardener.cloud/finalize-deletion-after";
/// Annotation: the health controllers skip the object. Truthy.
pub const SKIP_HEALTH_CHECK: &str = "resources.gardener.cloud/skip-health-check";
/// Annotation on each object: the ManagedResource that owns it (spec 10 §3.2).
pub const ORIGIN: &str = "resources.gardener.cloud/origin";
/// Annotation on each object: [`DESCRIPTION_TEXT`].
pub const DESCRIPTION: &str = "resources.gardener.cloud/description";
/// The warning for people (spec 10 §12.2).
pub const DESCRIPTION_TEXT: &str = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\nAny modifications are discarded and the resource is returned to the original state.";
/// Label on each object; its value is configured.
pub const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";
/// Default of the managed-by label's value.
pub const DEFAULT_MANAGED_BY: &str = "gardener";
/// Annotation of a live pod template that `kubectl rollout restart` sets; carried over (spec 10 §12.3).
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";
/// Prefix of Service annotations that OpenStack's load balancer sets; carried over (spec 10 §12.7).
pub const OPENSTACK_LOAD_BALANCER_PREFIX: &str = "loadbalancer.openstack.org";

// --- compression (spec 10 §9.2, §19.4)

/// Data keys with this ending hold Brotli.
pub const BROTLI_SUFFIX: &str = ".br";
/// The data key that producers use.
pub const COMPRESSED_DATA_KEY: &str = "data.yaml.br";

// --- garbage collector (spec 33)

/// Label of ConfigMaps and Secrets that may be collected while they are not referenced.
pub const GARBAGE_COLLECTABLE: &str = "resources.gardener.cloud/garbage-collectable-reference";
/// Value of [`GARBAGE_COLLECTABLE`].
pub const GARBAGE_COLLECTABLE_VALUE: &str = "true";
/// Prefix of the annotations that name the references of an object.
pub const REFERENCE_PREFIX: &str = "reference.resources.gardener.cloud/";

// --- token requestor and token invalidator (specs 30, 31)

/// Annotation on a Secret: name of the Secret in the target cluster.
pub const TOKEN_TARGET_SECRET_NAME: &str = "token-requestor.resources.gardener.cloud/target-secret-name";
/// Annotation on a Secret: namespace of the Secret in the target cluster.
pub const TOKEN_TARGET_SECRET_NAMESPACE: &str = "token-requestor.resources.gardener.cloud/target-secret-namespace";
/// Label: the purpose of a Secret.
pub const PURPOSE: &str = "resources.gardener.cloud/purpose";
/// Value of [`PURPOSE`]: the token requestor keeps a token in the Secret.
pub const PURPOSE_TOKEN_REQUESTOR: &str = "token-requestor";
/// Value of [`PURPOSE`]: the token invalidator owns the Secret.
pub const PURPOSE_TOKEN_INVALIDATOR: &str = "token-invalidator";
/// Label: the token requestor that is responsible for a Secret.
pub const CLASS: &str = "resources.gardener.cloud/class";
/// Value of [`CLASS`].
pub const CLASS_SHOOT: &str = "shoot";
/// Annotation on a Secret with a static token: name of the ServiceAccount, in the same namespace.
pub const SERVICE_ACCOUNT_OF_TOKEN: &str = "kubernetes.io/service-account.name";
/// Annotation on a Secret: name of the ServiceAccount.
pub const SERVICE_ACCOUNT_NAME: &str = "serviceaccount.resources.gardener.cloud/name";
/// Annotation on a Secret: namespace of the ServiceAccount.
pub const SERVICE_ACCOUNT_NAMESPACE: &str = "serviceaccount.resources.gardener.cloud/namespace";
/// Annotation on a Secret: labels of the ServiceAccount, as a JSON object.
pub const SERVICE_ACCOUNT_LABELS: &str = "serviceaccount.resources.gardener.cloud/labels";
/// Annotation on a Secret: how long a token lives, a Go duration.
pub const TOKEN_EXPIRATION_DURATION: &str = "serviceaccount.resources.gardener.cloud/token-expiration-duration";
/// Annotation on a Secret: when the token is renewed, RFC 3339.
pub const TOKEN_RENEW_TIMESTAMP: &str = "serviceaccount.resources.gardener.cloud/token-renew-timestamp";
/// Annotation on a Secret: write the CA bundle beside the token.
pub const INJECT_CA_BUNDLE: &str = "serviceaccount.resources.gardener.cloud/inject-ca-bundle";
/// Annotation on a Secret: keep the ServiceAccount when the Secret is deleted.
pub const SERVICE_ACCOUNT_SKIP_DELETION: &str = "serviceaccount.resources.gardener.cloud/skip-deletion";
/// Data key of a Secret: the token.
pub const DATA_KEY_TOKEN: &str = "token";
/// Data key of a Secret: the CA bundle.
pub const DATA_KEY_CA_BUNDLE: &str = "bundle.crt";
/// Data key of a Secret: a kubeconfig that holds the token.
pub const DATA_KEY_KUBECONFIG: &str = "kubeconfig";
/// Label of a ServiceAccount: keep its static tokens.
pub const TOKEN_INVALIDATOR_SKIP: &str = "token-invalidator.resources.gardener.cloud/skip";
/// Label of a Secret with a static token: the webhook handles it.
pub const TOKEN_INVALIDATOR_CONSIDER: &str = "token-invalidator.resources.gardener.cloud/consider";

// --- webhooks (specs 50, 51)

/// Label of a workload: [`HIGH_AVAILABILITY_TYPE_CONTROLLER`] or [`HIGH_AVAILABILITY_TYPE_SERVER`].
pub const HIGH_AVAILABILITY_TYPE: &str = "high-availability-config.resources.gardener.cloud/type";
/// Value of [`HIGH_AVAILABILITY_TYPE`].
pub const HIGH_AVAILABILITY_TYPE_CONTROLLER: &str = "controller";
/// Value of [`HIGH_AVAILABILITY_TYPE`].
pub const HIGH_AVAILABILITY_TYPE_SERVER: &str = "server";
