# SPDX-License-Identifier: GPL-2.0-or-later
"""Executes in the machine what a test on the host asks for, one request after the other (remote.py is the other end).

A line of JSON each way, over the virtio port PORT:

    {"argv", "input", "env", "timeout"}    runs it; {"status", "stdout", "stderr"}; status None: not done in time
    {"argv", "env", "log"}                 starts it, output to the file; {"pid"}
    {"end": true}                          {}, and the machine ends
"""
import glob
import json
import os
import subprocess
import sys
import time

PORT = "earshot.agent"


def port():
    for name in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(name, encoding="ascii") as handle:
            if handle.read().strip() == PORT:
                return os.open(f"/dev/{name.split('/')[-2]}", os.O_RDWR)
    sys.exit(f"earshot-vm: no port {PORT}")


def execute(request):
    environment = {**os.environ, **request.get("env", {})}
    if "log" in request:
        with open(request["log"], "ab") as log:
            child = subprocess.Popen(request["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=environment, start_new_session=True)
        return {"pid": child.pid}
    try:
        done = subprocess.run(request["argv"], input=request.get("input", "").encode(), capture_output=True,
                              check=False, timeout=request.get("timeout"), env=environment)
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, out, err = None, late.stdout or b"", late.stderr or b""
    return {"status": status, "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace")}


def main():
    fd = port()
    buffered = b""
    while True:
        part = os.read(fd, 65536)
        if not part:  # the host has not connected yet; who never does cuts the power
            time.sleep(0.05)
        buffered += part
        while b"\n" in buffered:
            line, buffered = buffered.split(b"\n", 1)
            request = json.loads(line)
            try:
                reply = {} if request.get("end") else execute(request)
            except OSError as error:
                reply = {"status": 127, "stdout": "", "stderr": f"{request['argv'][0]}: {error.strerror}"}
            data = json.dumps(reply).encode() + b"\n"
            while data:
                data = data[os.write(fd, data):]
            if request.get("end"):
                return


if __name__ == "__main__":
    main()
