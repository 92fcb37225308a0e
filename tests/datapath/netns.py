# SPDX-License-Identifier: GPL-2.0-or-later
"""Network namespaces of this run only, and what has to be done inside them."""
import ctypes
import fcntl
import os
import re
import shutil
import socket
import struct
import subprocess
import tempfile
import threading

PREFIX = "esdp"
CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
# ETHTOOL_SRXCSUM, _STXCSUM, _STSO, _SGSO, _SGRO
OFFLOADS = (0x15, 0x17, 0x1F, 0x24, 0x2C)
_libc = ctypes.CDLL(None, use_errno=True)


def ip(*arguments):
    done = subprocess.run([shutil.which("ip") or "/usr/sbin/ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")


def batch(namespace, lines):
    done = subprocess.run([shutil.which("ip") or "/usr/sbin/ip", "-n", namespace, "-batch", "-"], text=True,
                          input="\n".join(lines) + "\n", capture_output=True)
    if done.returncode:
        raise RuntimeError(f"ip -n {namespace}: {done.stderr.strip()}")


def path(namespace):
    return f"/run/netns/{namespace}"


def delete(namespace):
    if os.path.exists(path(namespace)):
        ip("netns", "del", namespace)


def delete_stale():
    """What runs that were killed have left: names tell the process."""
    for directory in ("/run/netns", tempfile.gettempdir()):
        for name in os.listdir(directory) if os.path.isdir(directory) else []:
            found = re.fullmatch(rf"{PREFIX}(\d+)-.*", name)
            if not found or os.path.exists(f"/proc/{found[1]}"):
                continue
            if directory == "/run/netns":
                delete(name)
            else:
                shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def inside(namespace, function, *arguments, **keywords):
    """Call the function in a thread that has entered the namespace; sockets made there belong to it for good."""
    outcome = {}

    def run():
        try:
            with open(path(namespace), "rb") as handle:
                if _libc.setns(handle.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns", namespace)
            outcome["result"] = function(*arguments, **keywords)
        except BaseException as error:  # the caller's thread gets it
            outcome["error"] = error

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def sysctl(namespace, values):
    def write():
        for key, value in values.items():
            file = "/proc/sys/" + key.replace(".", "/")
            if key.startswith("net.ipv6.") and not os.path.exists(file):
                continue
            with open(file, "w", encoding="ascii") as handle:
                handle.write(str(value))

    inside(namespace, write)


def offloads_off(namespace, interface):
    """What leaves the interface is what goes over the wire: checksums filled in, one segment a frame."""
    def run():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for command in OFFLOADS:
                value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
                request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
                fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))

    inside(namespace, run)


def hardware_address(namespace, interface):
    def run():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            reply = fcntl.ioctl(s, 0x8927, struct.pack("16s24x", interface.encode()))
            return reply[18:24].hex(":")

    return inside(namespace, run)


def tcp_sockets(namespace):
    """[(local address, local port, remote address, remote port, state)] of /proc/net/tcp; state is its number."""
    def endpoint(text):
        host, port = text.split(":")
        return socket.inet_ntoa(bytes.fromhex(host)[::-1]), int(port, 16)

    def read():
        with open("/proc/thread-self/net/tcp", encoding="ascii") as handle:
            rows = [line.split() for line in handle][1:]
        return [(*endpoint(row[1]), *endpoint(row[2]), int(row[3], 16)) for row in rows]

    return inside(namespace, read)
