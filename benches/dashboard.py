#!/usr/bin/env python3
"""Measures what the dashboard of a gardener-resource-manager binary costs, over the demonstration with many bundles.

    GRM_BIN=… python3 benches/dashboard.py            or: bench.py dashboard

Needs no control plane and no package. BUNDLES=10000, SECONDS=60 (of each look at the CPU) and QUICK=1 (15 s) change the sizes.

The in-memory cluster of the demonstration is a part of the measured process. So what viewers cost is a difference: the same process,
as long, with and without them. Each bundle has a health check a minute, so other values of SECONDS than multiples of 60 make this difference inexact. CPU is that of all threads, in nanoseconds of the scheduler's clock, as a part of one core.
"""
from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

BUNDLES = int(os.environ.get("BUNDLES", 10_000))
SECONDS = int(os.environ.get("SECONDS", 15 if os.environ.get("QUICK") else 60))
VIEWERS, UNREAD = 3, 16
FILLING = 1800  # longest time until the cluster is filled: a debug build needs 100 ms for a bundle
QUIET = 20  # after the cluster is filled: the last reconciles and timers
SLOW = 64 << 10  # bytes per second of a reader that is slow


class Demo:
    """The demonstration with a filled cluster."""

    def __init__(self, bundles: int, changes: int):
        self.folder = tempfile.TemporaryDirectory(prefix="bench-dashboard-")
        printed = Path(self.folder.name) / "printed"
        begin = time.monotonic()
        with printed.open("w") as out:
            self.process = subprocess.Popen(
                [os.environ["GRM_BIN"], "demo", "--keep", "--bundles", str(bundles), "--changes-per-second", str(changes)],
                stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": self.folder.name})
        self.pid = self.process.pid
        while "What the conditions say:" not in (text := printed.read_text()):
            if self.process.poll() is not None or time.monotonic() - begin > FILLING:
                self.stop()
                raise AssertionError(f"the demonstration is not filled: {text[-2000:]}")
            time.sleep(0.5)
        self.filled = time.monotonic() - begin
        self.port = int(re.search(r"dashboard: http://127\.0\.0\.1:(\d+)/", text).group(1))
        time.sleep(QUIET)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()

    def cpu(self) -> float:
        """Seconds of CPU, of ended threads too: the process's CPU clock, clock_getcpuclockid(3)."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def cpu_of_controllers(self) -> float:
        """Seconds of CPU of the thread that runs the controllers, and here the in-memory cluster."""
        main = next(task for task in Path(f"/proc/{self.pid}/task").iterdir() if (task / "comm").read_text() == "main\n")
        return int((main / "schedstat").read_text().split()[0]) / 1e9

    def rss(self) -> int:
        return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text()).group(1)) * 1024

    def load(self, seconds: float) -> float:
        """CPU of the next seconds as a part of one core."""
        cpu, begin = self.cpu(), time.monotonic()
        time.sleep(seconds)
        return (self.cpu() - cpu) / (time.monotonic() - begin)

    def get(self, path: str, port: int | None = None) -> tuple[int, bytes, float]:
        """Status, body, seconds."""
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read(), time.monotonic() - begin
        finally:
            connection.close()

    def probes(self) -> int:
        """The port of /healthz, which the demonstration does not tell."""
        inodes = set()
        for fd in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                inodes.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink(fd)))
            except OSError:
                pass  # closed meanwhile
        rows = [line.split() for line in Path(f"/proc/{self.pid}/net/tcp").read_text().splitlines()[1:]]
        for port in {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes}:
            try:
                if self.get("/healthz", port)[:2] == (200, b"ok"):
                    return port
            except (OSError, http.client.HTTPException):
                pass  # this one speaks TLS
        raise AssertionError("no port answers /healthz")


def headline(row: dict):
    """What is on the page at once. The rest follows once a second."""
    return row.get("object"), row.get("problem")


class Viewer(threading.Thread):
    """Reads the stream of events, as a page does. With `is_curious` it decodes them, and measures how late headlines are."""

    def __init__(self, demo: Demo, is_curious=False):
        super().__init__(daemon=True)
        self.is_curious, self.begin = is_curious, time.monotonic()
        self.status, self.snapshot, self.bytes, self.events, self.delays = None, None, 0, Counter(), []
        self.snapshot_bytes, self.is_ended, self.complete, self.shown = 0, False, threading.Event(), {}
        self.connection = http.client.HTTPConnection("127.0.0.1", demo.port, timeout=60)
        self.start()

    def run(self):
        try:
            self.connection.request("GET", "/dashboard/events", headers={"accept": "text/event-stream"})
            answer = self.connection.getresponse()
            self.status = answer.status
            rest = b""
            while answer.status == 200 and (piece := answer.read1(1 << 20)):
                self.bytes += len(piece)
                if b"\n\n" not in rest[-1:] + piece:
                    rest += piece
                    continue
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    self.take(event, time.time())
        except (OSError, http.client.HTTPException, AttributeError, ValueError):
            pass  # closed by one of both sides
        self.is_ended = True
        self.complete.set()

    def take(self, event: bytes, now: float):
        name, _, data = event.partition(b"\ndata: ")
        name = name.removeprefix(b"event: ").decode()
        if not data:
            return
        self.events[name] += 1
        if name == "snapshot" and self.snapshot is None:
            self.snapshot, self.snapshot_bytes = time.monotonic() - self.begin, len(data)
            if self.is_curious:
                self.shown = {row["path"]: headline(row) for row in json.loads(data)["actors"]}
            self.complete.set()
        elif name == "changes" and self.is_curious and self.snapshot is not None:
            for row in json.loads(data)["actors"]:
                is_news, self.shown[row["path"]] = self.shown.get(row["path"]) != headline(row), headline(row)
                if is_news and "changed" in row:
                    self.delays.append(now - datetime.fromisoformat(row["changed"][:26].rstrip("Z") + "+00:00").timestamp())

    def close(self):
        try:
            self.connection.sock.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.connection.close()
        self.join(10)


def raw(demo: Demo, path: str, buffer: int | None = None) -> socket.socket:
    """A connection with a request, whose answer nobody reads yet."""
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", demo.port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return connection


def spread(values: list[float]) -> dict:
    values = sorted(values)
    if not values:
        return {"samples": 0}
    return {"samples": len(values), "p50": statistics.median(values), "p99": values[max(0, -(-len(values) * 99 // 100) - 1)], "max": values[-1]}


def load(demo: Demo) -> dict:
    """CPU without and with viewers, in turn, twice: what else the process does may change with time."""
    alone, watched, seen = [], [], Counter()
    for _ in range(2):
        alone.append(demo.load(SECONDS))
        viewers = [Viewer(demo) for _ in range(VIEWERS)]
        for viewer in viewers:
            assert viewer.complete.wait(60) and viewer.snapshot, f"a viewer got {viewer.status}"
        time.sleep(2)
        watched.append(demo.load(SECONDS))
        for viewer in viewers:
            assert not viewer.is_ended, "a viewer's stream ended"
            seen += viewer.events
            viewer.close()
        time.sleep(2)
    return {"alone": alone, "three_viewers": watched, "viewers_cost": statistics.mean(watched) - statistics.mean(alone), "events_per_viewer": {name: count // (2 * VIEWERS) for name, count in seen.items()}}


def first_picture(demo: Demo) -> dict:
    times, size = [], 0
    for _ in range(10):
        viewer = Viewer(demo)
        assert viewer.complete.wait(60) and viewer.snapshot, f"a viewer got {viewer.status}"
        times.append(viewer.snapshot)
        size = viewer.snapshot_bytes
        viewer.close()
        time.sleep(0.2)
    return {"bytes": size, **spread(times)}


def latency(demo: Demo) -> dict:
    """From the time that an actor notes with a change of its headline until a viewer has the event."""
    viewer = Viewer(demo, is_curious=True)
    assert viewer.complete.wait(60) and viewer.snapshot
    time.sleep(2)  # this program reads the large snapshot, and is late itself
    viewer.delays.clear()
    time.sleep(SECONDS)
    viewer.close()
    return spread(viewer.delays)


def unread(demo: Demo) -> dict:
    """Sixteen clients that read nothing take all places. Then somebody else reads."""
    probes, before = demo.probes(), demo.rss()
    silent = [raw(demo, "/dashboard/events") for _ in range(UNREAD)]
    time.sleep(1)
    with_silent, refusals, begin = demo.rss(), 0, time.monotonic()
    while True:
        viewer = Viewer(demo)
        assert viewer.complete.wait(60)
        if viewer.snapshot:
            break
        assert viewer.status == 503 and time.monotonic() - begin < 30, f"a viewer got {viewer.status}"
        refusals += 1
        time.sleep(0.1)
    took = time.monotonic() - begin
    answers = {path: [] for path in ("/healthz", "/metrics", "/dashboard")}
    for _ in range(20):
        for path, times in answers.items():
            status, _, seconds = demo.get(path, probes if path == "/healthz" else None)
            assert status == 200, f"{path}: {status}"
            times.append(seconds)
    cpu = demo.load(10)
    viewer.close()
    for connection in silent:
        connection.close()
    time.sleep(2)
    return {"clients": UNREAD, "memory": with_silent - before, "memory_after": demo.rss() - before, "snapshot_of_another": took, "refusals_before": refusals,
            "answers": {path: max(times) for path, times in answers.items()}, "cpu": cpu}


def slow(demo: Demo) -> dict:
    """A client that reads slowly gets all of its snapshot, and all of `dashboard/actors`."""
    out = {}
    for path, end in (("/dashboard/events", b"]}\n\n"), ("/dashboard/actors", b"\r\n0\r\n\r\n")):
        connection, tail, size, begin = raw(demo, path, SLOW), b"", 0, time.monotonic()
        try:
            while end not in tail:
                piece = connection.recv(SLOW // 10)
                assert piece, f"{path} ended after {size} bytes and {time.monotonic() - begin:.0f} s"
                size, tail = size + len(piece), tail[-len(end):] + piece
                time.sleep(0.1)
        finally:
            connection.close()
        out[path] = {"bytes": size, "seconds": time.monotonic() - begin}
    return out


def flood(demo: Demo) -> dict:
    """One client asks for details as fast as it can, of one actor after the other."""
    paths = [row["path"] for row in json.loads(demo.get("/dashboard/actors")[1])["actors"] if row["role"] == "object"][:200]
    connection = http.client.HTTPConnection("127.0.0.1", demo.port, timeout=60)
    statuses, cpu, controllers, begin = Counter(), demo.cpu(), demo.cpu_of_controllers(), time.monotonic()
    while (seconds := time.monotonic() - begin) < 10:
        connection.request("GET", f"/dashboard/details?path={paths[sum(statuses.values()) % len(paths)]}")
        answer = connection.getresponse()
        answer.read()
        statuses[answer.status] += 1
    load, of_controllers = (demo.cpu() - cpu) / seconds, (demo.cpu_of_controllers() - controllers) / seconds
    connection.close()
    return {"answers_per_second": {status: count / seconds for status, count in statuses.items()}, "cpu": load, "cpu_of_controllers": of_controllers}


def dashboard_scenario(bundles: int = BUNDLES) -> dict:
    with Demo(1, 0) as demo:
        empty, actors = demo.rss(), len(json.loads(demo.get("/dashboard/actors")[1])["actors"])
    with Demo(bundles, 0) as demo:
        all_actors = demo.get("/dashboard/actors")[1]
        more = len(json.loads(all_actors)["actors"]) - actors
        out = {"bundles": bundles, "actors": more + actors, "filled": demo.filled, "rss_of_1_bundle": empty, "rss": demo.rss(),
               "rss_per_actor_with_cluster": (demo.rss() - empty) / more, "json_per_actor": len(all_actors) / (more + actors),
               "rest": load(demo), "first_picture": first_picture(demo), "unread": unread(demo), "slow": slow(demo), "flood": flood(demo), "rss_at_the_end": demo.rss()}
    with Demo(bundles, 10) as demo:
        out |= {"ten_changes": load(demo), "latency": latency(demo), "first_picture_with_changes": first_picture(demo)}
    return out


if __name__ == "__main__":
    print(json.dumps({"scenario": "dashboard", **dashboard_scenario()}), flush=True)
