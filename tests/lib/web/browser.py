# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium as people use it: at a width, light or dark, by keyboard. It is told what to do by a pipe (--remote-debugging-pipe)."""
import base64
import json
import os
import select
import subprocess
import time

ANSWER_S = 60


class Browser:
    """One tab; popen(command, **options) starts a program where the page can be reached; `events`: what it has told unasked."""

    def __init__(self, popen, profile, *more):
        self.number, self.waiting, self.events = 0, b"", []
        ours, theirs = os.pipe(), os.pipe()  # what it reads, and what it writes
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                   "--hide-scrollbars", f"--user-data-dir={profile}", "--remote-debugging-pipe", *more, "about:blank"]
        start = f'exec 3<&{ours[0]} 4>&{theirs[1]}; exec chromium "$@"'
        self.process = popen(["bash", "-c", start, "chromium", *options], pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        self.to, self.back = ours[1], theirs[0]
        os.close(ours[0])
        os.close(theirs[1])
        self.session = None
        page = next(target for target in self.tell("Target.getTargets")["targetInfos"] if target["type"] == "page")
        self.session = self.tell("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.tell("Page.enable")

    def tell(self, method, **params):
        """What the browser answers to a command of its DevTools protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + ANSWER_S
        while True:
            while b"\0" not in self.waiting:
                assert select.select([self.back], [], [], max(0, end - time.monotonic()))[0], f"no answer to {method}"
                more = os.read(self.back, 1 << 20)
                assert more, f"the browser ended at {method}"
                self.waiting += more
            text, _, self.waiting = self.waiting.partition(b"\0")
            answer = json.loads(text)
            if "id" not in answer:
                self.events.append(answer)
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def evaluate(self, expression):
        """The value of a JavaScript expression in the page, a promise's result included."""
        done = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def show(self, width, height=900, scheme="light"):
        """As wide as that, for eyes that like it light or dark."""
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def go(self, url):
        self.tell("Page.navigate", url=url)
        end = time.monotonic() + ANSWER_S
        while self.evaluate("document.readyState + location.href") != "complete" + url:
            assert time.monotonic() < end, f"{url} does not load"
            time.sleep(0.05)

    def press(self, key, code):
        for kind in ("keyDown", "keyUp"):
            self.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text="\r" if key == "Enter" else "")

    def picture(self, path):
        """All of the page, as PNG."""
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.tell("Browser.close")  # its other processes, too
            self.process.wait(ANSWER_S)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self.to)
            os.close(self.back)
