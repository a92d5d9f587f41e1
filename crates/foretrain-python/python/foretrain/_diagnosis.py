"""Why a run is slow: what `inspect` sees and what `whatif` says each remedy buys, put together."""

from __future__ import annotations

from typing import Any

from ._answer import Answer, Frames
from ._job import Job, load
from ._verbs import ask, verbs


class Diagnosis(Frames):
    """What owns the time of a step, and what each remedy would buy at most.

    `inspect` and `whatif` are the two answers; `remedies` are the rows of the second, the largest
    saving first. Savings are of whole simulations and do not add up.
    """

    def __init__(self, inspect: Answer, whatif: Answer) -> None:
        self.inspect = inspect
        self.whatif = whatif

    @property
    def remedies(self) -> list[dict[str, Any]]:
        """Scenarios of the standard list, the largest saving first."""
        rows = self.whatif.rows("scenarios")
        return sorted(rows, key=lambda row: -(row.get("saving_ns") or 0))

    def __str__(self) -> str:
        return f"{self.inspect}\n{self.whatif}"

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.remedies)} remedies>"

    def _repr_html_(self) -> str:
        return f"{self.inspect._repr_html_()}\n{self.whatif._repr_html_()}"

    def to_dict(self) -> dict[str, Any]:
        """Both documents."""
        return {"inspect": self.inspect.to_dict(), "whatif": self.whatif.to_dict()}

    def rows(self, table: str | None = None) -> list[dict[str, Any]]:
        """The remedies, or a table of `whatif`."""
        return self.remedies if table is None else self.whatif.rows(table)


def diagnose(*sources: Any, **options: Any) -> Diagnosis:
    """Says why a run is slow: who owns the time of its steps, which rank is late, and what each
    remedy of the standard list (no communication, faster kernels, no launch overhead, the fastest
    rank everywhere) would buy at most.

    Takes a job, or files as `load` does. Keywords are those of `whatif`; `change` adds remedies.
    """
    reading = {name for name in verbs()["inspect"].options}
    of_reading = {name: options.pop(name) for name in list(options) if name in reading}
    job = sources[0] if len(sources) == 1 and isinstance(sources[0], Job) else None
    if job is None:
        job, of_reading = load(*sources, **of_reading), {}
    return Diagnosis(ask("inspect", job, **of_reading), ask("whatif", job, **options))
