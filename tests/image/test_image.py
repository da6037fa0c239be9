"""The images that deploy/image/layout writes: what is in them, and whether their content runs as it does in a container: as user
65532, on a read-only root. Needs root, because only root may change the root folder and the user of a process."""
from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "conformance"))

from harness.certs import Authority  # noqa: E402
from harness.client import eventually  # noqa: E402
from harness.controlplane import free_port  # noqa: E402
from harness.gcm import Garden  # noqa: E402
from harness.program import Program  # noqa: E402

GRM, GCM = "gardener-resource-manager", "gardener-controller-manager"
BOTH = pytest.mark.parametrize("program", [GRM, GCM])


class Image:
    """A layout on disk, and its files unpacked."""

    def __init__(self, program: str, folder: Path):
        self.program, self.folder = program, folder / "layout"
        binary = folder / program
        # The debugger's data of a test build would only cost time.
        subprocess.run(["strip", "-o", binary, os.environ[{GRM: "GRM_BIN", GCM: "GCM_BIN"}[program]]], check=True)
        sbom = folder / "sbom.json"
        sbom.write_text(self.tool("sbom", f"--binary={binary}", f"--program={program}"))
        self.arguments = [f"--binary={binary}", f"--program={program}", "--revision=0123456789abcdef", f"--sbom={sbom}"]
        self.said = self.tool("layout", *self.arguments, f"--output={self.folder}")
        self.index = json.loads((self.folder / "index.json").read_text())
        self.manifest = self.json(self.index["manifests"][0])
        self.config = self.json(self.manifest["config"])
        self.root = folder / "root"
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(self.blob(self.manifest["layers"][0])))) as layer:
            self.entries = layer.getmembers()
            layer.extractall(self.root, filter="tar")

    @staticmethod
    def tool(name: str, *arguments: str) -> str:
        return subprocess.run([str(ROOT / "deploy" / "image" / name), *arguments], capture_output=True, text=True, check=True).stdout

    def blob(self, descriptor: dict) -> bytes:
        content = (self.folder / "blobs" / descriptor["digest"].replace(":", "/")).read_bytes()
        assert (descriptor["size"], descriptor["digest"]) == (len(content), f"sha256:{hashlib.sha256(content).hexdigest()}")
        return content

    def json(self, descriptor: dict) -> dict:
        return json.loads(self.blob(descriptor))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    made = {}

    def of(program: str) -> Image:
        if program not in made:
            folder = tmp_path_factory.mktemp("image")
            for parent in (folder, *folder.parents):  # user 65532 has to come through
                if parent.stat().st_uid == os.getuid() and parent != Path("/"):
                    parent.chmod(parent.stat().st_mode | 0o055)
            made[program] = Image(program, folder)
        return made[program]
    return of


@BOTH
def image_is_a_layout_with_labels_user_and_entry_point(program, images):
    image = images(program)
    assert json.loads((image.folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    assert (image.config["os"], image.config["architecture"]) == ("linux", image.index["manifests"][0]["platform"]["architecture"])
    config = image.config["config"]
    assert (config["User"], config["Entrypoint"], config["WorkingDir"]) == ("65532:65532", [f"/{program}"], "/")
    assert config["Labels"].items() >= {"org.opencontainers.image.title": program, "org.opencontainers.image.licenses": "Apache-2.0",
                                        "org.opencontainers.image.revision": "0123456789abcdef"}.items()
    layer, = image.manifest["layers"]
    assert image.config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(gzip.decompress(image.blob(layer))).hexdigest()}"]
    assert image.index["manifests"][0]["digest"] in image.said


@BOTH
def image_holds_the_program_and_its_libraries_only(program, images):
    files = {entry.name for entry in images(program).entries if not entry.isdir()}
    libraries = {Path(name).name for name in files if name.startswith("lib")}
    assert files == {program, "etc/passwd", "etc/group", "etc/nsswitch.conf"} | {name for name in files if name.startswith("lib")}
    assert libraries <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert all(entry.uid == entry.gid == 0 and not entry.mode & 0o6022 for entry in images(program).entries), "nothing that the user may change"


@BOTH
def image_has_a_bill_of_materials_that_refers_to_it(program, images):
    image = images(program)
    artifact = image.json(image.index["manifests"][1])
    bom = image.json(artifact["layers"][0])
    assert artifact["subject"]["digest"] == image.index["manifests"][0]["digest"]
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", program)
    names = {component["name"] for component in bom["components"]}
    assert {"actix", "kube-client", "rustls"} <= names
    assert not names & {"proptest", "sim"}, "what only tests use is not in the image"


def image_is_the_same_for_the_same_input(images, tmp_path):
    image = images(GCM)
    assert Image.tool("layout", *image.arguments, f"--output={tmp_path / 'again'}") == image.said


def image_larger_than_the_limit_is_refused(images, tmp_path):
    command = [str(ROOT / "deploy/image/layout"), *images(GCM).arguments, f"--output={tmp_path / 'a'}", "--limit=1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "more than 1 MB" in done.stderr
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


class Contained(Program):
    """The content of an image as a process: its root is the image, read-only, its user is that of the image."""

    def __init__(self, image: Image, folder: Path, config: dict):
        self.name, self.dir = image.program, folder
        self.health_port, self.metrics_port = free_port(), free_port()
        config["server"] = config.get("server", {}) | {
            "healthProbes": {"bindAddress": "127.0.0.1", "port": self.health_port}, "metrics": {"bindAddress": "127.0.0.1", "port": self.metrics_port}}
        (folder / "config" / "config.yaml").write_text(yaml.safe_dump(config))
        for name in ("config", "proc", "dev"):  # a container engine makes these
            (image.root / name).mkdir(exist_ok=True)
        self.log_file = folder / "log"
        script = """
            set -e
            mount --bind "$1" "$1"
            mount --bind "$2" "$1/config" && mount -o remount,bind,ro "$1/config"
            mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev"
            mount -o remount,bind,ro "$1"
            exec chroot --userspec=65532:65532 --groups=65532 "$1" "/$3" --config=/config/config.yaml
        """
        import time
        self.started = time.monotonic()
        with open(self.log_file, "wb") as log:
            self.proc = subprocess.Popen(["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", image.root, folder / "config", image.program],
                                         stdout=log, stderr=log, start_new_session=True, env={})


@pytest.fixture(scope="module")
def cluster():
    garden = Garden(name="image")
    garden.k.create(yaml.safe_load((ROOT / "deploy/crd-managedresources.yaml").read_text()))
    yield garden
    garden.stop()


@BOTH
def image_runs_as_user_65532_on_a_read_only_root_and_writes_nothing(program, images, cluster, tmp_path_factory):
    """spec 71 scenario 27, §13; spec 80 §19.1."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    image, folder = images(program), tmp_path_factory.mktemp("run")
    for parent in (folder, folder.parent, folder.parent.parent):
        parent.chmod(0o755)
    (folder / "config").mkdir(mode=0o755)
    # By name, so that the resolver of the image has to find it.
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"] = {"server": f"https://localhost:{cluster.port}", "certificate-authority-data": _base64(cluster.ca.cert_pem)}
    (image.root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")  # as a kubelet does
    (folder / "config" / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    election = {"leaderElect": True, "resourceNamespace": "garden"}
    if program == GRM:
        certificate, key = Authority("image").issue(GRM, dns=["localhost"])
        (folder / "config" / "tls.crt").write_bytes(certificate)
        (folder / "config" / "tls.key").write_bytes(key)
        connection = {"kubeconfig": "/config/kubeconfig"}
        config = {"sourceClientConnection": connection, "targetClientConnection": connection, "leaderElection": election,
                  "server": {"webhooks": {"bindAddress": "127.0.0.1", "port": free_port(), "tls": {"serverCertDir": "/config"}}},
                  "webhooks": {"seccompProfile": {"enabled": True}}}
        config = {"apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1", "kind": "ResourceManagerConfiguration"} | config
    else:
        config = {"apiVersion": "controllermanager.config.gardener.cloud/v1alpha1", "kind": "ControllerManagerConfiguration",
                  "gardenClientConnection": {"kubeconfig": "/config/kubeconfig"}, "leaderElection": election}
    before = _files(image.root)

    contained = Contained(image, folder, config)
    try:
        contained.wait_ready(120)
        eventually(lambda: contained.metric("leader_election_master_status") == 1, "it leads", timeout=60)
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{contained.proc.pid}/status").read_text().splitlines() if ":\t" in line)
        root = os.readlink(f"/proc/{contained.proc.pid}/root")
        written = [target for target in map(os.readlink, Path(f"/proc/{contained.proc.pid}/fd").iterdir()) if target.startswith(str(image.root))]
    finally:
        code = contained.stop()

    assert code == 0
    assert status["Uid"].split() == status["Gid"].split() == ["65532"] * 4
    assert (root, written) == (str(image.root), []), "it has no file of the image open"
    assert _files(image.root) == before


def _base64(content: bytes) -> str:
    import base64
    return base64.b64encode(content).decode()


def _files(folder: Path) -> dict:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*") if path.parts[-1] not in ("config", "proc", "dev")}
