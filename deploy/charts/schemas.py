"""The values of the charts: their types, and what is allowed. `generate` makes JSON schemas of it, which helm checks before
it renders anything. Descriptions are in the `values.yaml` of each chart.

The component configuration is not here: its keys come from docs/reference/.
"""


def closed(**properties):
    """An object with these keys only, so that a misspelt one is found."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def one_of(*values):
    return {"type": "string", "enum": list(values)}


TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 0}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
OBJECT = {"type": "object"}  # of Kubernetes: the API server checks it
OBJECTS = {"type": "array", "items": OBJECT}
TEXTS = {"type": "array", "items": TEXT}
LABELS = {"type": "object", "additionalProperties": TEXT}
NUMBER_OR_PERCENTAGE = {"anyOf": [COUNT, {"type": "string", "pattern": "^[0-9]+%$"}]}
NAME = {"type": "string", "maxLength": 253, "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"}

IMAGE = closed(repository={"type": "string", "minLength": 1}, tag=TEXT, digest={"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
               pullPolicy=one_of("Always", "IfNotPresent", "Never"))
TOPOLOGY_SPREAD = closed(enabled=FLAG, zones=COUNT)
DISRUPTION_BUDGET = closed(enabled=FLAG, maxUnavailable=NUMBER_OR_PERCENTAGE)
VERTICAL_POD_AUTOSCALER = closed(enabled=FLAG, updateMode=one_of("InPlaceOrRecreate", "Recreate", "Initial", "Auto", "Off"),
                                 minAllowed=OBJECT, maxAllowed=OBJECT)
DEPLOY = closed(runtime=FLAG, application=FLAG)
MONITORING = closed(
    prometheus=TEXT,
    serviceMonitor=closed(enabled=FLAG, labels=LABELS, interval=TEXT, scrapeTimeout=TEXT, relabelings=OBJECTS, metricRelabelings=OBJECTS),
    prometheusRule=closed(enabled=FLAG, labels=LABELS, ruleLabels=LABELS, disabledAlerts=TEXTS, runbook=TEXT),
    dashboards=closed(enabled=FLAG, labels=LABELS))


def network_policy(**peers):
    return closed(enabled=FLAG, apiServerPorts={"type": "array", "items": PORT, "minItems": 1}, apiServers=OBJECTS, dns=FLAG, egress=OBJECTS, **peers)


PODS = dict(
    image=IMAGE, imagePullSecrets=OBJECTS, replicaCount=COUNT, resources=OBJECT, extraArgs=TEXTS, env=OBJECTS,
    podAnnotations=LABELS, podLabels=LABELS, podSecurityContext=OBJECT, securityContext=OBJECT, priorityClassName=TEXT,
    terminationGracePeriodSeconds=COUNT, nodeSelector=LABELS, affinity=OBJECT, tolerations=OBJECTS, topologySpread=TOPOLOGY_SPREAD,
    topologySpreadConstraints=OBJECTS, podDisruptionBudget=DISRUPTION_BUDGET, verticalPodAutoscaler=VERTICAL_POD_AUTOSCALER,
    monitoring=MONITORING)


def resource_manager(config):
    return {
        "place": one_of("cluster", "seed", "garden", "self-hosted-runtime", "self-hosted-shoot", "shoot", "workerless-shoot", "virtual-garden"),
        "namePrefix": {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9]*))?$", "maxLength": 30},
        "deploy": DEPLOY,
        **PODS,
        "extraVolumes": OBJECTS,
        "extraVolumeMounts": OBJECTS,
        "serviceAccount": closed(create=FLAG, name=NAME, annotations=LABELS),
        "strategy": OBJECT,
        "hostNetwork": FLAG,
        "nodeToleration": {"anyOf": [{"type": "null"}, closed(defaultNotReadyTolerationSeconds=COUNT, defaultUnreachableTolerationSeconds=COUNT)]},
        "livenessProbe": OBJECT,
        "readinessProbe": OBJECT,
        "sourceKubeconfig": closed(existingSecret=NAME, genericKubeconfigSecret=NAME, accessSecret=NAME),
        "targetKubeconfig": closed(existingSecret=NAME, genericKubeconfigSecret=NAME, accessSecret=NAME),
        "tls": closed(existingSecret=NAME, generatedDays={"type": "integer", "minimum": 1},
                      certManager=closed(enabled=FLAG, issuerRef=closed(group=TEXT, kind=TEXT, name=NAME), duration=TEXT, renewBefore=TEXT)),
        "webhookAddress": {"type": "string", "pattern": r"^(https://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9*.-]+)(:[0-9]+)?)?$"},
        "service": closed(annotations=LABELS, trafficDistribution=TEXT),
        "rbac": closed(create=FLAG, target=closed(rights=one_of("all", "parts"), rules=OBJECTS, serviceAccount=closed(name=NAME, namespace=NAME))),
        "networkPolicy": network_policy(webhooksFrom=OBJECTS, metricsFrom=OBJECTS, probesFrom=OBJECTS),
        "config": config,
    }


def controller_manager(config):
    token = closed(enabled=FLAG, expirationSeconds={"type": "integer", "minimum": 600}, audience=TEXT)
    return {
        "deploy": DEPLOY,
        "deployment": {"type": "object", "properties": {
            "virtualGarden": {"type": "object", "properties": {"enabled": FLAG, "controller": closed(user=closed(name=TEXT))}}}},
        "controller": closed(
            enabled=FLAG, **PODS, additionalVolumes=OBJECTS, additionalVolumeMounts=OBJECTS, serviceAccountName=NAME,
            serviceAccount=closed(create=FLAG, annotations=LABELS), dnsConfig=OBJECT, kubeconfig={"type": ["string", "null"]},
            kubeconfigSecret=closed(existingSecret=NAME, genericKubeconfigSecret=NAME, accessSecret=NAME),
            serviceAccountTokenVolumeProjection=token, rbac=closed(create=FLAG, rights=one_of("parts", "all")), vpa=FLAG,
            service=closed(annotations=LABELS), networkPolicy=network_policy(metricsFrom=OBJECTS, probesFrom=OBJECTS), config=config),
    }


# Keys of the configuration that only the chart has, and those of earlier releases that it takes (spec 71 §12, spec 80 §6 and §19.2).
OLD_BLOCK = {"type": ["object", "null"]}
RESOURCE_MANAGER_ONLY_CHART = {
    "server.webhooks.ca": TEXT, "server.webhooks.certificate": TEXT, "server.webhooks.privateKey": TEXT,
    "sourceClientConnection.namespace": TEXT, "targetClientConnection.namespace": TEXT,
    **{f"controllers.{old}": OLD_BLOCK for old in ("managedResources", "node", "kubeletCSRApprover", "tokenValidator", "secret", "rootCAPublisher")},
    "webhooks.tokenValidator": OLD_BLOCK, "webhooks.podZoneAffinity": OLD_BLOCK,
}
CONTROLLER_MANAGER_ONLY_CHART = {
    "server.http": OLD_BLOCK, "server.https": OLD_BLOCK, "server.healthProbes.enable": FLAG, "kubernetesLogLevel": {},
    "leaderElection.lockObjectName": TEXT, "leaderElection.lockObjectNamespace": TEXT, "controllers.plant": OLD_BLOCK,
    "controllers.secretBindingProvider": OLD_BLOCK, "controllers.shootRetry.retryDuration": TEXT,
}
# Objects of Kubernetes within the configuration: all of their fields are allowed.
WHOLE_OBJECTS = ("controllers.project.quotas[].config",)
# What the chart itself decides.
SET_BY_THE_CHART = ("server.webhooks.tls.serverCertDir",)
