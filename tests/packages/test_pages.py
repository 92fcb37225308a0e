# SPDX-License-Identifier: GPL-2.0-or-later
"""What is written for people and what the programs take, compared: manual pages, completion, versions, the unit. Each
comparison goes both ways: nothing is missing, and nothing is described that is not there."""
import ast
import glob
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import packages
import pasted
from packages import SOURCE

BIN = os.path.join(os.environ["EARSHOT_BUILD"], "bin")
OPTION = re.compile(r"--[a-z][a-z-]*")
USUAL = {"--help", "--usage", "--version"}


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as handle:
        return handle.read()


def page(name):
    return read("docs/man", f"{name}.scd")


def section(text, heading):
    """What stands below "# HEADING"."""
    found = re.search(rf"^# {heading}\n(.*?)(?=^# |\Z)", text, re.M | re.S)
    assert found, heading
    return found[1]


def entries(text):
    """The names of the definitions: what is bold on lines that begin with bold, and the text that is indented below."""
    found = {}
    for names, body in re.findall(r"^(\*[^\n]*)\n((?:\t[^\n]*\n)+)", text, re.M):
        for name in re.findall(r"\*([^*]+)\*", names):
            found[name] = found.get(name, "") + names + "\n" + body
    return found


def help_of(program, *command):
    done = subprocess.run([os.path.join(BIN, program), *command, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def options_of(program, *command):
    return {option for line in help_of(program, *command).splitlines()
            for option in re.findall(r"^ +(?:-\S, )?(--[a-z][a-z-]*)", line)}


# earshot.conf(5)


def accepted(tmp_path, text):
    """What the parser would accept in place of "nonsense" in @text, by its error."""
    path = tmp_path / "nonsense.conf"
    path.write_text(text)
    done = subprocess.run([os.path.join(BIN, "earshot"), "check-config", path], capture_output=True, text=True, check=False)
    found = re.search(r'unknown (?:key|section) "nonsense": expected (.*)$', done.stderr, re.M)
    assert found, done
    return found[1].split(" | ")


def test_configuration_keys(tmp_path):
    """Manual page and example have all keys that the parser takes, and no others."""
    described = {heading.lower(): entries(body) for heading, body in
                 re.findall(r"^# SECTION (\w+)\n(.*?)(?=^# |\Z)", page("earshot.conf.5"), re.M | re.S)}
    example = read("conf/earshot.conf.example").split("\n# Rules and locations")[0]
    service = "service web { address = 192.0.2.1 port = 80 "
    sections = accepted(tmp_path, "nonsense { }")
    inner = [word.split()[0] for word in accepted(tmp_path, service + "nonsense = 1 }") if word.endswith("{")]
    assert set(described) == {*sections, *inner} and len(described) == 14
    for name in described:
        title = "" if name in ("cluster", "datapath", "inspector", "status", "log", "check", "outlier", "otherwise", "tls") else \
            '"/x"' if name == "location" else "x"
        text = f"{name} {title} {{ nonsense = 1 }}"
        keys = {word for word in accepted(tmp_path, f"{service} {text} }}" if name in inner else text)
                if not word.endswith("{")}
        assert set(described[name]) == keys, name
        shown = re.search(rf"^((?:    )?(?:# )?){name} ?[^\n]*\{{\n(.*?)^\1\}}$", example, re.M | re.S)
        assert keys == set(re.findall(rf"^{re.escape(shown[1])}    (?:# ?)?(\w+) = ", shown[2], re.M)) | \
            {key for names in re.findall(r"# ([\w, ]+): as in a rule\.", shown[2]) for key in names.split(", ")}, name


SAMPLES_NEED = {
    ("log", "file"): "to = file", ("check", "ca_file"): "type = https host = www.example.com", ("check", ""): "type = http",
    ("location", "service"): "cost = 1", ("rule", "backup"): "nodes = n1", ("rule", "otherwise"): "nodes = n1",
    ("rule", "affinity"): "cookie = a", ("rule", "when_drained"): "cookie = a affinity = route", ("rule", "status"): "deny = yes",
    ("rule", "body"): "deny = yes", ("rule", "burst"): 'rate = "1/s"', ("rule", "deny"): " ", ("rule", ""): "priority = low"}
REQUIRED = {"datapath": "interface = eth0 cluster_interface = eth1", "node": "address = 10.78.0.1",
            "service": "address = 10.77.0.100 port = 80 policy = lard"}
REQUIRED_OF_TLS = {"certificate": "/a", "key": "/a", "server": '"127.0.0.1:1"'}


def test_example_values(tmp_path):
    """Each value that the example shows for a key without a default is one that the program takes."""
    path = tmp_path / "earshot.conf"
    section_of, tried = [], set()
    for line in read("conf/earshot.conf.example").split("\n# Rules and locations")[0].splitlines():
        line = line.lstrip("# ") if re.match(r"[ #]*\w[^={]*\{$|[ #]*\}$", line) else re.sub(r"^ *(# {4,})?", "", line)
        if line.endswith("{"):
            section_of.append(line.split()[0])
        elif line == "}":
            section_of.pop()
        found = re.match(r"# (\w+) = ", line)
        if not found or not section_of:
            continue
        section, key = section_of[-1], found[1]
        needs = SAMPLES_NEED.get((section, key), SAMPLES_NEED.get((section, ""), ""))
        needs = "" if f"{key} =" in needs else needs
        if section == "tls":
            needs = " ".join(f"{name} = {value}" for name, value in REQUIRED_OF_TLS.items() if name != key)
        heads = {"node": "node n1", "plugin": "plugin header-hash", "rule": "rule r", "location": "location /x/", "service": "service web"}
        required = {**REQUIRED, "service": REQUIRED["service"].replace(" policy = lard", "" if key == "policy" else " policy = lard")}
        one = f"{heads.get(section, section)} {{ {required.get(section, '')} {needs} {line[2:]} }}"
        if len(section_of) > 1:
            one = f"service web {{ {required['service']} {one} }}"
        others = [f"{heads.get(name, name)} {{ {keys} }}" for name, keys in required.items() if name not in (section_of[0], section)]
        path.write_text("\n".join([one, *others, "node n2 { address = 10.78.0.2 }", "node n3 { address = 10.78.0.3 }", ""]))
        done = subprocess.run([os.path.join(BIN, "earshot"), "check-config", path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (one, done.stderr)
        tried.add((section, key))
    assert len(tried) > 40 and {("plugin", "config"), ("rule", "burst"), ("status", "names")} <= tried, tried


def test_key_reference(tmp_path):
    """Both are what the table of keys says, and change with it; a key that lacks something is named."""
    tool = "inspector/config/key_reference.py"
    for path in [tool, "inspector/config/config.h", "inspector/policy/url_info.h", "kmod/core/abi.h", "docs/man/earshot.conf.5.scd",
                 "conf/earshot.conf.example", *(f"inspector/config/keys_{part}.c" for part in ("cluster", "service", "tls", "rules"))]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(SOURCE, path), tmp_path / path)
    table = tmp_path / "inspector/config/keys_service.c"
    text = table.read_text()

    def run(*options):
        done = subprocess.run([tmp_path / tool, *options], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def changed(before, after):
        assert before in text
        table.write_text(text.replace(before, after))
        return run("--check")

    assert run("--check") == (0, "")
    slow_start = re.search(r"\t/\*((?!\*/).)*\*/\n\tNUMBER\(check, slow_start_s", text, re.S)[0]
    assert changed(slow_start, "\tNUMBER(check, slow_start_s") == (1, "key_reference.py: check: slow_start_s has no text\n")
    assert changed("slow_start_s, SHOULD,", "slow_start_s, NULL,") == (
        1, "key_reference.py: check: slow_start_s: NULL does not say whether nodes must be alike\n")
    assert "document_root has neither a default nor a value" in changed("\t * @example /var/www/html\n", "")[1]
    assert changed("_reject_", "_refuse_") == (1, "key_reference.py: service: when_all_down: its text does not name _reject_\n")
    assert "is not what the table of keys says" in changed('slow_start_s, SHOULD, "0"', 'slow_start_s, MUST, "7"')[1]
    assert run() == (0, "") and run("--check") == (0, "")
    assert "Default _7_. Must be alike on all nodes." in \
        entries(section((tmp_path / "docs/man/earshot.conf.5.scd").read_text(), "SECTION CHECK"))["slow_start_s"].replace("\n\t", " ")
    assert "        #slow_start_s = 7\n" in (tmp_path / "conf/earshot.conf.example").read_text()


def test_policies():
    listed = subprocess.run(
        [os.path.join(BIN, "earshot-sim"), "policies", "--json"], capture_output=True, text=True, check=True).stdout
    names = {policy["name"] for policy in json.loads(listed)}
    assert "lard-r" in names
    body = entries(section(page("earshot.conf.5"), "SECTION SERVICE"))["policy"]
    assert names == set(re.findall(r"[a-z-]+", re.split(r"\s\(", body.split("request: ")[1])[0])) - {"or"}


# Programs


def commands():
    return re.findall(r"^  ([a-z-]+) +\S", help_of("earshot").split("Commands:")[1], re.M)


def cli_names():
    """All commands, those too that the summary tells of in another one's line."""
    return set(re.findall(r"^\t\.name = \"([a-z-]+)\",", "".join(
        read(path) for path in glob.glob(os.path.join(SOURCE, "inspector/cli/*.c"))), re.M))


def test_cli_commands():
    described = re.findall(r"^\*([a-z-]+)(?: lookup)?\*", section(page("earshot.8"), "COMMANDS"), re.M)
    assert set(described) == cli_names() >= set(commands())


@pytest.mark.parametrize("command", sorted(cli_names()))
def test_cli_options(command):
    """Each command's paragraph has its options, and no others."""
    text = page("earshot.8")
    common = set(OPTION.findall(section(text, "OPTIONS")))
    own = {name: body for name, body in entries(section(text, "COMMANDS")).items() if name.split()[0] == command}
    named = set(OPTION.findall("".join(own.values())))
    assert named | common | USUAL == options_of("earshot", command) | common | USUAL
    assert common <= options_of("earshot", command) | USUAL


def test_daemon_options():
    assert set(OPTION.findall(section(page("earshotd.8"), "OPTIONS"))) == options_of("earshotd")
    assert set(OPTION.findall(section(page("earshot-tls.8"), "OPTIONS"))) == options_of("earshot-tls")
    counters = re.findall(r"^\tX\((\w+),", read("inspector/ask/ledger.h"), re.M)
    assert re.findall(r"^\*(\w+)\*$", section(page("earshot-tls.8"), "COUNTERS"), re.M) == counters
    assert subprocess.run([os.path.join(BIN, "earshotd"), "--version"], capture_output=True, text=True,
                          check=True).stdout == f"earshotd {packages.version_of(os.path.join(SOURCE, 'CMakeLists.txt'))}\n"


def test_plugin_test_options():
    assert set(OPTION.findall(section(page("earshot-plugin-test.1"), "OPTIONS"))) == options_of("earshot-plugin-test")


def test_simulator_options():
    text = section(page("earshot-sim.1"), "OPTIONS")
    names = re.findall(r"^  ([a-z]+) ", help_of("earshot-sim"), re.M)
    assert set(re.findall(r"^\*([a-z]+)\*\n", section(page("earshot-sim.1"), "DESCRIPTION"), re.M)) == set(names)
    taken = set().union(*(options_of("earshot-sim", name) for name in names))
    assert set(OPTION.findall(text)) == taken
    # and their defaults
    for option, default in re.findall(r"^ +(--[a-z-]+)=(?:(?!\n +--)[^(])*?\(default\s+([0-9.]+)\)", help_of("earshot-sim", "run"),
                                      re.M | re.S):
        body = entries(text)
        assert re.search(rf"Default[^\n]*\b{re.escape(default)}\b", next(
            value for key, value in body.items() if key == option)), (option, default)


def test_lab_commands():
    """Every command and option of lab.py."""
    tree = ast.parse(read("lab/lab.py"))
    taken, options = set(), set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        first = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        attribute = getattr(node.func, "attr", getattr(node.func, "id", None))
        if attribute == "add_argument" and isinstance(first, str) and first.startswith("--"):
            options.add(first)
        if attribute in ("command", "add_parser") and isinstance(first, str):
            taken.add(first)
    for names in re.findall(r"for name, help_text in \((.*?)\):", read("lab/lab.py"), re.S):
        taken |= set(re.findall(r'\("([a-z-]+)"', names))
    text = page("earshot-lab.8")
    described = {name for line in re.findall(r"^\*.*$", section(text, "COMMANDS"), re.M)
                 for name in re.findall(r"\*([a-z-]+)\*", line) if not name.startswith("-")}
    assert described == taken
    assert set(OPTION.findall(text)) == options | {"--keep"}


def test_agent_parameters():
    agent = read("membership/ocf/earshotd")
    metadata = ElementTree.fromstring(agent.split("cat <<END\n")[1].split("\nEND\n")[0])
    described = entries(section(page("ocf_earshot_earshotd.7"), "PARAMETERS"))
    parameters = {parameter.get("name"): parameter for parameter in metadata.iter("parameter")}
    assert set(described) == set(parameters)
    for name, parameter in parameters.items():
        assert ("Reloadable" in described[name]) == (parameter.get("reloadable") == "1"), name
        default = re.search(rf"^{name}_default=(.*)$", agent, re.M)
        assert not default or default[1].startswith("/run") or default[1] in described[name], name
    assert {action.get("name") for action in metadata.iter("action")} <= set(
        re.findall(r"\*([a-z-]+)\*", section(page("ocf_earshot_earshotd.7"), "ACTIONS"))) | {"monitor"}


def test_plugin_page():
    header = re.sub(r"/\*.*?\*/", "", read("inspector/plugin/include/earshot/plugin.h"), flags=re.S)
    text = page("earshot-plugin.7")
    descriptor = re.search(r"^struct es_plugin \{(.*?)^\};", header, re.M | re.S)[1]
    functions = set(re.findall(r"\(\*(\w+)\)", descriptor))
    answers = set(re.findall(r"\b(ES_PLUGIN_(?:PASS|NODE|NODES|MORE|REJECT))\b", header))
    described = set(re.findall(r"^\*(\w+)\*", section(text, "THE INTERFACE"), re.M)) | set(
        re.findall(r"\*(\w+)\*\(\)", section(text, "THE INTERFACE")))
    assert described == functions | answers
    shipped = {name for name in os.listdir(os.path.join(SOURCE, "plugins")) if os.path.isdir(
        os.path.join(SOURCE, "plugins", name))} - {"debug"}
    assert set(entries(section(text, "SHIPPED PLUGINS"))) == shipped


def test_completion():
    """It knows every command, and its own shell syntax."""
    path = os.path.join(SOURCE, "conf/completion/earshot")
    script = f"""
        _init_completion() {{ words=("${{COMP_WORDS[@]}}") cword=$COMP_CWORD cur=${{words[cword]}} prev=${{words[cword-1]}}; }}
        PATH={BIN}:$PATH; . {path}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _earshot; printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    def complete(*words):
        return set(subprocess.run(["bash", "-c", script, "bash", "earshot", *words], capture_output=True, text=True,
                                  check=True).stdout.split())

    assert complete("") == cli_names()
    assert complete("che") == {"check", "check-config"}
    assert {"--strict", "--verbose", "--config="} <= complete("check", "--")
    assert complete("check", "--st") == {"--strict"}
    assert complete("ring", "l") == {"lookup"}


# docs/


def finding_names():
    """Names that `earshot check` prints."""
    text = "".join(read(path) for path in glob.glob(os.path.join(SOURCE, "inspector/check/*.c")))
    return set(re.findall(r'^\t\{"([a-z0-9_]+)",\s', text, re.M))


def counter_names():
    names = set(re.findall(r"^\tX\((\w+),", read("kmod/core/counters.h"), re.M))
    names |= {f"pin_{name}" for name in re.findall(r"^\tX\(prefix##(\w+),", read("kmod/core/pins.h"), re.M)}
    return names | {f"inspect_{name}" for name in re.findall(r"^\tX\((\w+),", read("inspector/inspect/worker.h"), re.M)}


def test_troubleshooting_names():
    """Counters and findings are called what the code calls them."""
    known = counter_names() | finding_names() | set(entries(page("earshot.conf.5")))
    assert {"syn_answered", "pin_tls", "inspect_nacks", "quorate", "mtu"} <= known
    named = set(re.findall(r"`([a-z][a-z0-9_]*)`", read("docs/troubleshooting.md")))
    others = {"like_this", "earshotd", "clock_ahead_ms", "timedatectl"}  # of JSON, and of the system
    assert named - known <= others, named - known - others
    assert len(named & counter_names()) > 30


def test_configurations_in_the_pages(tmp_path):
    """Complete configurations are accepted, and corosync's are made of them."""
    found = [block for path in ("README.md", "docs/walkthrough.md", "docs/install.md", "docs/migration.md")
             for block in re.findall(r"^cluster \{\n.*?\n\}\n(?=```|END)", read(path), re.M | re.S)]
    assert len(found) == 2
    for text in found:
        path = tmp_path / "earshot.conf"
        path.write_text(text)
        done = subprocess.run([os.path.join(BIN, "earshot"), "check-config", path], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0, done.stderr


def test_quick_start_is_what_is_tested():
    """README's commands are among those of docs/install.md, which run as they stand (test_cluster.py)."""
    page = "".join(pasted.blocks().values())
    short = [text for _, text in pasted.found("README.md")]
    assert len(short) == 3
    for text in short:
        for command in text.replace("\\\n", "\0").splitlines(True):
            assert command.replace("\0", "\\\n") in page, f"README.md: docs/install.md has no {command}"


def test_ansible_example():
    """It is YAML, and each command that it and docs/operating.md have is one, with options that it takes."""
    text = read("conf/ansible/earshot.yml")
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError:
        yaml = None  # Debian's python3-yaml is no dependency of the tests: then only the commands are looked at
    if yaml:
        plays = yaml.safe_load(text)
        assert {play["hosts"] for play in plays} == {"earshot", "earshot[0]"} and all(play["tasks"] for play in plays)
        assert [play.get("serial") for play in plays if "upgrade" in play["tags"]] == [1]
    used = re.findall(r"command: earshot (\S+)(.*)", text) + re.findall(r"^earshot (\S+)(.*)", read("docs/operating.md"), re.M)
    assert len(used) > 8
    for command, rest in used:
        taken = options_of("earshot", command)  # fails where there is no such command
        assert set(re.findall(r" (--[a-z-]+)", rest)) <= taken, (command, rest)


def upgrade_tasks():
    """(module, {field: value}) of the upgrade play in the order in which they run, those of a block one by one; what YAML's
    anchors and aliases stand for is in their places."""
    text = read("conf/ansible/earshot.yml").partition("- name: Upgrade\n")[2]
    for anchor, value in re.findall(r"&(\w+) (\S+)", text):
        text = text.replace(f"&{anchor} {value}", value).replace(f"*{anchor}\n", f"{value}\n")
    found = re.findall(r"^( +)ansible\.builtin\.(\w+):.*\n((?:\1  .*\n)*)", text, re.M)
    return [(module, dict(re.findall(r"^ +(\w+): \"?([^\"\n]*)", fields, re.M))) for _, module, fields in found]


def test_ansible_installs_only_what_it_copied():
    """Out of a directory that is emptied first, then made for root alone to write to, where nobody else can make one."""
    tasks = upgrade_tasks()
    modules = [module for module, _ in tasks]
    assert modules[:4] == ["file", "file", "copy", "find"] and modules.count("copy") == modules.count("find") == 1
    (_, before), (_, made), (_, copied), (_, found) = tasks[:4]
    directory = found["paths"]
    assert os.path.dirname(directory) in ("/var/cache", "/var/lib", "/root")
    assert before["path"] == made["path"] == copied["dest"] == directory
    assert (before["state"], made["state"]) == ("absent", "directory")
    for task in (made, copied):
        assert task["owner"] == task["group"] == "root" and not int(task["mode"], 8) & 0o022
    (install,) = [task["argv"] for module, task in tasks if module == "command" and "apt-get" in task.get("argv", "")]
    assert "found.files" in install


LINK = re.compile(r"\]\(([^)\s:]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


def links_of(text):
    return LINK.findall(FENCED.sub("", text))


def test_links_between_installed_pages(tmp_path):
    """Pages that the packages install link to others, and show plots, that they install, or link by ../ to the source."""
    build = os.path.dirname(BIN)
    subprocess.run(["cmake", "-P", os.path.join(build, "docs", "cmake_install.cmake")], check=True, capture_output=True,
                   env={**os.environ, "DESTDIR": str(tmp_path)})
    pages = {path.name: path for path in tmp_path.glob("**/doc/**/*.md")}
    there = {*pages, *(f"plots/{path.name}" for path in tmp_path.glob("**/doc/**/plots/*.svg"))}
    links = [(name, link) for name, path in sorted(pages.items()) for link in links_of(path.read_text(encoding="utf-8"))
             if not link.startswith(("../", "#"))]
    assert len(pages) > 20 and len(links) > 50
    assert [f"{name}: {link}" for name, link in links if link.partition("#")[0] not in there] == []


def test_links_between_pages():
    """Each leads to a file, and to a heading that is there."""
    def headings(path):
        return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", read(path), re.M)}

    pages = [os.path.relpath(path, SOURCE) for pattern in ("*.md", "docs/*.md", "tests/**/*.md")
             for path in glob.glob(os.path.join(SOURCE, pattern), recursive=True)]
    found = 0
    for page in pages:
        for link in links_of(read(page)):
            path, _, heading = link.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            assert os.path.exists(os.path.join(SOURCE, path)), f"{page}: {link}: no file {path}"
            assert not heading or heading in headings(path), f"{page}: {link}: {path} has no such heading"
            found += 1
    assert found > 50


def test_index_names_all_pages():
    """docs/README.md, for its readers."""
    pages = {os.path.basename(path) for path in glob.glob(os.path.join(SOURCE, "docs/*.md"))} - {"README.md"}
    missing = pages - set(re.findall(r"\]\(([\w-]+\.md)\)", read("docs/README.md")))
    assert not missing, f"docs/README.md does not name {missing}"


def test_architecture_names_every_room():
    """On one page; a room is a folder with C in it."""
    text = read("ARCHITECTURE.md")
    assert text.count("\n") <= 150
    named = set(re.findall(r"`([\w/]+)/`", re.search(r"^## Rooms\n(.*?)^## ", text, re.M | re.S)[1]))
    for root in ("inspector", "netfilter", "kmod", "tls"):
        rooms = {os.path.relpath(os.path.dirname(path), SOURCE) for path in glob.glob(os.path.join(SOURCE, root, "*", "*.[ch]"))}
        missing = {room for room in rooms if not {room, os.path.basename(room)} & named}
        assert not missing, f"ARCHITECTURE.md does not name {missing}"


def test_invariants_name_their_tests():
    """Each says where it is kept and which test fails without it; the tests are there, and so are their cases."""
    found = 0
    for title, body in re.findall(r"^## (\d+\. [^\n]*)\n(.*?)(?=^## |\Z)", read("docs/invariants.md"), re.M | re.S):
        body = re.sub(r"\s+", " ", body)
        _, where, tests = re.split(r"- \*\*(?:Where|Test)\*\*: ", body)
        assert "`" in where, title
        cases = re.findall(r"`((?:unit|datapath|lab)/test_\w+)`(?: \(((?:`test_\w+`(?:, )?)+)\))?", tests)
        assert cases or "every test in `datapath/`" in tests, title
        for path, names in cases:
            files = glob.glob(os.path.join(SOURCE, "tests", f"{path}.*"))
            assert len(files) == 1, f"{title}: no tests/{path}"
            missing = [name for name in re.findall(r"test_\w+", names) if not re.search(rf"\b{name}\(", read(files[0]))]
            assert not missing, f"{title}: {path} has no {missing}"
            found += 1
    assert found > 40


def test_corosync_configuration(tmp_path):
    """`earshot corosync-conf` has the sample's values, and the nodes of the configuration."""
    def values(text):
        text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
        return dict(re.findall(r"^\s*(\w+): (.*)$", text.split("nodelist")[0] + text.split("quorum {")[1], re.M))

    done = subprocess.run([os.path.join(BIN, "earshot"), "corosync-conf", os.path.join(SOURCE, "conf/earshot.conf.example")],
                          capture_output=True, text=True, check=True)
    made, sample = values(done.stdout), values(read("conf/corosync/corosync.conf.example"))
    assert made.pop("cluster_name") == "lab" and sample.pop("cluster_name") == "earshot"
    assert made == sample and made["token"] == "1000"
    assert re.findall(r"ring0_addr: (\S+)", done.stdout) == [f"10.78.0.{i}" for i in (1, 2, 3)]
    two = tmp_path / "two.conf"
    two.write_text(read("conf/earshot.conf.example").replace("node n3 { address = 10.78.0.3 id = 3 }\n", ""))
    done = subprocess.run([os.path.join(BIN, "earshot"), "corosync-conf", two], capture_output=True, text=True, check=True)
    assert "quorum device" in done.stdout and "n3" not in done.stdout


def test_corosync_ids(tmp_path):
    """A node's id is what its section says; numbered by place, it may become another's, which is said."""
    def ids(*sections):
        path = tmp_path / "ids.conf"
        path.write_text(read("conf/earshot.conf.example").split("\nnode n1 {")[0] + "\nservice web { address = 10.77.0.100 port = 80 }\n" +
                        "".join(f"node {name} {{ address = 10.78.0.{name[1:]} {more} }}\n" for name, more in sections))
        done = subprocess.run([os.path.join(BIN, "earshot"), "corosync-conf", path], capture_output=True, text=True, check=True)
        return {name: int(number) for number, name in re.findall(r"nodeid: (\d+)\n\s*name: (\w+)", done.stdout)}, done.stderr

    assert ids(("n1", "id = 1"), ("n3", "id = 3"), ("n4", "id = 9")) == ({"n1": 1, "n3": 3, "n4": 9}, "")
    assert ids(("n4", "id = 9"), ("n1", "id = 1")) == ({"n4": 9, "n1": 1}, "")
    found, said = ids(("n1", ""), ("n3", ""))
    assert found == {"n1": 1, "n3": 2} and "warning" in said and "node n3 { id = 2" in said, said


# The packages


def test_versions_agree():
    version = packages.version_of(os.path.join(SOURCE, "CMakeLists.txt"))
    said = subprocess.run(["dpkg-parsechangelog", "-S", "Version"], cwd=SOURCE, capture_output=True, text=True,
                          check=True).stdout.strip()
    assert said == version
    assert f"VERSION={version}" in packages.run("grep", "-h", "^CMAKE_PROJECT_VERSION:", os.path.join(
        os.environ["EARSHOT_BUILD"], "CMakeCache.txt")).replace("CMAKE_PROJECT_VERSION:STATIC=", "VERSION=")


def test_every_component_is_a_package():
    """What CMake can install, debian/rules does; what is named twice is one."""
    mapped = dict(re.findall(r"^COMPONENT_(\S+) = (\S.*)$", read("debian/rules"), re.M))
    components = set()
    for path in glob.glob(os.path.join(os.environ["EARSHOT_BUILD"], "**", "cmake_install.cmake"), recursive=True):
        with open(path, encoding="utf-8") as handle:
            components |= set(re.findall(r'CMAKE_INSTALL_COMPONENT STREQUAL "([^"]+)"', handle.read()))
    assert sorted(" ".join(mapped.values()).split()) == sorted(components)
    assert set(mapped) == set(re.findall(r"^Package: (\S+)$", read("debian/control"), re.M))


def test_pages_are_well_formed():
    """groff has nothing to say about them."""
    pages = glob.glob(os.path.join(os.environ["EARSHOT_BUILD"], "docs", "*.[1-9]"))
    assert len(pages) == len(glob.glob(os.path.join(SOURCE, "docs/man/*.scd"))) == 9
    for path in pages:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-K", "utf8", path], capture_output=True, text=True,
                              check=True)
        assert not done.stderr and len(done.stdout) > 500, (path, done.stderr)


@pytest.mark.parametrize("name", ["earshotd", "earshot-tls"])
def test_unit_is_accepted(tmp_path, name):
    """systemd itself does not run here: its checker reads the unit, as it would read it with what is installed."""
    unit = tmp_path / f"{name}.service"
    with open(os.path.join(os.environ["EARSHOT_BUILD"], f"conf/{name}.service"), encoding="utf-8") as handle:
        text = handle.read()
    assert text.count(f"/sbin/{name} ") == 1
    unit.write_text(re.sub(r"/usr\S*/sbin/(earshot-tls|earshotd?)", rf"{BIN}/\1", text))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit], capture_output=True,
                          text=True, check=False)
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "earshot" in line]
    assert done.returncode == 0 and not ours, done
    broken = tmp_path / "broken.service"
    broken.write_text(unit.read_text().replace("Restart=on-failure", "Restart=perhaps"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", broken], capture_output=True,
                          text=True, check=False)
    assert "broken.service:" in done.stderr, done
    done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=35", unit], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


# tests/README.md


def test_the_tests_readme_names_every_test():
    """In its table `_x` stands for the file beside the one before it."""
    named = set()
    for row in section(read("tests/README.md").replace("## ", "# "), "Which files test what").splitlines():
        directory = prefix = None
        for name in re.findall(r"`([a-z0-9_/*]+)`", row) if row.startswith("| ") else ():
            if "/" in name:
                directory = os.path.dirname(name)
                prefix = "fuzz" if directory == "fuzz" else "test"
            path = name if "/" in name else f"{directory}/{prefix}{name}"
            files = glob.glob(f"tests/{path}.c", root_dir=SOURCE) + glob.glob(f"tests/{path}.py", root_dir=SOURCE)
            assert files, f"tests/README.md: {name}: no tests/{path}"
            named |= set(files)
    there = {path for pattern in ("**/test_*.py", "unit/test_*.c", "fuzz/fuzz_*.c")
             for path in glob.glob(f"tests/{pattern}", root_dir=SOURCE, recursive=True)} - {"tests/fuzz/fuzz_main.c"}
    assert not there - named, f"tests/README.md does not say what these test: {sorted(there - named)}"


def test_no_test_takes_something_from_another():
    """What two files need is in tests/lib, and pytest.ini finds it."""
    found = []
    for path in glob.glob(os.path.join(SOURCE, "tests/**/*.py"), recursive=True):
        if os.path.basename(path).startswith(("test_", "conftest")):
            with open(path, encoding="utf-8") as handle:
                found += [f"{path}: {line}" for line in handle.read().splitlines()
                          if re.match(r"from test_|import test_|from conftest|.*\bsys\.path\b", line)]
    assert not found, "\n".join(found)
