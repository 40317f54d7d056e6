"""Jobs become Pods that come to an end."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from reactive_descheduler.sandbox.client import ApiRefused
from reactive_descheduler.sandbox.controller import Controller
from reactive_descheduler.sandbox.documents import (
    JsonObject,
    condition,
    integer,
    is_ready,
    is_terminating,
    lookup,
    name_of,
    namespace_of,
    seconds_of,
    text,
    timestamp,
    uid_of,
)
from reactive_descheduler.sandbox.mirror import Mirrors, key_of
from reactive_descheduler.sandbox.workloads.common import (
    active,
    delete_pod,
    is_finished,
    owner_key,
    owner_uid,
    patch_status,
    pod_of,
    with_conditions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactive_descheduler.sandbox.client import ApiClient
    from reactive_descheduler.sandbox.mirror import ObjectKey


class JobController(Controller):
    """Runs Pods until enough have succeeded or too many have failed; a deleted one has failed."""

    def __init__(self, client: ApiClient, mirrors: Mirrors, *, now: Callable[[], float]) -> None:
        super().__init__(client)
        self._now = now
        self._jobs = mirrors.jobs
        self._pods = mirrors.pods
        self._owned = mirrors.pods.index(owner_uid)
        # How each Pod ended, by Job: Pods may be deleted after their end.
        self._ended: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.follow(mirrors.jobs, lambda job: [key_of(job)])
        self.follow(mirrors.pods, lambda pod: owner_key(pod, "Job"))
        mirrors.pods.listeners.append(self._on_pod)

    async def reconcile(self, key: ObjectKey) -> None:
        job = self._jobs.objects.get(key)
        if job is None or is_terminating(job):
            return
        if _is_over(job):
            await self._expire(job)
            return
        present = active(self._owned.get(uid_of(job)).values())
        ended = Counter(self._ended[uid_of(job)].values())
        verdict = self._judge(job, ended)
        runs = verdict is None and lookup(job, "spec", "suspend") is not True
        left = integer(job, "spec", "completions", default=1) - ended["Succeeded"]
        wanted = min(integer(job, "spec", "parallelism", default=1), left) if runs else 0
        for _ in range(wanted - len(present)):
            await self._pods.caught_up(await self.client.create(pod_of(job)))
        for pod in present[wanted:]:
            await delete_pod(self.client, self._pods, pod)
        await self._report(job, ended, verdict)

    def _judge(self, job: JsonObject, ended: Counter[str]) -> JsonObject | None:
        """The condition that ends the Job, or None."""
        if ended["Succeeded"] >= integer(job, "spec", "completions", default=1):
            return {"type": "Complete", "status": "True", "reason": "CompletionsReached"}
        if ended["Failed"] > integer(job, "spec", "backoffLimit", default=6):
            return {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        deadline = integer(job, "spec", "activeDeadlineSeconds")
        if not deadline:
            return None
        since = seconds_of(text(job, "status", "startTime")) or self._now()
        left = since + deadline - self._now()
        if left > 0:
            self.add_later(key_of(job), left)
            return None
        return {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}

    async def _report(
        self, job: JsonObject, ended: Counter[str], verdict: JsonObject | None
    ) -> None:
        present = active(self._owned.get(uid_of(job)).values())
        now = timestamp(self._now())
        status: JsonObject = {
            "active": len(present),
            "ready": sum(map(is_ready, present)),
            "succeeded": ended["Succeeded"],
            "failed": ended["Failed"],
            "startTime": text(job, "status", "startTime") or now,
        }
        if verdict is not None:
            status["conditions"] = with_conditions(job, [verdict], self._now())
            if verdict["type"] == "Complete":
                status["completionTime"] = now
        await patch_status(self.client, "jobs", job, status)

    async def _expire(self, job: JsonObject) -> None:
        """Delete a Job that is over, once its time to live has passed."""
        lives = lookup(job, "spec", "ttlSecondsAfterFinished")
        if not isinstance(lives, int):
            return
        over = condition(job, "Complete") or condition(job, "Failed")
        left = seconds_of(text(over, "lastTransitionTime")) + lives - self._now()
        if left > 0:
            self.add_later(key_of(job), left)
            return
        try:
            await self.client.delete("jobs", name_of(job), namespace=namespace_of(job))
        except ApiRefused as error:
            if error.code != 404:
                raise

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        pod = new or old
        if pod is None or not owner_key(pod, "Job"):
            return
        ended = self._ended[owner_uid(pod)]
        if is_finished(pod):
            ended[uid_of(pod)] = text(pod, "status", "phase")
        elif new is None or is_terminating(pod):
            ended.setdefault(uid_of(pod), "Failed")


def _is_over(job: JsonObject) -> bool:
    return any(condition(job, kind).get("status") == "True" for kind in ("Complete", "Failed"))
