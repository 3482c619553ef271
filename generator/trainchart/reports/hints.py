"""Fills the names that are known into the advice of causes, and assigns notes to the problems that they are about.

Pure; text.py and why.py print both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trainchart.reports.quotas import is_count_of_pods
from trainchart.reports.report import Report, ReportedProblem
from trainchart_runtime.causes import DISK_FULL
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER
from trainchart_runtime.contract import NO_INODES
from trainchart_runtime.pod_causes import CLAIM_MISSING, NO_NODE_MATCHES, QUOTA_EXCEEDED, UNSCHEDULABLE
from trainchart_runtime.run.state import Verdict

_JOB = "Job "
"""What the subject of a problem of the run controller begins with, before the name of its Job."""
_ROLES = (CHIEF, WORKER, PS, EVALUATOR)
_INODES = (
    "Delete small files, or pack them into a few large ones (TFRecord), or make the file system with more inodes; df "
    "-i shows them."
)
_SPACE = "Free space there, enlarge it, or write less, such as fewer checkpoints."
"""Where a lead names the volume."""
_DELETE_FINISHED = "Delete finished pods and Jobs of the namespace, or have the quota raised: kubectl describe quota."
HELD_BY = "of the nodes is held by"
"""In a note that names who has what a pod waits for."""
_FREE_SOME = (
    "Free some of the resources that others hold (stop a release with trainchart stop; ask the owners of other pods), "
    "request less, or add nodes."
)
_OPEN_NODES = (
    "Have an administrator make one of the named nodes available again, or change what limits the pods to these "
    "nodes: nodeSelector, affinity, tolerations, or the claims that the pods mount."
)
_CLOSED = (" can run only on ", " cannot run on any node now: ")
"""In notes about pods whose only nodes are cordoned, tainted or not ready."""
_EXISTING_CLAIM = (
    "The chart does not create the claim {claim}: it was deleted, or existingClaim or extraVolumes names the wrong "
    "one. If the name is wrong, correct it. If the claim was deleted, check kubectl get pv before you create it again. "
    "If its volume still exists (Released), have an administrator make that volume available, and create the claim "
    "with its name in volumeName. Otherwise, create the claim in the release's namespace; it starts empty."
)
_NAME_COMPARED = 20
"""Characters: a chart cuts long names, and puts a checksum behind them."""
_NO_CLAIM = re.compile(r'persistentvolumeclaims? "([a-z0-9][a-z0-9.-]*)" not found')
_CONTAINER = re.compile(r"\bcontainer ([a-z0-9][a-z0-9-]*) ended with")
_CLAIM = re.compile(r"\bclaim ([a-z0-9][a-z0-9.-]*):")


def start_again(address: str) -> str:
    """Return the commands for a run that goes on: rerun refuses one that is not over."""
    return f"trainchart stop {address}, then trainchart rerun {address}"


def fill_in(
    hint: str, address: str, subject: str = "", node: str = "", *, others: Sequence[str] = (), message: str = ""
) -> str:
    """Return a hint with the release in the commands of helm that it names, and with all other names that are known.

    `subject` is a pod, or "Job NAME" for the run controller's; `others` have the same problem, of which `message` says
    which container or claim it is about.
    """
    subjects = [each for each in (subject, *others) if each]
    hint = _fill_roles(_fill_owners(hint, subjects), subjects)
    hint = _fill_pod(hint, next((each for each in subjects if not each.startswith(_JOB)), subject))
    for word, found in (("CONTAINER", _CONTAINER.search(message)), ("CLAIM", _CLAIM.search(message))):
        hint = re.sub(rf"\b{word}\b", found[1], hint) if found else hint
    hint = re.sub(r"\bNODE\b", lambda _: node, hint) if node else hint
    release, _, place = address.partition(" ")
    hint = hint.replace("kubectl get events ", f"kubectl get events {place} ") if place else hint
    words = re.compile(r"(helm [a-z ]+) RELEASE( REVISION)?")
    return words.sub(lambda found: f"{found[1]} {release}{found[2] or ''} {place}", hint)


def choose_space_hint(report: Report, outcome: Verdict) -> str:
    """Return what to do where no space is left, as far as it is known where and of what; "" for other causes."""
    if outcome.cause != DISK_FULL.name:
        return ""
    if f"({NO_INODES}" in outcome.error:  # and nothing else is full
        return _INODES
    return _SPACE if report.leads else ""


def choose_problem_hint(problems: Sequence[ReportedProblem], notes: Sequence[str]) -> str:
    """Return what to do about problems of one cause, less what the notes about them have said."""
    if problems[0].cause == QUOTA_EXCEEDED.name and all(is_count_of_pods(each.message) for each in problems):
        return _DELETE_FINISHED
    if problems[0].cause == UNSCHEDULABLE.name and any(f" {HELD_BY} " in note for note in notes):
        return _FREE_SOME
    if problems[0].cause == NO_NODE_MATCHES.name and any(words in note for words in _CLOSED for note in notes):
        return _OPEN_NODES
    if problems[0].cause == CLAIM_MISSING.name:
        return _choose_claim_hint(problems[0])
    return problems[0].hint


def _choose_claim_hint(problem: ReportedProblem) -> str:
    """Return what to do about a claim that is gone: those of charts are named after the release, as pods are."""
    found = _NO_CLAIM.search(problem.message)
    begin = problem.subject.rsplit("-", 2)[0][:_NAME_COMPARED]
    if found is None or problem.subject.startswith(_JOB):
        return problem.hint
    if found[1].startswith(begin):
        return problem.hint.partition(" If existingClaim")[0]
    return _EXISTING_CLAIM.format(claim=found[1])


def _fill_pod(hint: str, subject: str) -> str:
    """Return a hint about a pod; the pod of a Job is found by the Job's name."""
    if not subject.startswith(_JOB):
        return re.sub(r"\bPOD\b", lambda _: subject, hint) if subject else hint
    job = subject.removeprefix(_JOB)
    hint = re.sub(r"\bkubectl (exec|logs) POD\b", lambda found: f"kubectl {found[1]} job/{job}", hint)
    return re.sub(r"\bPOD\b", lambda _: f"-l job-name={job}", hint)


def _fill_owners(hint: str, subjects: Sequence[str]) -> str:
    """Return a hint about what makes pods with the StatefulSets and Jobs that do."""
    jobs = [f"job/{each.removeprefix(_JOB)}" for each in subjects if each.startswith(_JOB)]
    sets = [f"statefulset/{each.rpartition('-')[0]}" for each in subjects if _find_role(each)]
    owners = list(dict.fromkeys((*sets, *jobs)))
    if not owners:
        return hint
    hint = hint.replace("statefulset NAME", " ".join(owners))
    return hint if sets else hint.replace("the StatefulSet may", "the Job may")


def _fill_roles(hint: str, subjects: Sequence[str]) -> str:
    roles = set(map(_find_role, subjects))
    role = roles.pop() if len(roles) == 1 else ""
    return hint.replace("roles.ROLE", f"roles.{role}") if role else hint


def _find_role(subject: str) -> str:
    """Return the role of a pod, by its name or its label; "" for other subjects."""
    role = subject.rpartition("-")[0].rpartition("-")[2]
    return role if role in _ROLES and not subject.startswith(_JOB) else ""


def find_notes(problems: Sequence[ReportedProblem], cause: str, notes: Sequence[str]) -> list[str]:
    """Return the notes about the pods that have a problem of this cause; all of them where it is the only cause."""
    if all(problem.cause == cause for problem in problems):
        return list(notes)
    names = {problem.subject for problem in problems if problem.cause == cause}
    others = {problem.subject for problem in problems} - names
    return [note for note in notes if _names_any(note, names) and not _names_any(note, others)]


def _names_any(note: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", note) for name in names)


def leave_notes(problems: Sequence[ReportedProblem], notes: Sequence[str]) -> list[str]:
    """Return the notes that problem_lines does not have."""
    causes = dict.fromkeys(problem.cause for problem in problems)
    taken = [note for cause in causes for note in find_notes(problems, cause, notes)]
    return [note for note in notes if note not in taken]
