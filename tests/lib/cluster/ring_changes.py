# SPDX-License-Identifier: GPL-2.0-or-later
"""When the ring of a lab changed: asked of all nodes some times a second.

    with RingChanges(lab) as changes:
        ...
    changes.between(began, ended)
"""
import threading
import time

from earshotlab import LabError, daemon

PAUSE_S = 0.1


class RingChanges:
    def __init__(self, lab):
        self.spans = []  # (a moment before the change, one after it), by time.monotonic()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._watch, args=(node.namespace,), daemon=True) for node in lab.nodes]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def _watch(self, namespace):
        known, since = None, time.monotonic()
        while not self.stopping.wait(PAUSE_S):
            asked = time.monotonic()
            try:
                reply = daemon.ask(namespace, {"command": "ring"}, timeout=1)
            except (OSError, LabError, ValueError):
                continue  # dead or frozen: the change is somewhere between the answers before and after
            ring = reply["epoch"], [(member["name"], member["virtual_nodes"]) for member in reply["members"]]
            if known is not None and ring != known:
                self.spans.append((since, time.monotonic()))
            known, since = ring, asked

    def between(self, began, ended):
        """Whether a node had another ring than before at some time then, as far as can be seen."""
        return any(began <= after and before <= ended for before, after in self.spans)
