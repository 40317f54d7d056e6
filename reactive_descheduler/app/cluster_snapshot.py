"""A snapshot read from an API server: one list of each needed kind."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing

from reactive_descheduler.api.decoding import Decoder
from reactive_descheduler.api.errors import ApiStatusError, ClientError
from reactive_descheduler.app.measuring import questions
from reactive_descheduler.app.snapshot import Snapshot
from reactive_descheduler.client.kube import connect
from reactive_descheduler.client.listwatch import HttpListWatch
from reactive_descheduler.client.resources import RESOURCES
from reactive_descheduler.config.loaded import LoadedPolicy
from reactive_descheduler.kit.clock import SystemClock

_FORBIDDEN = 403


async def read_cluster(
    kubeconfig: str | None, kinds: Iterable[str], measure_for: LoadedPolicy | None = None
) -> Snapshot:
    """List these kinds, one after another. `kubeconfig` None: the usual places.

    `measure_for`: ask also, once, for the usage that this policy goes by. Where that cannot be had,
    the snapshot says so.

    Raises:
        ClientError: the API server cannot be reached, or does not allow one of the lists.
    """
    snapshot, decoder, clock = Snapshot(), Decoder(), SystemClock()
    async with await connect(kubeconfig, clock=clock) as connection:
        for kind in kinds:
            lists = HttpListWatch(connection, decoder, kind, clock=clock, streaming=False)
            try:
                async with aclosing(lists.pages()) as pages:
                    async for page in pages:
                        for found in page.items:
                            snapshot.add(found)
            except ApiStatusError as error:
                if error.status == _FORBIDDEN:
                    error.hint = f"planning needs the verb list on {RESOURCES[kind].plural}"
                raise
        for question in questions(measure_for, connection, clock) if measure_for else ():
            try:
                await question.ask(snapshot.usage)
            except ClientError as error:
                snapshot.unmeasured.append(str(error) + (f" ({error.hint})" if error.hint else ""))
    return snapshot
