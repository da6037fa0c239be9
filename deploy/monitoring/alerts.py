"""The alerts of both programs. `generate` makes the PrometheusRules of them, `cases.py` has their tests.

In an expression, JOB is the matcher of the program's scrape job, and OWN_ the prefix of the metrics that only our programs have.
Texts may use the labels of the expression's result. `runbook` is a heading of docs/operations.md.
"""
from typing import NamedTuple

MINUTE = 60
HOUR = 60 * MINUTE
DAY = 24 * HOUR

TOKEN_SECONDS = HOUR  # a token is renewed at 80 % of its lifetime: with less than 5 hours of lifetime, lower this number
CERTIFICATE_SECONDS = 7 * DAY
DELETION_SECONDS = 7 * DAY  # operators delete CloudProfiles and the like, and others must move away first


class Program(NamedTuple):
    name: str  # also its scrape job
    alerts: str  # begins the names of its alerts
    metrics: str  # begins the names of its own metrics
    page: str  # of all its metrics in docs/reference/


class Alert(NamedTuple):
    name: str  # without the program
    expression: str
    minutes: int  # for so long the expression must have a result
    severity: str
    summary: str
    description: str
    runbook: str


RESOURCE_MANAGER = Program("gardener-resource-manager", "GardenerResourceManager", "gardener_resource_manager_", "metrics.md")
CONTROLLER_MANAGER = Program("gardener-controller-manager", "GardenerControllerManager", "gardener_controller_manager_",
                             "controller-manager-metrics.md")

NAMESPACE = "{{ $labels.namespace }}"
CONTROLLER = "{{ $labels.controller }}"
POD = "{{ $labels.pod }}"
WEBHOOK = "{{ $labels.webhook }}"

OF_EVERY_PROGRAM = [
    Alert(
        "Down",
        "absent(up{JOB} == 1)",
        10, "critical",
        "No replica of PROGRAM can be scraped.",
        "Look first whether its Pods run and are ready.",
        "No replica answers",
    ),
    Alert(
        "NoLeader",
        "max by (namespace, name) (leader_election_master_status{JOB}) == 0",
        5, "critical",
        f"No replica of PROGRAM in namespace {NAMESPACE} leads.",
        "No controller runs. Look first at the holder and the renewTime of the Lease {{ $labels.name }}.",
        "No replica leads",
    ),
    Alert(
        "CacheStale",
        'sum by (namespace, pod) (OWN_actors{JOB,role="watch",activity="failing"}) > 0',
        10, "warning",
        f"Pod {POD} in namespace {NAMESPACE} cannot watch some kinds.",
        "Look first for the record `watch failed` in the log of the Pod: its error names a missing right or the problem of the API server.",
        "A cache is stale",
    ),
    Alert(
        "ReconcileErrors",
        """
sum by (namespace, controller) (rate(controller_runtime_reconcile_errors_total{JOB}[15m]))
  / sum by (namespace, controller) (rate(controller_runtime_reconcile_total{JOB}[15m])) > 0.2""",
        30, "warning",
        f"More than a fifth of the reconciles of controller {CONTROLLER} in namespace {NAMESPACE} fail.",
        "Look first at the actors in state backing off on the dashboard of the leading replica: each shows its last error.",
        "Reconciles fail",
    ),
    Alert(
        "ReconcilePanics",
        "sum by (namespace, controller) (increase(controller_runtime_reconcile_panics_total{JOB}[30m])) > 0",
        0, "warning",
        f"Controller {CONTROLLER} in namespace {NAMESPACE} panicked.",
        "This is a defect. Look first for the object in the log of the leading replica, and whether the panic repeats.",
        "A controller panics",
    ),
    Alert(
        "WorkQueueSlow",
        """
histogram_quantile(0.99,
  sum by (namespace, controller, le) (rate(workqueue_queue_duration_seconds_bucket{JOB}[10m]))
) > 100""",
        15, "warning",
        f"Keys of controller {CONTROLLER} in namespace {NAMESPACE} wait for more than 100 seconds.",
        "Look first whether requests to a cluster wait, and whether all permits of the controller are in use.",
        "Work waits for too long",
    ),
    Alert(
        "WorkQueueStuck",
        """
max by (namespace, controller) (min_over_time(workqueue_depth{JOB, priority="high"}[15m])) > 0
  and sum by (namespace, controller) (increase(workqueue_work_duration_seconds_count{JOB}[15m])) == 0""",
        5, "warning",
        f"Urgent keys of controller {CONTROLLER} in namespace {NAMESPACE} wait, and no work ends.",
        "Look first at the actors in state waiting on the dashboard of the leading replica.",
        "Work waits for too long",
    ),
    Alert(
        "WorkStuck",
        "max by (namespace, controller) (workqueue_longest_running_processor_seconds{JOB}) > 900",
        5, "warning",
        f"A reconcile of controller {CONTROLLER} in namespace {NAMESPACE} has been running for more than 15 minutes.",
        "Look first at the actors in state running on the dashboard of the leading replica.",
        "Work waits for too long",
    ),
    Alert(
        "EventLoopStalls",
        "sum by (namespace, pod) (increase(OWN_arbiter_stalls_total{JOB}[30m])) >= 2",
        0, "warning",
        f"The thread of the controllers stood still repeatedly in Pod {POD} of namespace {NAMESPACE}.",
        "Nothing is reconciled meanwhile. Look first whether the Pod reaches its CPU limit.",
        "The event loop stalls",
    ),
]

OF_RESOURCE_MANAGER = [
    Alert(
        "BundleNotApplied",
        """
sum by (namespace, reason) (
  OWN_managedresource_status{JOB, condition="ResourcesApplied", status!="True", reason!~"DeletionPending|StatusTooLarge"}
) > 0""",
        15, "warning",
        f"ManagedResources of gardener-resource-manager in namespace {NAMESPACE} are not applied: {{{{ $labels.reason }}}}.",
        "List them first, with their problems: gardener-resource-manager get -A --unhealthy",
        "Bundles are not applied",
    ),
    Alert(
        "BundleUnhealthy",
        """
sum by (namespace, reason) (
  OWN_managedresource_status{JOB, condition="ResourcesHealthy", status="False", reason!="DeletionPending"}
) > 0""",
        15, "warning",
        f"Objects of gardener-resource-manager in namespace {NAMESPACE} are not healthy: {{{{ $labels.reason }}}}.",
        "List their ManagedResources first, with their problems: gardener-resource-manager get -A --unhealthy",
        "Bundles are unhealthy",
    ),
    Alert(
        "TokensNotRenewed",
        'sum by (namespace, state) (OWN_tokens{JOB, state!="fresh"}) > 0',
        30, "warning",
        f"gardener-resource-manager in namespace {NAMESPACE} cannot renew tokens, which are {{{{ $labels.state }}}}.",
        "Look first at the Events TokenNotRenewed of the Secrets: kubectl get events -A --field-selector reason=TokenNotRenewed",
        "Tokens come near their end",
    ),
    Alert(
        "TokenNearExpiry",
        f"min by (namespace) (OWN_token_nearest_expiry_seconds{{JOB}}) < {TOKEN_SECONDS}",
        10, "critical",
        f"A token of gardener-resource-manager in namespace {NAMESPACE} expires in less than an hour, or has expired.",
        "Its users lose their access then. Look first at the expiry of the Secrets on the dashboard of the leading replica.",
        "Tokens come near their end",
    ),
    Alert(
        "WebhookErrors",
        """
sum by (namespace, webhook) (rate(controller_runtime_webhook_requests_total{JOB, code!="200"}[10m]))
  / sum by (namespace, webhook) (rate(controller_runtime_webhook_requests_total{JOB}[10m])) > 0.05""",
        10, "critical",
        f"Webhook {WEBHOOK} in namespace {NAMESPACE} answers more than 5 % of its requests with an error.",
        "API servers may refuse the requests of users. Look first which HTTP status it is: 429 is overload, 500 a defect.",
        "Webhooks fail",
    ),
    Alert(
        "WebhookReviewsFail",
        """
sum by (namespace, webhook, cause) (
  rate(OWN_webhook_failures_total{JOB, cause=~"namespace|autoscalers|nodes|internal|panic"}[10m])
) > 0""",
        10, "warning",
        f"Webhook {WEBHOOK} in namespace {NAMESPACE} cannot decide on reviews: {{{{ $labels.cause }}}}.",
        "It denies them. Look first for `Review not decided` and `A live read for a webhook failed` in the logs of all replicas.",
        "Webhooks fail",
    ),
    Alert(
        "AuthorizerErrors",
        'sum by (namespace, webhook) (rate(OWN_authorizer_decisions_total{JOB, decision="error"}[10m])) > 0',
        10, "warning",
        f"The authorizer {WEBHOOK} in namespace {NAMESPACE} cannot decide.",
        "Node agents may be refused. Look first for `Error when consulting authorizer for opinion` in the logs of all replicas.",
        "Webhooks fail",
    ),
    Alert(
        "WebhookSlow",
        """
histogram_quantile(0.99,
  sum by (namespace, webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket{JOB}[10m]))
) > 1""",
        10, "warning",
        f"One of a hundred requests to webhook {WEBHOOK} in namespace {NAMESPACE} takes longer than a second.",
        "API servers give up after the timeout of the registration. Look first whether the Pods reach their CPU limits.",
        "Webhooks are slow",
    ),
    Alert(
        "ServingCertificateNearExpiry",
        f"min by (namespace, pod) (OWN_serving_certificate_expiration_timestamp_seconds{{JOB}}) - time() < {CERTIFICATE_SECONDS}",
        15, "critical",
        f"The serving certificate of Pod {POD} in namespace {NAMESPACE} expires in less than seven days, or has expired.",
        "API servers reach no webhook after that. Look first whether the Secret has a newer certificate than the Pod.",
        "The serving certificate comes near its end",
    ),
    Alert(
        "ServingCertificateUnreadable",
        "sum by (namespace, pod) (increase(certwatcher_read_certificate_errors_total{JOB}[10m])) > 0",
        15, "warning",
        f"Pod {POD} in namespace {NAMESPACE} cannot read its serving certificate again.",
        "The last good one stays in use. Look first for `The serving certificate cannot be read again` in the log of the Pod.",
        "The serving certificate comes near its end",
    ),
]

OF_CONTROLLER_MANAGER = [
    Alert(
        "ControllerWaits",
        "max by (namespace, controller) (OWN_controller_ready{JOB}) == 0",
        15, "warning",
        f"Controller {CONTROLLER} in namespace {NAMESPACE} waits for its caches, and does nothing.",
        "Look first whether the cluster serves its kinds: gardener-controller-manager check --config FILE",
        "A controller waits for its caches",
    ),
    Alert(
        "SeedGardenletSilent",
        'sum by (namespace, state) (OWN_gardenlets{JOB, kind="Seed", state=~"silent|expired"}) > 0',
        5, "critical",
        f"Gardenlets of Seeds are {{{{ $labels.state }}}}, as the program in namespace {NAMESPACE} sees it.",
        "Their Shoots are not looked after. Look first at the Seeds whose condition GardenletReady is Unknown: kubectl get seeds",
        "A gardenlet is silent",
    ),
    Alert(
        "SeedConditionBad",
        'sum by (namespace, condition) (OWN_seed_conditions{JOB, status="False"}) > 0',
        15, "warning",
        f"Seeds have the condition {{{{ $labels.condition }}}} False, as the program in namespace {NAMESPACE} sees it.",
        "Look first at the message of the condition: it names BackupBuckets or ControllerInstallations with their errors.",
        "Backups or extensions of a Seed do not work",
    ),
    Alert(
        "SeedSecretsNotCopied",
        'sum by (namespace, state) (OWN_seed_secrets{JOB, state!="copied"}) > 0',
        30, "warning",
        f"Seeds lack copies of Secrets of the garden: {{{{ $labels.state }}}}, in namespace {NAMESPACE}.",
        "Look first at the actors seed-secrets/… on the dashboard of the leading replica: each shows its last error.",
        "Secrets are not copied to Seeds",
    ),
    Alert(
        "CertificateRequestDenied",
        'sum by (namespace) (increase(OWN_certificate_requests_total{JOB, decision="denied"}[1h])) > 0',
        0, "warning",
        f"The program in namespace {NAMESPACE} denied the client certificate of a gardenlet.",
        "Look first at the reason: kubectl get csr, then kubectl describe csr.",
        "A gardenlet gets no certificate",
    ),
    Alert(
        "DeletionHeld",
        f"""
time() - min by (namespace, kind) (
  OWN_held_deletion_oldest_timestamp_seconds{{
    JOB, controller!~".*-reference", kind=~"CloudProfile|ControllerDeployment|ExposureClass|Quota"
  }}
) > {DELETION_SECONDS}""",
        15, "warning",
        f"A {{{{ $labels.kind }}}} has been in deletion for more than a week, as the program in namespace {NAMESPACE} sees it.",
        "Others refer to it. Find it with kubectl, and ask first who: gardener-controller-manager referrers KIND [NAMESPACE/]NAME",
        "An object stays in deletion",
    ),
]

ALERTS = {
    RESOURCE_MANAGER: OF_EVERY_PROGRAM + OF_RESOURCE_MANAGER,
    CONTROLLER_MANAGER: OF_EVERY_PROGRAM + OF_CONTROLLER_MANAGER,
}


def name_of(program, alert):
    """Returns the whole name of an alert."""
    return program.alerts + alert.name


def fill_in(text, program):
    """Returns a text of this file as it is for a program."""
    job = f'job="{program.name}"'
    return text.strip().replace("JOB", job).replace("OWN_", program.metrics).replace("PROGRAM", program.name)
