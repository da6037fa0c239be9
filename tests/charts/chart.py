"""The charts of deploy/charts, rendered by the real helm, and the cases of this folder."""
from __future__ import annotations

import base64
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHARTS = ROOT / "deploy" / "charts"
sys.path.insert(0, str(HERE.parent / "conformance"))  # the harness: control plane, certificates, programs

from harness.certs import Authority  # noqa: E402

GRM, GCM = "gardener-resource-manager", "gardener-controller-manager"
RELEASE = "release"


class HelmError(Exception):
    pass


class Case:
    """Values of a chart. The first lines of the file say in which namespace and with which certificates it is rendered."""

    def __init__(self, path: Path):
        self.path, self.chart, self.name = path, path.parent.name, path.stem
        head = dict(re.findall(r"^# (namespace|with): (.+)$", path.read_text(), re.MULTILINE))
        self.namespace, self.certificates = head["namespace"], head.get("with", "")

    def __str__(self) -> str:
        return f"{self.chart}/{self.name}"

    @property
    def files(self) -> list[Path]:
        extra = {"": [], "ca": [HERE / "cases" / "ca.yaml"], "certificate": [certificate_file()]}[self.certificates]
        return [*extra, self.path]

    @property
    def values(self) -> dict:
        return yaml.safe_load(self.path.read_text()) or {}

    @property
    def place(self) -> str:
        return self.values.get("global", {}).get("place", "cluster")

    def objects(self, *arguments: str) -> list[dict]:
        return render(self.chart, self.namespace, *(f"--values={file}" for file in self.files), *arguments)


def cases(chart: str | None = None) -> list[Case]:
    return [case for case in map(Case, sorted((HERE / "cases").glob("*/*.yaml"))) if chart in (None, case.chart)]


def case(chart: str, name: str) -> Case:
    return Case(HERE / "cases" / chart / f"{name}.yaml")


@functools.cache
def certificate_file() -> Path:
    """Values with a CA, a certificate and its key as texts, made for this run."""
    authority = Authority("cases")
    certificate, key = authority.issue(GRM, dns=[GRM])
    webhooks = {"ca": authority.cert_pem.decode(), "certificate": certificate.decode(), "privateKey": key.decode()}
    file = Path(tempfile.mkdtemp(prefix="charts-")) / "certificate.yaml"
    file.write_text(yaml.safe_dump({"global": {"config": {"server": {"webhooks": webhooks}}}}))
    return file


def helm(*arguments: str, kubeconfig: Path | None = None, fails: bool = False, timeout: float = 120) -> str:
    """Runs helm and returns its output; with `fails` the text of the error that it must end with."""
    home = Path(tempfile.gettempdir()) / "charts-helm"
    env = {**os.environ, "HELM_CACHE_HOME": str(home), "HELM_CONFIG_HOME": str(home), "HELM_DATA_HOME": str(home)}
    env["KUBECONFIG"] = str(kubeconfig or "/dev/null")
    done = subprocess.run([os.environ["HELM"], *arguments], capture_output=True, text=True, env=env, timeout=timeout)
    if (done.returncode != 0) != fails:
        raise HelmError(f"helm {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stderr if fails else done.stdout


def render(chart: str | Path, namespace: str, *arguments: str) -> list[dict]:
    """The objects of a chart, those of its tests included, without the definitions in `crds/`."""
    return [document for document in yaml.load_all(_rendered(chart, namespace, *arguments), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if document]


@functools.cache
def _rendered(chart: str | Path, namespace: str, *arguments: str) -> str:
    return helm("template", RELEASE, str(CHARTS / chart), f"--namespace={namespace}", *arguments)


def refused(chart: str, *arguments: str) -> str:
    """The error with which helm refuses values."""
    return helm("template", RELEASE, str(CHARTS / chart), *arguments, fails=True)


def of_kind(objects: list[dict], kind: str) -> list[dict]:
    return [o for o in objects if o["kind"] == kind]


def only(objects: list[dict], kind: str, name: str | None = None) -> dict:
    found = [o for o in of_kind(objects, kind) if name in (None, o["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}: {[o['metadata']['name'] for o in found]}"
    return found[0]


def configuration(objects: list[dict]) -> dict:
    """The component configuration in the ConfigMap."""
    maps = [o for o in of_kind(objects, "ConfigMap") if "config.yaml" in o["data"]]
    assert len(maps) == 1
    return yaml.safe_load(maps[0]["data"]["config.yaml"])


def delivered(objects: list[dict]) -> list[dict]:
    """The objects for the target: those of the release, or of the bundle in its ManagedResource."""
    secrets = [o for o in of_kind(objects, "Secret") if o["metadata"]["name"].startswith("managedresource-")]
    if not secrets:
        return objects
    return [yaml.safe_load(base64.b64decode(text)) for text in secrets[0]["data"].values()]


def registrations(objects: list[dict]) -> list[dict]:
    return [o for o in delivered(objects) if o["kind"].endswith("WebhookConfiguration")]
