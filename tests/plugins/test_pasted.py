# SPDX-License-Identifier: GPL-2.0-or-later
"""What the pages show of configurations and of plugins' own can be pasted: `earshot check-config` takes each of it, inside
the least configuration that it needs, and nginx takes what is nginx's."""
import glob
import os
import re
import shutil
import subprocess

import pytest

BUILD, SOURCE = os.environ["EARSHOT_BUILD"], os.environ["EARSHOT_SOURCE"]
EARSHOT, PLUGINS = os.path.join(BUILD, "bin", "earshot"), os.path.join(BUILD, "plugins")

AROUND = [
    (r"^datapath \{", "datapath { interface = eth0  cluster_interface = eth1 }\n"),
    (r"^node ", "".join(f"node n{i} {{ address = 10.78.0.{i} }}\n" for i in (1, 2, 3, 4))),
    (r"^service \w+ \{", "service web { address = 10.77.0.100  port = 80 }\n"),
]


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as handle:
        return handle.read()


def check(tmp_path, text):
    for pattern, section in AROUND:
        if not re.search(pattern, text, re.M):
            text += section
    path = tmp_path / "earshot.conf"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([EARSHOT, "check-config", path], env=os.environ | {"EARSHOT_PLUGIN_DIR": PLUGINS}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and "not on this machine" not in done.stdout, f"{done.stderr}{done.stdout}\n{text}"


def pages():
    return sorted(os.path.relpath(path, SOURCE) for pattern in ("docs/*.md", "docs/man/*.scd", "README.md")
                  for path in glob.glob(os.path.join(SOURCE, pattern)))


def configurations():
    """(page, text) of each block that begins, but for a comment, with a section of earshot.conf(5); … leaves something out."""
    for page in pages():
        for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", read(page), re.S | re.M):
            if language in ("", "conf") and re.match(r"(?:#.*\n|\s)*(cluster|datapath|inspector|node|service|rule|location|plugin)\b[^\n]*\{", block) \
                    and "…" not in block:
                yield page, block


def test_there_are_some():
    found = [page for page, _ in configurations()]
    assert found.count("docs/rules.md") >= 6 and found.count("docs/plugins.md") >= 2
    assert {"docs/walkthrough.md", "docs/programs.md", "docs/man/earshot.conf.5.scd", "docs/man/earshot-plugin.7.scd"} <= set(found)


@pytest.mark.parametrize("page,text", configurations())
def test_configurations(tmp_path, page, text):
    """Those that need more than one line name a file, which is not there."""
    (tmp_path / "hash").write_text("header X-Tenant\n")
    (tmp_path / "route.lua").write_text("function route(req) end\n")
    text = re.sub(r"/etc/earshot/(hash|route\.lua)", lambda match: str(tmp_path / match[1]), text)
    if text.startswith("plugin"):
        text = f"service web {{ address = 10.77.0.100  port = 80\n{text}}}\n"
    check(tmp_path, text)


def statements():
    """(plugin, statement) of the tables of both pages."""
    table = re.findall(r"^\| `([\w-]+)` \|.*\| (.*) \|$", read("docs/plugins.md").replace("\\|", "¦"), re.M)
    manual = re.findall(r"^\*([\w-]+)\*\n\t(.*(?:\n\t.*)*)", read("docs/man/earshot-plugin.7.scd").split("# CONFIGURATION")[0], re.M)
    for plugin, text in [(plugin, re.findall(r"`(.+?)`", text)) for plugin, text in table] + \
            [(plugin, [s.replace("\\_", "_").replace("\\\\", "\\").replace("\\*", "*") for s in re.findall(r"_(.+?)(?<!\\)_", text)])
             for plugin, text in manual]:
        text = [statement.replace("¦", "|") for statement in text]
        if plugin == "canary":
            # One statement of each kind makes a configuration; each alternative takes its kind's place.
            text = ["others pass" if statement == "pass" else statement for statement in text]
            least = {statement.split()[0]: statement for statement in reversed(text)}
            for statement in text:
                yield plugin, "; ".join((least | {statement.split()[0]: statement}).values())
        elif plugin in ("body-prefix", "header-hash", "path-map", "sni-map", "geo-cidr"):
            yield from ((plugin, statement) for statement in text)


def test_statements_are_found():
    found = list(statements())
    assert ("path-map", r"regex '\.(mp4|webm)$' n3") in found and ("path-map", r"regex '\.mp4$' n3") in found
    assert len({plugin for plugin, _ in found}) == 6 and len(found) > 20


@pytest.mark.parametrize("plugin,statement", sorted(set(statements())))
def test_statements(tmp_path, plugin, statement):
    """In the configuration, and in a file, also one that an editor of another system wrote."""
    statement = re.sub(r"\b(WORD|NAME)\b", "x", statement)
    around = "service web {{ address = 10.77.0.100  port = 80\nplugin {} {{ {} }} }}\n"
    check(tmp_path, around.format(plugin, f'config = "{statement}"'))
    listed = tmp_path / "list"
    for text in (statement + "\n", "\ufeff" + statement + "\r\n", "#!/usr/bin/anything\n" + statement.replace("; ", "\n")):
        listed.write_bytes(text.encode())
        check(tmp_path, around.format(plugin, f'config_file = "{listed}"'))


def test_large_files(tmp_path):
    """16 MiB are taken, and not a byte more; what is too long, or in UTF-16, is refused with what would be accepted."""
    listed = tmp_path / "list"
    around = f'service web {{ address = 10.77.0.100  port = 80\nplugin geo-cidr {{ config_file = "{listed}" }} }}\n'
    lines = "".join(f"{11 + i // 65536}.{i // 256 % 256}.{i % 256}.0/24 n{1 + i % 3}\n" for i in range(100000))
    listed.write_text(lines + "#" * (16 * 1024 * 1024 - len(lines)))
    check(tmp_path, around)
    for data, why in ((listed.read_bytes() + b"#", "too long: expected at most 16 MiB"),
                      ("192.0.2.0/24 n1\n".encode("utf-16"), "UTF-16: expected UTF-8")):
        listed.write_bytes(data)
        with pytest.raises(AssertionError, match=f"config_file = {re.escape(str(listed))}: {why}"):
            check(tmp_path, around)


def of_nginx():
    """(page, text) of each block that begins with one of nginx's directives that the pages show; lab/test_tls has one of a cluster."""
    for page in pages():
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", read(page), re.S | re.M):
            if not language and re.match(r"(server \{|log_format|access_log|ssl_)", block):
                yield page, block


def test_nginx(tmp_path):
    """All of them together, with the files that they name."""
    found = list(of_nginx())
    assert {page for page, _ in found} >= {"docs/tls.md", "docs/logs.md"} and len(found) >= 4
    text = "".join(block for _, block in found)
    for name in set(re.findall(r"/[\w./-]+\.(?:pem|key|old|log)\b", text)):
        text = re.sub(rf"{re.escape(name)}(?=[\s;])", str(tmp_path / os.path.basename(name)), text)
    for name in ("ticket.key", "ticket.key.old"):
        (tmp_path / name).write_bytes(os.urandom(80))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=www.example.org", "-keyout", str(tmp_path / "www.example.org.key"), "-out", str(tmp_path / "www.example.org.pem")],
                   check=True, capture_output=True)
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/pid;\nevents {{ }}\nhttp {{\n{text}}}\n")
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    done = subprocess.run([nginx, "-t", "-p", str(tmp_path), "-c", str(config), "-e", str(tmp_path / "error.log")], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
