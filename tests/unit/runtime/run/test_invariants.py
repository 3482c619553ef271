"""A small world of sets and pods in which anything may happen, in any order: what must hold all the same.

Controllers die between recording and scaling, look late, look twice, and see pods that end, vanish, come back, or hang
on a lost node; people suspend, resume, stop, upgrade and rerun; and clocks are set back.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trainchart_runtime import causes
from trainchart_runtime.cluster import MULTI_WORKER_MIRRORED, PARAMETER_SERVER, Cluster, Role, Task
from trainchart_runtime.pod_problems import Problem
from trainchart_runtime.run.observation import LOST_SECONDS, ContainerEnd, Observation, PodView, SetView
from trainchart_runtime.run.plan import CHANGE_POLICIES, DESIRED_STATES, RunPlan
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import FAILED, FINISHING, STATE_LOST, SUCCEEDED, SUSPENDED, dump_state, parse_state
from trainchart_runtime.termination import Termination

GROUPS = [
    (PARAMETER_SERVER, {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}),
    (PARAMETER_SERVER, {"chief": 1, "worker": 1, "ps": 2}),
    (MULTI_WORKER_MIRRORED, {"worker": 3}),
]
ENDS = [causes.SUCCEEDED, causes.PROGRAM_ERROR, causes.PEER_LOST, causes.TERMINATED, None]
MAX_RESTARTS = 2


class Release(RuleBasedStateMachine):
    """Kubernetes, as far as the rules can tell, and the record that controllers leave in it."""

    @initialize(group=st.sampled_from(GROUPS))
    def install(self, group):
        strategy, replicas = group
        self.roles = {role: Role(f"exp1-{role}", number) for role, number in replicas.items()}
        cluster = Cluster(strategy, "exp1", 2222, 2223, self.roles)
        self.plan = RunPlan("run-1", cluster, MAX_RESTARTS, 100.0, 50.0)
        self.sets = {role.name: 1 for role in self.roles.values()}
        self.revision = 1
        self.made = 0
        self.pods = {}
        self.departed = []
        self.record = ""
        self.now = 1e6
        self.verdict = None
        self.exit_code = None
        self.create_pods()

    def create_pods(self):
        for task_type, role in self.roles.items():
            for ordinal in range(self.sets[role.name]):
                name = f"{role.name}-{ordinal}"
                if name not in self.pods:
                    self.made += 1
                    view = PodView(
                        name, Task(task_type, ordinal), uid=str(self.made), run_id=self.plan.run_id, node="node-1"
                    )
                    self.pods[name] = view._replace(revision=f"{role.name}-{self.revision}")

    def remove_pods(self):
        """End the pods that should not be; those of a lost node stay, and are marked."""
        wanted = {f"{name}-{ordinal}" for name, number in self.sets.items() for ordinal in range(number)}
        lost = {name: pod for name, pod in self.pods.items() if pod.node == "lost"}
        marked = {name: pod if pod.is_deleting else pod._replace(gone_by=self.now + 5) for name, pod in lost.items()}
        self.pods = {name: pod for name, pod in self.pods.items() if name in wanted and not pod.is_deleting}
        self.pods.update(lost if wanted.issuperset(lost) else marked)

    def look(self):
        sets = {name: SetView(number, f"{name}-{self.revision}") for name, number in self.sets.items()}
        return Observation(self.now, tuple(self.pods.values()), sets, departed=tuple(self.departed))

    @rule()
    def reconcile(self):
        self.create_pods()
        self.remove_pods()

    @rule(seconds=st.sampled_from([0.1, 5.0, 60.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def set_the_clock_back(self):
        self.now -= 1000.0

    @rule()
    @precondition(lambda self: self.record)
    def begin_another_run(self):
        number = int(self.plan.run_id.partition("-")[2])
        self.plan = self.plan._replace(run_id=f"run-{number + 1}", desired_state="running")
        self.upgrade_the_pods()

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def start_a_container(self, data):
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if not pod.is_running:
            restarted = pod._replace(is_running=True, is_backing_off=False, is_held=False, restarts=pod.deaths)
            self.pods[pod.name] = restarted

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def let_a_container_wait(self, data):
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if pod.ends and not pod.is_running:
            self.pods[pod.name] = pod._replace(is_backing_off=True, is_held=False)

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def hold_a_container(self, data):
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if not pod.is_running:
            self.pods[pod.name] = pod._replace(is_backing_off=False, is_held=True)

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def lose_a_node(self, data):
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if not pod.is_deleting:
            lost = pod._replace(node="lost", gone_by=self.now + 5, problem=Problem("node-lost", "taint"))
            self.pods[pod.name] = lost

    @rule()
    def find_the_node_again(self):
        self.pods = {name: pod for name, pod in self.pods.items() if pod.node != "lost"}

    @rule(desired=st.sampled_from(DESIRED_STATES), policy=st.sampled_from(CHANGE_POLICIES), force=st.booleans())
    def change_the_values(self, desired, policy, force):
        self.plan = self.plan._replace(desired_state=desired, on_change=policy, force_delete_lost=force)

    @rule()
    def upgrade_the_pods(self):
        self.revision += 1

    @rule(data=st.data(), cause=st.sampled_from(ENDS))
    @precondition(lambda self: any(pod.is_running for pod in self.pods.values()))
    def end_a_container(self, data, cause):
        running = sorted(name for name, pod in self.pods.items() if pod.is_running)
        pod = self.pods[data.draw(st.sampled_from(running))]
        if pod.node == "lost":
            return
        code = 0 if cause is causes.SUCCEEDED else 1
        words = cause and Termination(cause.name, code, *pod.task, run_id=pod.run_id, finished_at=self.now)
        ends = (ContainerEnd(code if cause else 137, termination=words, finished_at=self.now), *pod.ends)[:2]
        self.pods[pod.name] = pod._replace(is_running=False, ends=ends)

    @rule(data=st.data())
    @precondition(lambda self: self.pods)
    def lose_a_pod(self, data):
        self.departed.append(self.pods.pop(data.draw(st.sampled_from(sorted(self.pods)))))

    @rule(data=st.data())
    def upgrade_raises_a_set(self, data):
        # Replacing objects (helm upgrade --force) brings the default of 1 back. Never all before a record exists.
        self.sets[data.draw(st.sampled_from(sorted(self.sets)))] = 1

    @rule(dies_after=st.sampled_from(["recording", "one scale", "all"]))
    def control(self, dies_after="all"):
        recorded = parse_state(self.record) if self.record else None
        decision = decide(self.plan, self.look(), recorded)
        self.check(recorded, decision)
        if not decision.is_recorded:
            self.record = dump_state(decision.state)
            assert parse_state(self.record) == decision.state
        self.departed.clear()
        for scale in decision.scales[: {"recording": 0, "one scale": 1, "all": None}[dies_after]]:
            self.sets[scale.set_name] = scale.replicas
        for deletion in decision.deletions:
            pod = self.pods[deletion.pod_name]
            assert (pod.uid, deletion.is_forced) == (deletion.uid, pod.node == "lost")
            del self.pods[deletion.pod_name]
        self.exit_code = decision.exit_code
        self.verdict = decision.state.verdict

    def check(self, recorded, decision):
        state = decision.state
        assert state.phase != STATE_LOST
        is_same_run = recorded is not None and recorded.run_id == self.plan.run_id
        if recorded and recorded.verdict and is_same_run:
            assert state.verdict == recorded.verdict, "a verdict never changes"
        if state.verdict:
            assert all(scale.replicas == 0 for scale in decision.scales), "nothing is started after a verdict"
        if decision.scales or decision.deletions:
            assert not decision.is_recorded, "nothing is done without a record"
        if self.plan.desired_state == "suspended":
            assert state.verdict or state.phase in (SUSPENDED, FINISHING)
        if any(scale.replicas for scale in decision.scales) and is_same_run and state.attempt > recorded.attempt:
            assert not self.pods, "an attempt starts when nothing is left of the one before"
        if any(scale.replicas for scale in decision.scales):
            runs = {pod.run_id for pod in self.pods.values()}
            assert runs <= {self.plan.run_id}, "a run starts when nothing is left of the one before"
        if not self.plan.force_delete_lost:
            assert not any(deletion.is_forced for deletion in decision.deletions)
        if decision.exit_code is not None:
            left = [pod for pod in self.pods.values() if not pod.is_lost(self.now)]
            assert not left and not any(self.sets.values()), "nothing is left behind"
            assert (decision.exit_code == 0) == (state.verdict.result == SUCCEEDED)
        if state.verdict and state.verdict.result == FAILED and not (is_same_run and recorded.verdict):
            assert state.verdict.cause and state.verdict.pod

    @invariant()
    def a_success_that_was_recorded_is_not_forgotten(self):
        state = parse_state(self.record) if getattr(self, "record", "") else None
        if state and state.verdict is None:
            assert (state.pending_verdict is not None) == (state.phase == "Finishing")

    def teardown(self):
        """Left in peace, a run that has a verdict ends and holds nothing; the same look twice says nothing new."""
        if not hasattr(self, "plan"):
            return
        # When pods must be gone is said by another clock, which nobody sets back.
        self.now = max([self.now, *(pod.gone_by for pod in self.pods.values())])
        for _ in range(12):
            self.control()
            self.reconcile()
            self.now += LOST_SECONDS + 6
        self.control()
        state = parse_state(self.record)
        again = decide(self.plan, self.look(), state)
        assert again.is_recorded and not again.scales and not again.deletions and not again.notices
        if self.verdict is not None:
            assert self.exit_code == (0 if self.verdict.result == SUCCEEDED else 42)
        elif state.phase == SUSPENDED:
            assert all(pod.is_deleting for pod in self.pods.values()) and not any(self.sets.values())
        elif state.phase != FINISHING:
            assert all(deaths.total <= MAX_RESTARTS for deaths in state.deaths.values()), "restarted past the budget"


TestRelease = Release.TestCase
TestRelease.settings = settings(max_examples=150, stateful_step_count=30)
