"""Lane: one request in flight for each disruption budget, and none that the budget cannot grant.

Parallel requests under one budget conflict on its status and cost the API server half a second
each; under different budgets they gain from going side by side. After a grant a local debit stays
until the budget's own watch shows it, so that a stale `disruptionsAllowed` is never spent twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from reactive_descheduler.api.changes import Action, At, Change, ClusterEvent, On
from reactive_descheduler.api.eviction import Answer, Candidate, EvictionOutcome, Held, Rejection
from reactive_descheduler.api.meta import KubeObject, Ref
from reactive_descheduler.api.pod import Pod
from reactive_descheduler.api.surroundings import PodDisruptionBudget
from reactive_descheduler.framework.gate import OpenGate, blocked

DEBIT_FOR = timedelta(seconds=10)
BACKSTOP = timedelta(seconds=60)
UNOBSERVED_WAIT = timedelta(seconds=10)


class LaneGate(OpenGate):
    """`budgets_of`: the budgets that select a Pod. `is_stale`: whether the stream of budgets is.
    `pod_now`: the Pod of a UID as it is now, since a candidate may have waited for long.

    On a stale stream the numbers are worth nothing: the server is asked, one request at a time.
    """

    NAME: ClassVar[str] = "lane"
    REJECTS: ClassVar[bool] = True

    def __init__(
        self,
        *,
        budgets_of: Callable[[Pod], Sequence[PodDisruptionBudget]],
        is_stale: Callable[[], bool],
        pod_now: Callable[[str], Pod | None],
    ) -> None:
        self._budgets_of = budgets_of
        self._is_stale = is_stale
        self._pod_now = pod_now
        self._in_flight: dict[Ref, str] = {}
        self._lane_of: dict[str, Ref] = {}
        self._unknown: set[str] = set()
        self._debits: dict[Ref, dict[str, tuple[str, datetime]]] = {}
        self._refused: dict[Ref, tuple[str, datetime]] = {}

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def check(self, candidate: Candidate, now: datetime, /) -> Held | Rejection | None:
        pod = self._now(candidate)
        budgets = self._budgets_of(pod)
        if len(budgets) > 1:
            names = ", ".join(sorted(budget.name for budget in budgets))
            return Rejection(
                self.NAME,
                f"more than one PodDisruptionBudget selects it ({names}), which the API server"
                " refuses for ever",
                (On(Action.BUDGET_SELECTION, ("Namespace", "", pod.namespace)),),
                pod.ref,
            )
        if not budgets or passes_without_budget(pod, budgets[0]):
            return self._check_refused(candidate, pod, now)
        return self._check_budget(budgets[0], candidate, pod, now)

    def _check_refused(
        self, candidate: Candidate, pod: Pod, now: datetime
    ) -> Held | Rejection | None:
        """Hold a Pod that the server refused over a budget which we do not know, or see
        otherwise."""
        refused = self._refused.get(pod.ref)
        if refused is None or now >= refused[1]:
            return None
        selection = On(Action.BUDGET_SELECTION, ("Namespace", "", pod.namespace))
        return blocked(self.NAME, refused[0], (selection, At(refused[1])), candidate)

    def _check_budget(
        self, budget: PodDisruptionBudget, candidate: Candidate, pod: Pod, now: datetime
    ) -> Held | Rejection | None:
        ref = budget.ref
        opens = Action.BUDGET_ROSE | Action.BUDGET_SELECTION | Action.LANE_FREE
        if not pod.ready:
            opens |= Action.BUDGET_STATUS  # a healthy budget lets unready Pods pass
        wakes = (On(opens, ref), On(Action.POD_READY | Action.POD_PHASE, pod.ref))
        if ref in self._in_flight:
            return Held(self.NAME, f"a request under budget {budget.name} is in flight", wakes)
        told = (On(Action.BUDGET_STATUS | opens, ref), wakes[1])
        refused = self._refused.get(ref)
        if refused is not None and now < refused[1]:
            return blocked(self.NAME, refused[0], (*told, At(refused[1])), candidate)
        if self._is_stale():
            return None
        if budget.observed_generation < budget.generation:
            reason = f"budget {budget.name} was not processed yet by the disruption controller"
            return Held(self.NAME, reason, (*told, At(now + UNOBSERVED_WAIT)))
        debits = self._debits_until(ref, now)
        if budget.disruptions_allowed > len(debits):
            return None
        reason = (
            f"budget {budget.name} is used up: {budget.current_healthy} healthy, "
            f"{budget.desired_healthy} needed"
        )
        if debits:  # soon the budget shows what is left
            return Held(self.NAME, reason, (*wakes, At(min([*debits, now + BACKSTOP]))))
        return blocked(self.NAME, reason, (*wakes, At(now + BACKSTOP)), candidate)

    def take(self, candidate: Candidate, now: datetime, /) -> None:
        pod = self._now(candidate)
        budgets = self._budgets_of(pod)
        if len(budgets) == 1 and not passes_without_budget(pod, budgets[0]):
            self._in_flight[budgets[0].ref] = pod.uid
            self._lane_of[pod.uid] = budgets[0].ref

    def give_back(self, candidate: Candidate, now: datetime, /) -> None:
        self._free(candidate.pod.uid)

    def on_outcome(self, outcome: EvictionOutcome, now: datetime, /) -> Iterable[ClusterEvent]:
        pod = outcome.candidate.pod
        ref = self._lane_of.get(pod.uid)
        if ref is None:
            self._refuse(pod.ref, outcome, now, usual=UNOBSERVED_WAIT)
            return ()
        if outcome.answer is Answer.UNKNOWN:
            # It may have been granted: the lane stays taken until the watch or a look-up tells.
            self._unknown.add(pod.uid)
            return ()
        self._free(pod.uid)
        if outcome.answer is Answer.EVICTED:
            self._debit(ref, pod, now)
        self._refuse(ref, outcome, now, usual=BACKSTOP)
        return (ClusterEvent(Action.LANE_FREE, ref),)

    def _refuse(
        self, ref: Ref, outcome: EvictionOutcome, now: datetime, *, usual: timedelta
    ) -> None:
        """Remember what the server said of a budget: of its own ref, or of a Pod's without one."""
        wait = {Answer.BUDGET: usual, Answer.BUDGET_UNOBSERVED: UNOBSERVED_WAIT}.get(outcome.answer)
        if wait is None:
            self._refused.pop(ref, None)
            return
        if outcome.retry_after is not None:
            wait = timedelta(seconds=outcome.retry_after)
        self._refused[ref] = (outcome.message, now + wait)

    def _debit(self, ref: Ref, pod: Pod, now: datetime) -> None:
        """Take note of a grant that the budget does not show yet, unless nothing is left to
        show."""
        budgets = self._budgets_of(pod)
        shown = any(pod.name in b.disrupted_pods for b in budgets if b.ref == ref)
        if not shown and self._pod_now(pod.uid) is not None:
            self._debits.setdefault(ref, {})[pod.uid] = (pod.name, now + DEBIT_FOR)

    def on_jump(self, by: timedelta, /) -> None:
        self._refused = {ref: (why, until + by) for ref, (why, until) in self._refused.items()}
        for debits in self._debits.values():
            for uid, (name, until) in debits.items():
                debits[uid] = (name, until + by)

    def on_change(self, change: Change, now: datetime, /) -> Iterable[ClusterEvent]:
        if change.kind == "PodDisruptionBudget":
            return self._on_budget(change)
        if isinstance(change.old, Pod):
            return self._on_pod(change.old, change.new, now)
        return ()

    def _on_budget(self, change: Change) -> Iterable[ClusterEvent]:
        ref = change.ref
        # Whatever the server refused was said of an older status.
        self._refused.pop(ref, None)
        debits = self._debits.get(ref)
        if not debits:
            return ()
        if not isinstance(change.new, PodDisruptionBudget):
            del self._debits[ref]
            return ()
        shown = [uid for uid, (name, _) in debits.items() if name in change.new.disrupted_pods]
        return self._lift(ref, shown)

    def _on_pod(self, old: Pod, new: KubeObject | None, now: datetime) -> Iterable[ClusterEvent]:
        going = not isinstance(new, Pod) or new.deleted is not None
        events: list[ClusterEvent] = []
        if going and old.uid in self._unknown:
            # A request whose answer was lost: the watch has told what it came to.
            ref = self._lane_of[old.uid]
            events.extend(self.resolved(old.uid))
            self._debit(ref, old, now)
        if not isinstance(new, Pod):
            self._refused.pop(old.ref, None)
            for ref, debits in tuple(self._debits.items()):
                if old.uid in debits:
                    events.extend(self._lift(ref, [old.uid]))
        return events

    def _free(self, uid: str) -> None:
        self._unknown.discard(uid)
        ref = self._lane_of.pop(uid, None)
        if ref is not None and self._in_flight.get(ref) == uid:
            del self._in_flight[ref]

    def resolved(self, uid: str) -> Iterable[ClusterEvent]:
        """Free the lane of an unknown outcome that a look-up has settled."""
        ref = self._lane_of.get(uid)
        if ref is None or uid not in self._unknown:
            return ()
        self._free(uid)
        return (ClusterEvent(Action.LANE_FREE, ref),)

    def _debits_until(self, ref: Ref, now: datetime) -> list[datetime]:
        """Return when each debit that counts now ends by itself."""
        return [until for _, until in self._debits.get(ref, {}).values() if until > now]

    def _now(self, candidate: Candidate) -> Pod:
        """Return the Pod as it is now: whether its budget is asked hangs on its state."""
        return self._pod_now(candidate.pod.uid) or candidate.pod

    def _lift(self, ref: Ref, uids: Iterable[str]) -> Iterable[ClusterEvent]:
        debits = self._debits.get(ref, {})
        found = [uid for uid in uids if debits.pop(uid, None) is not None]
        if not debits:
            self._debits.pop(ref, None)
        return (ClusterEvent(Action.LANE_FREE, ref),) if found else ()


def passes_without_budget(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Say whether the API server evicts the Pod without asking its budget (policy/v1, KEP 3017)."""
    if pod.phase in ("Pending", "Succeeded", "Failed") or pod.deleted is not None:
        return True
    if pod.ready:
        return False
    if budget.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.desired_healthy > 0 and budget.current_healthy >= budget.desired_healthy
