"""The dashboards of both programs. `generate` makes Grafana's JSON of them.

In a query, JOB is the matcher of the program's scrape job and of the chosen namespaces, OWN_ the prefix of the metrics that only our
programs have, and RATE the range of a rate. A panel maps the legend of each query to the query.
"""
from typing import NamedTuple

from alerts import CONTROLLER_MANAGER, RESOURCE_MANAGER, Program

# Units of Grafana.
COUNT, PER_SECOND, SECONDS, BYTES, SHARE = "short", "ops", "s", "bytes", "percentunit"


class Panel(NamedTuple):
    title: str
    unit: str
    queries: dict
    help: str = ""
    is_number: bool = False  # shows the last value only
    is_stacked: bool = False


class Row(NamedTuple):
    title: str
    panels: list  # side by side


class Dashboard(NamedTuple):
    name: str  # of the file, and Grafana's uid
    title: str
    program: Program
    rows: list
    variables: dict  # labels whose values can be chosen, each with a metric that has the label


def number(title, expression, help="", unit=COUNT, legend=""):
    return Panel(title, unit, {legend: expression}, help, is_number=True)


def quantiles(metric, matchers, label):
    """Returns the median and the 99th percentile of a histogram by a label."""
    buckets = f"sum by ({label}, le) (rate({metric}_bucket{{{matchers}}}[RATE]))"
    return {f"{{{{{label}}}}} p{name}": f"histogram_quantile({quantile}, {buckets})" for name, quantile in ((50, 0.5), (99, 0.99))}


REPLICAS = Row("Replicas", [
    number("Replicas that answer", "sum(up{JOB})"),
    number("Leader", "sum by (name) (leader_election_master_status{JOB})", "1 is right. 0: no controller runs.", legend="{{name}}"),
    number("Configurations", "count(count by (hash) (OWN_config_hash{JOB}))", "More than 1: replicas run with different configurations."),
    number("Version", "count by (version) (OWN_build_info{JOB})", "Replicas by version.", legend="{{version}}"),
    number("Running since", "time() - max by (pod) (process_start_time_seconds{JOB})", unit=SECONDS, legend="{{pod}}"),
])

RESOURCES = Row("Resources of the process", [
    Panel("CPU", COUNT, {"{{pod}}": "rate(process_cpu_seconds_total{JOB}[RATE])"}, "Cores in use."),
    Panel("Memory", BYTES, {"{{pod}}": "process_resident_memory_bytes{JOB}"}),
    Panel("Open files", SHARE, {"{{pod}}": "process_open_fds{JOB} / process_max_fds{JOB}"}, "Share of the limit."),
])

CACHES = Row("API servers and caches", [
    Panel("Requests", PER_SECOND, {"{{method}} {{code}}": "sum by (method, code) (rate(rest_client_requests_total{JOB}[RATE]))"}),
    Panel("Requests that wait", COUNT, {
        "{{cluster}} {{priority}}": "sum by (cluster, priority) (OWN_request_scheduler_waiting{JOB})",
        "{{cluster}} writes in flight": "sum by (cluster) (OWN_request_scheduler_writes_in_flight{JOB})",
    }, "If requests wait all the time, raise qps of the connection."),
    Panel("Watches", COUNT, {"{{activity}}": 'sum by (activity) (OWN_actors{JOB,role="watch"})'}),
])

FAILURES = Row("Reconciles that fail", [
    Panel("Errors", PER_SECOND, {"{{controller}}": "sum by (controller) (rate(controller_runtime_reconcile_errors_total{JOB}[RATE])) > 0"}),
    Panel("Errors that a retry cannot fix", COUNT,
          {"{{controller}}": "sum by (controller) (increase(controller_runtime_terminal_reconcile_errors_total{JOB}[1h])) > 0"},
          "In the last hour. A user has to correct something."),
    Panel("Panics and timeouts", COUNT, {
        "{{controller}} panics": "sum by (controller) (increase(controller_runtime_reconcile_panics_total{JOB}[1h])) > 0",
        "{{controller}} timeouts": "sum by (controller) (increase(controller_runtime_reconcile_timeouts_total{JOB}[1h])) > 0",
    }, "In the last hour. Panics are defects."),
])

OF_CONTROLLERS = 'JOB, controller=~"$controller"'
ACTORS = [
    Row("Actors", [
        Panel("Actors by activity", COUNT, {"{{activity}}": "sum by (activity) (OWN_actors{JOB})"}, is_stacked=True),
        Panel("Actors by role", COUNT, {"{{role}}": "sum by (role) (OWN_actors{JOB})"}, is_stacked=True),
        Panel("Actors with a problem", COUNT,
              {"{{role}} {{activity}}": 'sum by (role, activity) (OWN_actors{JOB, activity=~"backing_off|failing|quarantined"}) > 0'},
              "The dashboard of the program names them, with their errors."),
    ]),
    Row("Event loop", [
        Panel("Stalls", COUNT, {"{{pod}}": "increase(OWN_arbiter_stalls_total{JOB}[1h])"}, "In the last hour. Nothing is reconciled meanwhile."),
        Panel("Messages that a full mailbox refused", PER_SECOND,
              {"{{mailbox}}": "sum by (mailbox) (rate(OWN_mailbox_overflows_total{JOB}[RATE]))"}),
        Panel("Periods with nothing to do", PER_SECOND,
              {"{{controller}}": f"sum by (controller) (rate(OWN_idle_checks_total{{{OF_CONTROLLERS}}}[RATE]))"},
              "If they stop and nothing is reconciled, the controller is stuck."),
    ]),
    Row("Reconciles", [
        Panel("Reconciles by result", PER_SECOND, {
            "{{controller}} {{result}}": f"sum by (controller, result) (rate(controller_runtime_reconcile_total{{{OF_CONTROLLERS}}}[RATE])) > 0"}),
        Panel("Duration", SECONDS, quantiles("controller_runtime_reconcile_time_seconds", OF_CONTROLLERS, "controller")),
        Panel("Permits in use", SHARE, {"{{controller}}":
              f"sum by (controller) (controller_runtime_active_workers{{{OF_CONTROLLERS}}})\n"
              f"  / sum by (controller) (controller_runtime_max_concurrent_reconciles{{{OF_CONTROLLERS}}})"},
              "Share of concurrentSyncs."),
    ]),
    Row("Work queues", [
        Panel("Keys that wait for a permit", COUNT,
              {"{{controller}} {{priority}}": f"sum by (controller, priority) (workqueue_depth{{{OF_CONTROLLERS}}})"}),
        Panel("Time until a permit", SECONDS, quantiles("workqueue_queue_duration_seconds", OF_CONTROLLERS, "controller")),
        Panel("Longest running work", SECONDS,
              {"{{controller}}": f"max by (controller) (workqueue_longest_running_processor_seconds{{{OF_CONTROLLERS}}})"}),
        Panel("Keys added and retried", PER_SECOND, {
            "{{controller}} added": f"sum by (controller) (rate(workqueue_adds_total{{{OF_CONTROLLERS}}}[RATE]))",
            "{{controller}} retried": f"sum by (controller) (rate(workqueue_retries_total{{{OF_CONTROLLERS}}}[RATE]))",
        }),
    ]),
]

BUNDLES = Row("ManagedResources", [
    Panel("Applied", COUNT, {"{{status}} {{reason}}":
          'sum by (status, reason) (OWN_managedresource_status{JOB, condition="ResourcesApplied"})'}, is_stacked=True),
    Panel("Healthy", COUNT, {"{{status}} {{reason}}":
          'sum by (status, reason) (OWN_managedresource_status{JOB, condition="ResourcesHealthy"})'}, is_stacked=True),
    Panel("Progressing", COUNT, {"{{status}} {{reason}}":
          'sum by (status, reason) (OWN_managedresource_status{JOB, condition="ResourcesProgressing"})'}, is_stacked=True),
])

WEBHOOKS = [
    Row("Webhooks", [
        Panel("Requests", PER_SECOND,
              {"{{webhook}} {{code}}": "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total{JOB}[RATE])) > 0"}),
        Panel("Latency", SECONDS, quantiles("controller_runtime_webhook_latency_seconds", "JOB", "webhook")),
        Panel("Requests in flight", COUNT, {"{{webhook}}": "sum by (webhook) (controller_runtime_webhook_requests_in_flight{JOB})"}),
    ]),
    Row("Reviews that were not allowed", [
        Panel("By cause", PER_SECOND, {"{{webhook}} {{cause}}": "sum by (webhook, cause) (rate(OWN_webhook_failures_total{JOB}[RATE])) > 0"}),
        Panel("Denials by resource", PER_SECOND,
              {"{{webhook}} {{resource}}": "sum by (webhook, resource) (rate(OWN_webhook_denials_total{JOB}[RATE])) > 0"}),
        Panel("Decisions of the authorizer", PER_SECOND,
              {"{{resource}} {{decision}}": "sum by (resource, decision) (rate(OWN_authorizer_decisions_total{JOB}[RATE])) > 0"}),
    ]),
    Row("Tokens and certificates", [
        Panel("Tokens by state", COUNT, {"{{state}}": "sum by (state) (OWN_tokens{JOB})"}, is_stacked=True),
        Panel("Time until the first token expires", SECONDS, {"{{namespace}}": "min by (namespace) (OWN_token_nearest_expiry_seconds{JOB})"}),
        Panel("Time until the serving certificate expires", SECONDS,
              {"{{pod}}": "min by (pod) (OWN_serving_certificate_expiration_timestamp_seconds{JOB}) - time()"}),
        Panel("Reads of the certificate that failed", COUNT,
              {"{{pod}}": "increase(certwatcher_read_certificate_errors_total{JOB}[1h]) > 0"}, "In the last hour."),
    ]),
]

FEATURES = Row("Nodes, networks and garbage", [
    Panel("Nodes that wait", COUNT, {"{{for}}": "sum by (for) (OWN_nodes_waiting{JOB})"}, "By what they wait for."),
    Panel("Time until a node was ready", SECONDS, {
        "p50": "histogram_quantile(0.5, sum by (le) (rate(OWN_node_join_seconds_bucket{JOB}[1h])))",
        "p99": "histogram_quantile(0.99, sum by (le) (rate(OWN_node_join_seconds_bucket{JOB}[1h])))",
    }),
    Panel("Services that cannot be read", COUNT, {"{{namespace}}": "sum by (namespace) (OWN_network_policy_failing_services{JOB})"}),
    Panel("Garbage in the last run", COUNT, {"{{state}}": "sum by (state) (OWN_garbage{JOB})"}),
])

GARDEN = [
    Row("Objects of the garden", [
        Panel("Objects that stay in deletion", COUNT,
              {"{{kind}} by {{controller}}": "sum by (kind, controller) (OWN_held_deletions{JOB}) > 0"},
              "Others refer to them. The command referrers says who.", is_stacked=True),
        Panel("Longest deletion", SECONDS,
              {"{{kind}}": "time() - min by (kind) (OWN_held_deletion_oldest_timestamp_seconds{JOB})"}),
        Panel("Referrers whose objects are missing", COUNT,
              {"{{controller}}": "sum by (controller) (OWN_referrers_with_missing_objects{JOB}) > 0"},
              "Users have to create the objects, or to correct the references."),
    ]),
    Row("Seeds and gardenlets", [
        Panel("Gardenlets by state", COUNT, {"{{kind}} {{state}}": "sum by (kind, state) (OWN_gardenlets{JOB}) > 0"}, is_stacked=True),
        Panel("Conditions of Seeds", COUNT,
              {"{{condition}} {{status}}": "sum by (condition, status) (OWN_seed_conditions{JOB}) > 0"}, is_stacked=True),
        Panel("Seeds by the copies of Secrets", COUNT, {"{{state}}": "sum by (state) (OWN_seed_secrets{JOB})"},
              "undone: another client changes copies again and again.", is_stacked=True),
    ]),
    Row("Certificates, Events and Bastions", [
        Panel("CertificateSigningRequests", COUNT,
              {"{{decision}}": "sum by (decision) (increase(OWN_certificate_requests_total{JOB}[1h]))"}, "In the last hour."),
        Panel("Deleted Events", PER_SECOND, {"": "sum(rate(OWN_deleted_events_total{JOB}[RATE]))"},
              "Empty if controllers.event is not configured."),
        Panel("Deleted Bastions", COUNT, {"{{reason}}": "sum by (reason) (increase(OWN_deleted_bastions_total{JOB}[1h]))"}, "In the last hour."),
        Panel("Controllers that wait for caches", COUNT,
              {"{{controller}}": "max by (controller) (OWN_controller_ready{JOB}) == 0"}, "For example because a kind is not served."),
    ]),
]

NAMESPACES = {"namespace": "up"}
CONTROLLERS = {**NAMESPACES, "controller": "controller_runtime_max_concurrent_reconciles"}

DASHBOARDS = [
    Dashboard("gardener-resource-manager", "gardener-resource-manager", RESOURCE_MANAGER,
              [REPLICAS, BUNDLES, FAILURES, CACHES, *WEBHOOKS, FEATURES, RESOURCES], NAMESPACES),
    Dashboard("gardener-resource-manager-actors", "gardener-resource-manager: actors", RESOURCE_MANAGER, ACTORS, CONTROLLERS),
    Dashboard("gardener-controller-manager", "gardener-controller-manager", CONTROLLER_MANAGER,
              [REPLICAS, *GARDEN, FAILURES, *ACTORS, CACHES, RESOURCES], CONTROLLERS),
]


def fill_in(query, program):
    """Returns a query of this file as it is for a program."""
    job = f'job="{program.name}", namespace=~"$namespace"'
    return query.replace("JOB", job).replace("OWN_", program.metrics).replace("RATE", "$__rate_interval")
