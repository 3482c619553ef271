"""Says what pods are given that a trouble may come from: paths, Secrets, services, host names. Pure.

Hints for `why`, never verdicts. No value of a Secret is known here, and no login is shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from trainchart.cluster.full_volumes import name_volume
from trainchart.cluster.snapshot import Object, Snapshot, items_of, listed, name_of, section
from trainchart.reports.report import Report
from trainchart.secret_masks import MASK
from trainchart.secret_names import hide_logins, is_secret_name
from trainchart_runtime.causes import (
    ACCESS_REFUSED,
    DISK_FULL,
    DOWNLOAD_FAILED,
    PEER_LOST,
    PEER_MISSING,
    PEER_UNRESOLVABLE,
    PORT_IN_USE,
    SERVICE_UNREACHABLE,
)
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import FAILED

_SHOWN = 4
"""Of each kind."""
_OWN = "TRAINCHART_"
"""Variables that the chart sets itself."""
_OWN_MOUNTS = ("/tmp", "/dev/shm", "/etc/trainchart", "/run/trainchart", "/opt/trainchart", "/launcher")
_RESULTS = ("volume-checkpoints", "volume-logs")
"""Volumes that programs write to: what is not there yet is no mistake."""
_OF_SYSTEM = ("/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", "/proc", "/sys", "/dev", "/root", "/home")
"""Folders of images that are seldom data."""
_NO_DATA = ("HOME", "PATH", "PWD", "SHELL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")
_PATH = re.compile(r"(?:/[\w.@-]+)+/?")
_PROXY = re.compile("(?:https?|all)_proxy", re.IGNORECASE)
_OPTION = re.compile(r"--?([\w.-]+)=(.*)", re.DOTALL)
_URL = re.compile(r"\b(?!(?:gs|s3|s3a|file)://)[a-z][a-z0-9+]*://(?:[^\s/@]*@)?([A-Za-z0-9][\w.-]*(?::\d+)?)")
_HOST_AND_PORT = re.compile(r"(?:^|,)([A-Za-z][A-Za-z0-9.-]*:\d{2,5})(?=,|$)")
_OF_ADDRESSES = tuple(
    cause.name for cause in (SERVICE_UNREACHABLE, DOWNLOAD_FAILED, PEER_LOST, PEER_MISSING, PEER_UNRESOLVABLE)
)

_OF_SERVICES = (SERVICE_UNREACHABLE.name, DOWNLOAD_FAILED.name)
_OF_HEADERS = re.compile(
    r"header value|illegal header|invalid header|header.{0,300}(newline|return character)", re.IGNORECASE
)
"""How HTTP libraries refuse a value with a line break."""
_NO_SERVER = "Could not start gRPC server"
"""How TensorFlow says that its own port is taken."""
_PORT_SETTINGS = {"tensorflow": "service.port", "status": "service.statusPort"}
"""Name of a port of the training container → the value that sets it."""
_NO_VARIABLE = re.compile(r"KeyError: '([A-Za-z_][A-Za-z0-9_]*)'")


def needs_services(report: Report) -> bool:
    """Say whether the Services of the namespace may tell why a program gets no answer."""
    return _is_waiting(report) or not _list_causes(report).isdisjoint(_OF_SERVICES)


def find_leads(report: Report, seen: Snapshot) -> tuple[str, ...]:
    """Return in sentences what to look at, of what the pod that failed is given; of all pods where none has."""
    told = _list_causes(report)
    is_waiting = _is_waiting(report)
    leads = [*_name_host_port(report, seen), *_name_spared(report)]
    for spec in _find_specs(report, seen):
        error, node = (report.outcome.error, report.outcome.node) if report.outcome else ("", "")
        leads += _name_full_volume(spec, report) if DISK_FULL.name in told else ()
        leads += _name_secrets(spec, error) if ACCESS_REFUSED.name in told or _OF_HEADERS.search(error) else ()
        leads += _name_paths(spec) if report.fails_at_start else ()
        leads += _name_near_variable(spec, report.outcome.error) if report.outcome and report.fails_at_start else ()
        leads += _name_services(spec, seen, node) if is_waiting or told.intersection(_OF_SERVICES) else ()
        leads += (
            _name_missing_ports(spec, seen, report.key.namespace)
            if is_waiting or told.intersection(_OF_SERVICES)
            else ()
        )
        leads += _name_proxies(spec) if told.intersection(_OF_ADDRESSES) else ()
        leads += _name_aliases(spec) if is_waiting or told.intersection(_OF_ADDRESSES) else ()
    return tuple(dict.fromkeys(leads))


def _is_waiting(report: Report) -> bool:
    """Say whether it makes no steps, or far fewer than before."""
    return report.seems_to_hang or report.step_pause > 0 or report.slowdown is not None


def _list_causes(report: Report) -> set[str]:
    """Return the cause of a failure, or those of deaths after which no step was made."""
    if report.outcome is not None:
        return {report.outcome.cause} if report.outcome.result == FAILED else set()
    return {each.cause for each in report.incidents if each.at > report.progress.at}


def _find_specs(report: Report, seen: Snapshot) -> list[Object]:
    failed = report.outcome.pod.rpartition("-")[0] if report.outcome is not None else ""
    specs = {name_of(each): section(each, "spec", "template", "spec") for each in listed(seen.sets)}
    return [specs[failed]] if failed in specs else list(specs.values())


def _name_host_port(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield that a port is taken on the node whose network the pod uses, and which port."""
    deaths = [each for each in report.incidents if each.cause == PORT_IN_USE.name]
    last = report.outcome or (deaths[-1] if deaths else None)
    if last is None or PORT_IN_USE.name not in _list_causes(report):
        return
    sets = {name_of(each): section(each, "spec", "template", "spec") for each in listed(seen.sets)}
    spec = sets.get(last.pod.rpartition("-")[0], {})
    if spec.get("hostNetwork") is not True:
        return
    ports = {
        str(each.get("containerPort")): _PORT_SETTINGS[str(each.get("name"))]
        for each in items_of(find_training(spec), "ports")
        if each.get("name") in _PORT_SETTINGS
    }
    named = [port for port in ports if re.search(rf"(?<!\d){port}(?!\d)", last.error)]
    if not named and _NO_SERVER in last.error:
        named = [port for port, setting in ports.items() if setting == _PORT_SETTINGS["tensorflow"]]
    own = list_names([f"{port} ({setting})" for port, setting in ports.items()])
    words = (
        f"port {named[0]} ({ports[named[0]]})"
        if named
        else f"a port that the program needs{f' (the ports of the chart are {own})' if own else ''}"
    )
    node = last.node or "its node"
    listing = (
        f" (to list the node's pods: kubectl get pods -A --field-selector spec.nodeName={node})" if last.node else ""
    )
    yield (
        f"{last.pod} uses the network of its node{f' {last.node}' if last.node else ''} (hostNetwork), where another "
        f"process or pod already uses {words}: `ss -ltnp` on {node} shows which process{listing}."
    )


def _name_spared(report: Report) -> Iterator[str]:
    """Yield that pods on other nodes did not fail, so that the node may be at fault."""
    last = report.outcome
    if last is None or not last.spared:
        return
    yield (
        f"All failures were on {last.node}, the last one of {last.pod}; {last.spared} did not fail. Unless the pods' "
        "shares of the work differ, suspect the node: it may hold a damaged copy of the image (compare the "
        "files in pods on both nodes), or its network, service proxy (kube-proxy), disks or devices may be faulty."
    )


def _name_full_volume(spec: Object, report: Report) -> Iterator[str]:
    outcome = report.outcome
    words = name_volume(outcome.error, spec, find_training(spec), outcome.pod, outcome.node) if outcome else ""
    if words:
        yield words


def find_training(spec: Object) -> Object:
    """Return the training container of a pod spec; an empty one where there is none."""
    return next((each for each in items_of(spec, "containers") if each.get("name") == TRAINING_CONTAINER), {})


def _read_given(container: Object) -> Iterator[tuple[str, str]]:
    """Yield name and value of the variables and arguments that the chart does not set itself."""
    for entry in items_of(container, "env"):
        name = str(entry.get("name"))
        if isinstance(entry.get("value"), str) and not name.startswith(_OWN):
            yield name, str(entry["value"])
    words = container.get("args")
    for word in words if isinstance(words, list) else ():
        option = _OPTION.fullmatch(str(word))
        yield (f"--{option[1]}", option[2]) if option else ("args", str(word))


def _name_secrets(spec: Object, error: str) -> Iterator[str]:
    """Yield from which Secrets the container takes variables and files, and what may be wrong with their values."""
    container = find_training(spec)
    found: dict[str, list[str]] = {}
    for entry in items_of(container, "env"):
        source = section(entry, "valueFrom", "secretKeyRef")
        found.setdefault(str(source.get("name") or ""), []).append(f"key {source.get('key')} as {entry.get('name')}")
    for entry in items_of(container, "envFrom"):
        found.setdefault(str(section(entry, "secretRef").get("name") or ""), []).append("all keys as variables")
    mounts = {each.get("name"): each.get("mountPath") for each in items_of(container, "volumeMounts")}
    for volume in items_of(spec, "volumes"):
        parts = items_of(section(volume, "projected"), "sources")
        names = [section(volume, "secret").get("secretName"), *(section(each, "secret").get("name") for each in parts)]
        for name in names if volume.get("name") in mounts else ():
            found.setdefault(str(name or ""), []).append(f"at {mounts[volume.get('name')]}")
    found.pop("", None)
    named = [f"Secret {name} ({', '.join(uses[:_SHOWN])})" for name, uses in found.items()]
    if named:
        it = "it" if len(named) == 1 else "the Secret whose value has expired or is wrong"
        cure = f"put a new value into {it}"
        if _OF_HEADERS.search(error):
            cure = (
                "a value that ends with a line break is not a valid HTTP header; store it without one (echo -n, printf)"
            )
        yield f"Its credentials come from {list_names(named[:_SHOWN])}: {cure}."


def _name_paths(spec: Object) -> Iterator[str]:
    """Yield which paths it is given that lie in no volume, or somewhere in one of data."""
    container = find_training(spec)
    mounts = {str(each.get("mountPath")).rstrip("/"): each.get("name") for each in items_of(container, "volumeMounts")}
    of_data = [path for path, name in mounts.items() if path not in _OWN_MOUNTS and name not in _RESULTS]
    found = []
    for name, value in _read_given(container):
        path = value.rstrip("/")
        if name == "args" and value.endswith(".py"):
            continue  # the program itself: where that is missing, the cause says so
        if is_secret_name(name) or name in _NO_DATA or not _PATH.fullmatch(value) or path in mounts:
            continue
        around = max((mount for mount in mounts if path.startswith(f"{mount}/")), key=len, default="")
        if around in of_data:
            found.append(f"{name}={value}, in the volume mounted at {around}")
        elif not around and not any(path == each or path.startswith(f"{each}/") for each in _OF_SYSTEM):
            found.append(f"{name}={value}, which is in no volume{_name_mounts(of_data)}")
    if found:
        yield f"Check that the files that it reads are where it looks: {'; '.join(found[:_SHOWN])}."


def _name_mounts(mounts: list[str]) -> str:
    return f" (mounted: {', '.join(mounts[:_SHOWN])})" if mounts else ""


def _name_services(spec: Object, seen: Snapshot, node: str) -> Iterator[str]:
    """Yield which addresses it is given, without logins and those of its own pods."""
    named = [f"{address} ({name})" for address, name in list(_read_addresses(spec, seen).items())[:_SHOWN]]
    if named:
        where = f", from a pod on {node}," if node else ""
        yield f"Check{where} whether the services that it uses answer: {list_names(named)}."


def _name_missing_ports(spec: Object, seen: Snapshot, namespace: str) -> Iterator[str]:
    """Yield which addresses name a Service of the namespace, and a port that it does not have."""
    services = {name_of(each): items_of(section(each, "spec"), "ports") for each in listed(seen.services)}
    for address, name in _read_addresses(spec, seen).items():
        host, _, port = address.partition(":")
        service, *rest = host.split(".")
        if rest[:1] not in ([], [namespace]) or rest[1:2] not in ([], ["svc"]):
            continue
        ports = sorted({str(each.get("port")) for each in services.get(service, ())})
        if ports and port and port not in ports:
            yield (
                f"{name} names port {port} of the Service {host}, which has {list_names(ports)}: if that is a mistake, "
                "correct it in `env`."
            )


def _read_addresses(spec: Object, seen: Snapshot) -> dict[str, str]:
    """Return the addresses that a container is given, and the variable or argument that does."""
    own = tuple(name_of(each) for each in listed(seen.sets))
    found: dict[str, str] = {}
    for name, value in _read_given(find_training(spec)):
        for address in (*_URL.findall(value), *_HOST_AND_PORT.findall(value)):
            if not address.startswith(own):
                found.setdefault(address, name)
    return found


def _name_near_variable(spec: Object, error: str) -> Iterator[str]:
    """Yield which variable is given in the place of one that the program does not find."""
    wanted = _NO_VARIABLE.search(error)
    given = [str(entry.get("name")) for entry in items_of(find_training(spec), "env")]
    if wanted and wanted[1] not in given:
        for name in difflib.get_close_matches(wanted[1], given, n=1, cutoff=0.8):
            yield f"The program looks for {wanted[1]}, but gets {name}: one of them may be a typo."


def _name_proxies(spec: Object) -> Iterator[str]:
    """Yield which proxy the container is given, or may be: libraries send requests to it, those in the cluster too."""
    container = find_training(spec)
    found = [f"{name}={hide_logins(value, MASK)}" for name, value in _read_given(container) if _PROXY.fullmatch(name)]
    for entry in items_of(container, "envFrom"):
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            name = section(entry, key).get("name")
            found += [f"perhaps one in {kind} {name}, whose keys become variables"] if name and not found else []
    if found:
        yield (
            f"A proxy may be in the way ({'; '.join(found[:_SHOWN])}): with http_proxy or https_proxy, its name "
            "must resolve, and no_proxy must name what must not use it, such as .svc,.cluster.local."
        )


def _name_aliases(spec: Object) -> Iterator[str]:
    """Yield which names have a fixed address in the pod."""
    found = []
    for entry in items_of(spec, "hostAliases"):
        names = entry.get("hostnames")
        found += [f"{name} is {entry.get('ip')}" for name in (names if isinstance(names, list) else ())]
    if found:
        yield (
            f"Its pods have hostAliases ({', '.join(found[:_SHOWN])}), which take precedence over DNS. If such an "
            "address is old, change hostAliases in the values."
        )
