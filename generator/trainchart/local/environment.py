"""Works out the environment variables of a training container as the kubelet would.

Pure; what an image would bring is taken from the caller's environment, by the short list INHERITED.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.local.notices import Notices
from trainchart.local.objects import PodIdentity, RenderedData, read_pod_field
from trainchart.variables import expand_variables, find_references

INHERITED = (
    "PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "*_proxy", "*_PROXY", "CUDA_VISIBLE_DEVICES", "TF_FORCE_GPU_ALLOW_GROWTH",
)  # fmt: skip
"""Variables (shell patterns) of the caller that stand for what image and node provide. No others pass."""


@dataclass(frozen=True)
class ContainerEnvironment:
    """Variables with container paths still in them, and the names of those that hold something from a Secret."""

    values: Mapping[str, str]
    secrets: frozenset[str]


def inherit_variables(caller: Mapping[str, str], python_folder: str) -> dict[str, str]:
    """Return what an image would provide: the INHERITED variables, with the chosen Python first on PATH."""
    image = {
        name: value
        for name, value in caller.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in INHERITED)
    }
    image["PATH"] = ":".join(part for part in (python_folder, image.get("PATH", "")) if part)
    # Images of programs that log set this; without it a crash loses the lines still in the buffer.
    image["PYTHONUNBUFFERED"] = "1"
    return image


def resolve_environment(
    container: Mapping[str, Any],
    pod: PodIdentity,
    data: RenderedData,
    caller: Mapping[str, str],
    notices: Notices,
) -> ContainerEnvironment:
    """Return the container's variables: envFrom first, then env in order, each seeing those before it."""
    reader = _SourceReader(pod, data, caller, notices)
    values: dict[str, str] = {}
    secrets: set[str] = set()
    for entry in container.get("envFrom") or []:
        found = reader.read_all(entry)
        values.update(found)
        secrets.update(found if "secretRef" in entry else ())
    for entry in container.get("env") or []:
        name = str(entry["name"])
        if entry.get("valueFrom") is None:
            text = str(entry.get("value") or "")
            holds_secret = any(reference.name in secrets for reference in find_references(text))
            (secrets.add if holds_secret else secrets.discard)(name)
            values[name] = expand_variables(text, values)
            continue
        value = reader.read_one(name, entry["valueFrom"])
        (secrets.add if "secretKeyRef" in entry["valueFrom"] else secrets.discard)(name)
        if value is not None:
            values[name] = value
    return ContainerEnvironment(values, frozenset(secrets))


@dataclass(frozen=True)
class _SourceReader:
    pod: PodIdentity
    data: RenderedData
    caller: Mapping[str, str]
    notices: Notices

    def read_all(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return all variables of one envFrom entry."""
        kind, reference, tables = (
            ("Secret", entry["secretRef"], self.data.secrets)
            if "secretRef" in entry
            else ("ConfigMap", entry.get("configMapRef") or {}, self.data.config_maps)
        )
        name = str(reference.get("name", ""))
        if name not in tables:
            if not reference.get("optional"):
                self.notices.refuse(
                    f"envFrom of {self.pod.role} needs the {kind} {name!r}, which is not part of the chart",
                    hint="a local run has only what the chart renders: mark it optional, or use `env`",
                )
            return {}
        prefix = str(entry.get("prefix") or "")
        return {prefix + key: value.decode(errors="replace") for key, value in tables[name].items()}

    def read_one(self, name: str, source: Mapping[str, Any]) -> str | None:
        """Return the value of one valueFrom, or None when the variable stays unset."""
        if "fieldRef" in source:
            path = str(source["fieldRef"].get("fieldPath", ""))
            value = read_pod_field(path, self.pod)
            if value is None:
                self.notices.warn(f"{self.pod.role}: {name} stays unset: {path} is known only in a cluster")
            return value
        if "configMapKeyRef" in source:
            return self._read_key(name, source["configMapKeyRef"], "ConfigMap", self.data.config_maps)
        if "secretKeyRef" in source:
            if name in self.caller and str(source["secretKeyRef"].get("name")) not in self.data.secrets:
                return self.caller[name]
            return self._read_key(name, source["secretKeyRef"], "Secret", self.data.secrets)
        self.notices.warn(f"{self.pod.role}: {name} stays unset: {', '.join(source)} is known only in a cluster")
        return None

    def _read_key(
        self,
        variable: str,
        reference: Mapping[str, Any],
        kind: str,
        tables: Mapping[str, Mapping[str, bytes]],
    ) -> str | None:
        name, key = str(reference.get("name", "")), str(reference.get("key", ""))
        content = tables.get(name, {}).get(key)
        if content is None and not reference.get("optional"):
            self.notices.refuse(
                f"{variable} of {self.pod.role} comes from key {key!r} of the {kind} {name!r}, "
                "which the chart does not render",
                hint=f"set it for this run: `export {variable}=...`"
                if kind == "Secret"
                else "a local run has only what the chart renders",
            )
        return None if content is None else content.decode(errors="replace")
