"""Installs and uninstalls releases with the helm program, by the command that a user is shown."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from trainchart.helm.io.upgrade import environment_of, run_on_cluster

_END = "VALUES"


@dataclass(frozen=True)
class HelmInstall:
    """One `helm install`."""

    release: str
    namespace: str
    context: str
    chart: tuple[str, ...]
    """The chart, and the options that say where it comes from."""
    values: str = ""
    """What is laid over the chart's values, as YAML; empty for nothing."""
    kubeconfig: str = ""
    """As of `environment_of`."""

    @property
    def argv(self) -> list[str]:
        """The arguments of helm, which reads the values from its standard input."""
        argv = ["install", self.release, *self.chart, "--namespace", self.namespace, *_name_context(self.context)]
        return [*argv, "--values", "-"] if self.values else argv

    @property
    def command(self) -> str:
        """The command for a shell, its values included."""
        command = f"helm {shlex.join(self.argv)}"
        if not self.values:
            return command
        end = _END
        while end in self.values:
            end += "_"
        return f"{command} <<'{end}'\n{self.values}{end}"


def run_install(install: HelmInstall) -> str:
    """Install a release, and return what helm prints.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    return run_on_cluster(install.argv, environment_of(install.kubeconfig), given=install.values)


def uninstall_argv(release: str, namespace: str, context: str) -> list[str]:
    """Return the arguments of helm that uninstall a release."""
    return ["uninstall", release, "--namespace", namespace, *_name_context(context)]


def run_uninstall(release: str, namespace: str, context: str, kubeconfig: str = "") -> str:
    """Uninstall a release, and return what helm prints.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    return run_on_cluster(uninstall_argv(release, namespace, context), environment_of(kubeconfig))


def _name_context(context: str) -> list[str]:
    return ["--kube-context", context] if context else []
