"""A case that fires and a case that does not, for each alert. `generate --promtool` makes promtool's tests of them.

A case is a map from series to their values, one sample per minute, in promtool's notation. JOB stands for the labels that a scrape adds
(job, namespace and pod), with pod="a"; JOB_B is another pod. OWN_ is the prefix of the program's own metrics.
"""
from typing import NamedTuple


class Cases(NamedTuple):
    fires: dict
    labels: dict  # of the alert that fires
    quiet: dict
    minute: int  # the first in which the alert fires; the other case stays quiet beyond it


HERE = {"namespace": "garden"}
IN_POD = {**HERE, "pod": "a"}
OF_CONTROLLER = {**HERE, "controller": "health"}
OF_WEBHOOK = {**HERE, "webhook": "/webhooks/x"}

CASES = {
    "Down": Cases(
        fires={"up{JOB}": "1x5 0x20", "up{JOB_B}": "0x25"}, labels={},
        quiet={"up{JOB}": "0x40", "up{JOB_B}": "1x40"},
        minute=16,
    ),
    "NoLeader": Cases(
        fires={'leader_election_master_status{JOB,name="lease"}': "1x5 0x20", 'leader_election_master_status{JOB_B,name="lease"}': "0x25"},
        labels={**HERE, "name": "lease"},
        quiet={'leader_election_master_status{JOB,name="lease"}': "1x5 0x20", 'leader_election_master_status{JOB_B,name="lease"}': "0x8 1x17"},
        minute=11,
    ),
    "CacheStale": Cases(
        fires={'OWN_actors{JOB,role="watch",activity="failing"}': "0x10 2x30"},
        labels=IN_POD,
        quiet={'OWN_actors{JOB,role="watch",activity="failing"}': "0x10 1x8 0x30"},  # a watch that begins anew
        minute=21,
    ),
    "ReconcileErrors": Cases(
        fires={
            'controller_runtime_reconcile_errors_total{JOB,controller="health"}': "0+3x70",
            'controller_runtime_reconcile_total{JOB,controller="health",result="error"}': "0+3x70",
            'controller_runtime_reconcile_total{JOB,controller="health",result="success"}': "0+7x70",
        },
        labels=OF_CONTROLLER,
        quiet={
            'controller_runtime_reconcile_errors_total{JOB,controller="health"}': "0+1x70",
            'controller_runtime_reconcile_total{JOB,controller="health",result="error"}': "0+1x70",
            'controller_runtime_reconcile_total{JOB,controller="health",result="success"}': "0+9x70",
            'controller_runtime_reconcile_errors_total{JOB,controller="idle"}': "0x70",
            'controller_runtime_reconcile_total{JOB,controller="idle",result="success"}': "0x70",
        },
        minute=31,
    ),
    "ReconcilePanics": Cases(
        fires={'controller_runtime_reconcile_panics_total{JOB,controller="health"}': "0x10 1x30"}, labels=OF_CONTROLLER,
        quiet={'controller_runtime_reconcile_panics_total{JOB,controller="health"}': "1x40"},
        minute=11,
    ),
    "WorkQueueSlow": Cases(
        fires={
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="100"}': "0+9x50",
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="1000"}': "0+10x50",
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="+Inf"}': "0+10x50",
        },
        labels=OF_CONTROLLER,
        quiet={
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="100"}': "0+999x50",
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="1000"}': "0+1000x50",
            'workqueue_queue_duration_seconds_bucket{JOB,name="health",controller="health",le="+Inf"}': "0+1000x50",
        },
        minute=16,
    ),
    "WorkQueueStuck": Cases(
        fires={
            'workqueue_depth{JOB,name="health",controller="health",priority="high"}': "0x5 3x50",
            'workqueue_work_duration_seconds_count{JOB,name="health",controller="health"}': "0+1x5 5x50",
        },
        labels=OF_CONTROLLER,
        quiet={  # work ends; only keys without urgency wait; nothing waits
            'workqueue_depth{JOB,name="health",controller="health",priority="high"}': "3x55",
            'workqueue_work_duration_seconds_count{JOB,name="health",controller="health"}': "0+1x55",
            'workqueue_depth{JOB,name="later",controller="later",priority="low"}': "3x55",
            'workqueue_work_duration_seconds_count{JOB,name="later",controller="later"}': "5x55",
            'workqueue_depth{JOB,name="idle",controller="idle",priority="high"}': "0x55",
            'workqueue_work_duration_seconds_count{JOB,name="idle",controller="idle"}': "5x55",
        },
        minute=26,
    ),
    "WorkStuck": Cases(
        fires={'workqueue_longest_running_processor_seconds{JOB,name="health",controller="health"}': "0+60x50"}, labels=OF_CONTROLLER,
        quiet={'workqueue_longest_running_processor_seconds{JOB,name="health",controller="health"}': "0+60x14 0+60x14 0+60x14"},
        minute=21,
    ),
    "EventLoopStalls": Cases(
        fires={"OWN_arbiter_stalls_total{JOB}": "0x10 1x5 2x25"}, labels=IN_POD,
        quiet={"OWN_arbiter_stalls_total{JOB}": "0x10 1x30"},
        minute=17,
    ),
    "BundleNotApplied": Cases(
        fires={'OWN_managedresource_status{JOB,condition="ResourcesApplied",status="False",reason="ApplyFailed"}': "0x5 2x25"},
        labels={**HERE, "reason": "ApplyFailed"},
        quiet={
            'OWN_managedresource_status{JOB,condition="ResourcesApplied",status="True",reason="ApplySucceeded"}': "9x30",
            'OWN_managedresource_status{JOB,condition="ResourcesHealthy",status="False",reason="PodUnhealthy"}': "9x30",
            'OWN_managedresource_status{JOB,condition="ResourcesApplied",status="Progressing",reason="DeletionPending"}': "1x30",
            'OWN_managedresource_status{JOB,condition="ResourcesApplied",status="Progressing",reason="ApplyProgressing"}': "1x14 0 1x14 0x10",
        },
        minute=21,
    ),
    "BundleUnhealthy": Cases(
        fires={'OWN_managedresource_status{JOB,condition="ResourcesHealthy",status="False",reason="DeploymentUnhealthy"}': "1x30"},
        labels={**HERE, "reason": "DeploymentUnhealthy"},
        quiet={
            'OWN_managedresource_status{JOB,condition="ResourcesHealthy",status="False",reason="DeploymentUnhealthy"}': "1x14 0x16",
            'OWN_managedresource_status{JOB,condition="ResourcesHealthy",status="True",reason="ResourcesHealthy"}': "9x30",
            'OWN_managedresource_status{JOB,condition="ResourcesHealthy",status="False",reason="DeletionPending"}': "1x30",
            'OWN_managedresource_status{JOB,condition="ResourcesProgressing",status="False",reason="ResourcesRolledOut"}': "9x30",
        },
        minute=15,
    ),
    "TokensNotRenewed": Cases(
        fires={'OWN_tokens{JOB,state="fresh"}': "5x50", 'OWN_tokens{JOB,state="rejected"}': "1x50"}, labels={**HERE, "state": "rejected"},
        quiet={'OWN_tokens{JOB,state="fresh"}': "5x50", 'OWN_tokens{JOB,state="failing"}': "1x20 0x30"},
        minute=30,
    ),
    "TokenNearExpiry": Cases(
        fires={"OWN_token_nearest_expiry_seconds{JOB}": "4200-60x40"}, labels=HERE,
        quiet={"OWN_token_nearest_expiry_seconds{JOB}": "4200-60x14 34560-60x25"},
        minute=21,
    ),
    "WebhookErrors": Cases(
        fires={
            'controller_runtime_webhook_requests_total{JOB,webhook="/webhooks/x",code="200"}': "0+90x40",
            'controller_runtime_webhook_requests_total{JOB,webhook="/webhooks/x",code="429"}': "0+10x40",
        },
        labels=OF_WEBHOOK,
        quiet={
            'controller_runtime_webhook_requests_total{JOB,webhook="/webhooks/x",code="200"}': "0+99x40",
            'controller_runtime_webhook_requests_total{JOB,webhook="/webhooks/x",code="500"}': "0+1x40",
        },
        minute=11,
    ),
    "WebhookReviewsFail": Cases(
        fires={'OWN_webhook_failures_total{JOB,webhook="/webhooks/x",cause="namespace"}': "0+1x40"},
        labels={**OF_WEBHOOK, "cause": "namespace"},
        quiet={
            'OWN_webhook_failures_total{JOB,webhook="/webhooks/x",cause="denied"}': "0+1x40",
            'OWN_webhook_failures_total{JOB,webhook="/webhooks/x",cause="internal"}': "0x10 1x30",
        },
        minute=11,
    ),
    "AuthorizerErrors": Cases(
        fires={'OWN_authorizer_decisions_total{JOB,webhook="/webhooks/x",resource="pods",decision="error"}': "0+1x40"},
        labels=OF_WEBHOOK,
        quiet={
            'OWN_authorizer_decisions_total{JOB,webhook="/webhooks/x",resource="pods",decision="deny"}': "0+1x40",
            'OWN_authorizer_decisions_total{JOB,webhook="/webhooks/x",resource="pods",decision="error"}': "3x40",
        },
        minute=11,
    ),
    "WebhookSlow": Cases(
        fires={
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="1"}': "0+90x40",
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="10"}': "0+100x40",
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="+Inf"}': "0+100x40",
        },
        labels=OF_WEBHOOK,
        quiet={
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="1"}': "0+999x40",
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="10"}': "0+1000x40",
            'controller_runtime_webhook_latency_seconds_bucket{JOB,webhook="/webhooks/x",le="+Inf"}': "0+1000x40",
        },
        minute=11,
    ),
    "ServingCertificateNearExpiry": Cases(  # the time of a test begins at 0
        fires={"OWN_serving_certificate_expiration_timestamp_seconds{JOB}": "600000x40"}, labels=IN_POD,
        quiet={"OWN_serving_certificate_expiration_timestamp_seconds{JOB}": "2592000x40"},
        minute=15,
    ),
    "ServingCertificateUnreadable": Cases(
        fires={"certwatcher_read_certificate_errors_total{JOB}": "0+6x40"}, labels=IN_POD,
        quiet={"certwatcher_read_certificate_errors_total{JOB}": "0x10 3x30"},
        minute=16,
    ),
    "ControllerWaits": Cases(
        fires={'OWN_controller_ready{JOB,controller="health"}': "1x5 0x30", 'OWN_controller_ready{JOB_B,controller="health"}': "0x35"},
        labels=OF_CONTROLLER,
        quiet={'OWN_controller_ready{JOB,controller="health"}': "0x14 1x30", 'OWN_controller_ready{JOB_B,controller="idle"}': "1x45"},
        minute=21,
    ),
    "SeedGardenletSilent": Cases(
        fires={'OWN_gardenlets{JOB,kind="Seed",state="silent"}': "0x5 1x20", 'OWN_gardenlets{JOB,kind="Seed",state="alive"}': "9x25"},
        labels={**HERE, "state": "silent"},
        quiet={
            'OWN_gardenlets{JOB,kind="Seed",state="silent"}': "0x5 1x4 0x20",
            'OWN_gardenlets{JOB,kind="Seed",state="unreported"}': "1x30",
            'OWN_gardenlets{JOB,kind="Shoot",state="silent"}': "3x30",
        },
        minute=11,
    ),
    "SeedConditionBad": Cases(
        fires={'OWN_seed_conditions{JOB,condition="BackupBucketsReady",status="False"}': "0x5 1x30"},
        labels={**HERE, "condition": "BackupBucketsReady"},
        quiet={
            'OWN_seed_conditions{JOB,condition="BackupBucketsReady",status="False"}': "1x14 0x30",
            'OWN_seed_conditions{JOB,condition="ExtensionsReady",status="Progressing"}': "5x45",
            'OWN_seed_conditions{JOB,condition="ExtensionsReady",status="True"}': "9x45",
        },
        minute=21,
    ),
    "SeedSecretsNotCopied": Cases(
        fires={'OWN_seed_secrets{JOB,state="ending"}': "0x5 2x50"},
        labels={**HERE, "state": "ending"},
        quiet={'OWN_seed_secrets{JOB,state="failing"}': "2x29 0x30", 'OWN_seed_secrets{JOB,state="copied"}': "9x60"},
        minute=36,
    ),
    "CertificateRequestDenied": Cases(
        fires={'OWN_certificate_requests_total{JOB,decision="denied"}': "0x10 1x30"}, labels=HERE,
        quiet={
            'OWN_certificate_requests_total{JOB,decision="denied"}': "1x40",
            'OWN_certificate_requests_total{JOB,decision="ignored"}': "0+1x40",
            'OWN_certificate_requests_total{JOB,decision="approved"}': "0+1x40",
        },
        minute=11,
    ),
    "DeletionHeld": Cases(  # the time of a test begins at 0
        fires={
            'OWN_held_deletion_oldest_timestamp_seconds{JOB,controller="quota",kind="Quota"}': "-604500x40",
            'OWN_held_deletion_oldest_timestamp_seconds{JOB,controller="cloudprofile",kind="CloudProfile"}': "0x40",
        },
        labels={**HERE, "kind": "Quota"},
        quiet={
            'OWN_held_deletion_oldest_timestamp_seconds{JOB,controller="quota",kind="Quota"}': "-600000x40",
            'OWN_held_deletion_oldest_timestamp_seconds{JOB,controller="reference-protection",kind="Secret"}': "-9000000x40",
            'OWN_held_deletion_oldest_timestamp_seconds{JOB,controller="controllerdeployment-reference",kind="ControllerDeployment"}':
                "-9000000x40",
        },
        minute=21,
    ),
}


def fill_in(series, program):
    """Returns the name of a series as it is for a program."""
    scraped = f'job="{program.name}",namespace="garden"'
    return series.replace("JOB_B", f'{scraped},pod="b"').replace("JOB", f'{scraped},pod="a"').replace("OWN_", program.metrics)
