"""Many plans, scenarios and traces over the workers of a Ray cluster, or one after the other.

Work is cut into tasks whose results do not depend on who does them: what comes back is bit for bit
what `backend="local"` gives. With `directory=` every result is kept as it comes, and what is there
already is not done again, so a run that was cut off goes on where it ended. Ray gives the tasks of a
worker that died to another one.

Ray is an extra: `pip install 'foretrain[ray]'`. Workers need the same version of Foretrain, and see
files that are named at the same places.
"""

from __future__ import annotations

from ._ingest import ingest
from ._plan import plan
from ._run import TaskError
from ._sweep import sweep

__all__ = ["TaskError", "ingest", "plan", "sweep"]
