"""What a replay does: the engine's plan of a step, and its forecast."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..._answer import Answer
    from ..._job import Job
    from ...plugins import Draft

_PASS = "replayed"


class ReplayError(Exception):
    """A step cannot be replayed; the message says why and what to do."""


@dataclass(frozen=True)
class Exchange:
    """Gradients that are all-reduced together."""

    #: Seconds from the step's start until it may begin.
    ready: float
    size: int
    #: Whether it is sent in half precision.
    half: bool
    #: Whether gradients are copied into a buffer before and back afterwards.
    copied: bool


@dataclass(frozen=True)
class Plan:
    """A step of one rank, and what is forecast of it."""

    #: In the order of issue.
    exchanges: tuple[Exchange, ...]
    #: Bytes of all gradients.
    gradients: int
    #: Seconds of computing after the last gradient: the optimiser and the rest of the loop.
    rest: float
    #: What `foretrain predict` answers, for one rank and for all nodes.
    forecast: Answer

    def to_json(self) -> str:
        """What a rank needs of it."""
        return json.dumps({"exchanges": [asdict(one) for one in self.exchanges], "rest": self.rest})


def plan(job: Job, nodes: int, strategy: str, **options: Any) -> Plan:
    """Plans a strategy's step from a capture; ``options`` are those of `foretrain.predict`."""
    import foretrain

    drafts: dict[int, _Drafted] = {}

    # Behind all others a pass sees what they leave. The last draft of a size is the forecast's:
    # those before it find out how the recording differs from the models.
    @foretrain.plugins.rewrite_pass(_PASS, about="Tells a replay what is exchanged.")
    def observe(draft: Draft) -> None:
        drafts[draft.replicas] = _Drafted(draft)

    forecast = foretrain.predict(job, gpus=[1, nodes], strategy=f"{strategy} | {_PASS}", **options)
    drafted = drafts.get(nodes)
    if drafted is None:
        raise ReplayError(
            f"{job.sources[0]}: a model replica is larger than a rank there, and nodes hold one rank each"
        )
    alone = forecast.sizes[0].step_time.value_ns / 1e9
    return Plan(
        tuple(drafted.exchanges()),
        sum(size for size, _ in drafted.gradients),
        max(0.0, alone - drafted.gradients[-1][1] / 1e9),
        forecast,
    )


class _Drafted:
    """What a pass was shown, which is of no use once it has returned."""

    def __init__(self, draft: Draft) -> None:
        self.gradients = list(draft.gradients)
        self._exchanges = list(draft.exchanges)
        self._by_priority = draft.by_priority
        self._micro_steps = draft.micro_steps

    def exchanges(self) -> Sequence[Exchange]:
        """The exchanges, if they can be done for real."""
        if self._micro_steps > 1:
            raise ReplayError("a step of several micro-batches cannot be replayed")
        if self._by_priority:
            raise ReplayError("links that run what is urgent first cannot be replayed")
        return [self._exchange(one) for one in self._exchanges]

    def _exchange(self, one: Any) -> Exchange:
        if one.kind != "all-reduce" or one.way != "library" or one.codec not in (None, "half"):
            how = ", ".join(filter(None, [one.kind, one.way, one.codec]))
            raise ReplayError(
                f"{how}: a replay does all-reduces of the library, in full or half precision; "
                "`foretrain predict` forecasts the others"
            )
        ready = self.gradients[one.gradients[1] - 1][1] + one.delay_ns
        return Exchange(ready / 1e9, one.bytes, one.codec == "half", one.copied)
