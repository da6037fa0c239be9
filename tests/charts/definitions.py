"""Definitions of the kinds of others that the charts use, out of the modules of crds/go.mod."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path

import yaml

from chart import HERE

FILES = {
    "github.com/cert-manager/cert-manager": ["deploy/crds/cert-manager.io_certificates.yaml"],
    "github.com/prometheus-operator/prometheus-operator": [
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"],
    "k8s.io/autoscaler/vertical-pod-autoscaler": ["deploy/vpa-v1-crd-gen.yaml"],
}
RESOURCES = {
    "Certificate": ("cert-manager.io/v1", "certificates", True),
    "PrometheusRule": ("monitoring.coreos.com/v1", "prometheusrules", True),
    "ServiceMonitor": ("monitoring.coreos.com/v1", "servicemonitors", True),
    "VerticalPodAutoscaler": ("autoscaling.k8s.io/v1", "verticalpodautoscalers", True),
}


def definitions() -> list[dict]:
    done = subprocess.run(["go", "mod", "download", "-json", *FILES], cwd=HERE / "crds", env=None, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    folders, decoder, text = {}, json.JSONDecoder(), done.stdout.lstrip()
    while text:
        module, end = decoder.raw_decode(text)
        folders[module["Path"]] = Path(module["Dir"])
        text = text[end:].lstrip()
    documents = [document for module, files in FILES.items() for file in files for document in yaml.safe_load_all((folders[module] / file).read_text())]
    return [document for document in documents if document and document["spec"]["names"]["kind"] in RESOURCES]
