"""Objects as golden files: sorted, and without what differs in each run or stands in another file of the repository."""
from __future__ import annotations

import base64
import copy
import re

import yaml

GENERATED = "<made at each run>"


class Block(str):
    """A text that is written in lines."""


yaml.SafeDumper.add_representer(Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|"))


def text_of(objects: list[dict]) -> str:
    shown = [_shown(copy.deepcopy(o)) for o in objects]
    shown.sort(key=lambda o: (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]))
    return yaml.safe_dump_all(shown, default_flow_style=None, sort_keys=True, width=1000, allow_unicode=True)


def _shown(o: dict) -> dict:
    kind, name = o["kind"], o["metadata"]["name"]
    if kind == "Secret" and name.startswith("managedresource-"):
        o["data"] = {key: Block(yaml.safe_dump(_shown(yaml.safe_load(base64.b64decode(text))), width=1000)) for key, text in o["data"].items()}
    elif kind == "Secret" and o["type"] == "kubernetes.io/tls":
        o["data"] = dict.fromkeys(o["data"], GENERATED)
    elif kind == "ConfigMap" and name.endswith("-dashboards"):
        o["data"] = dict.fromkeys(o["data"], "<deploy/monitoring/>")
    elif kind == "ConfigMap":
        o["data"] = {key: Block(text) for key, text in o["data"].items()}
    elif kind == "PrometheusRule":
        for group in o["spec"]["groups"]:
            group["rules"] = [{"alert": rule["alert"], **rule["labels"]} for rule in group["rules"]]
    elif kind == "Deployment":
        annotations = o["spec"]["template"]["metadata"]["annotations"]
        for key in annotations:
            if re.match("checksum/", key):
                annotations[key] = "<checksum>"
    elif kind.endswith("WebhookConfiguration"):
        # A test compares them with what the command prints.
        o["webhooks"] = [webhook["name"] for webhook in o["webhooks"]]
    return o
