"""``python -m foretrain.capture.emulate``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

from ..._errors import ForetrainError
from .arguments import Arguments, parse
from .emulation import Emulation
from .replaying import ReplayError, forecast, replay
from .system import EmulationError, enter_own_world, why_not


def main() -> int:
    """Runs a job on emulated nodes; returns its exit code."""
    asked = parse()
    # A signal ends the program as an exception does: nodes are taken down on the way out.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    try:
        reason = why_not()
        if reason is None:
            enter_own_world(["-m", "foretrain.capture.emulate", *sys.argv[1:]])
        elif asked.replay:
            print(f"not emulated: {reason}", file=sys.stderr)
            told = (asked.replay, asked.settings, asked.strategy, asked.on, asked.primitives)
            print(forecast(*told))
            return 0
        else:
            return _fail(_instead(reason))
        if asked.replay:
            print(replay(asked.replay, asked.settings, asked.strategy, asked.steps, asked.on))
            return 0
        return _run(asked)
    except (EmulationError, ReplayError, ForetrainError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.strerror or error} ({error.filename or 'while emulating'})")
    except KeyboardInterrupt:
        return 130


def _run(asked: Arguments) -> int:
    with Emulation(asked.settings) as emulation:
        outcome = emulation.run(command(asked.command), alone=asked.alone, timeout=asked.timeout)
    if outcome.why:
        print(f"error: {outcome.why}", file=sys.stderr)
    return outcome.code


def command(words: list[str]) -> list[str]:
    """What to start: scripts and ``-m`` modules run in this Python, anything else as it is."""
    if words[0] == "-m" or (words[0].endswith(".py") and Path(words[0]).is_file()):
        return [sys.executable, *words]
    if words[0].endswith(".py"):
        raise EmulationError(f"there is no script {words[0]}")
    return words


def _instead(reason: str) -> str:
    return (
        f"nodes cannot be emulated here: {reason}. A forecast needs none: measure this machine "
        "with `foretrain calibrate primitives -o primitives.toml`, and ask "
        "`foretrain predict bundle/ "
        "--on CLUSTER --gpus N --primitives primitives.toml`"
    )


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _fail(message: str) -> int:
    print(f"error: {message.removeprefix('error: ')}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
