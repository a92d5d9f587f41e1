"""Makes and executes the notebooks from the programs beside it.

    python examples/python/notebooks.py [NAME...]

Needs the package `foretrain`, nbformat, nbclient and ipykernel. A program's `# %%` lines begin cells.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbclient
import nbformat

HERE = Path(__file__).parent
# Addresses and the time of a run would change the file each time it is made.
_CHANGES = re.compile(r"0x[0-9a-f]{6,}")


def cells(program: str) -> list[nbformat.NotebookNode]:
    """The cells of a program; its docstring is none of them."""
    found = []
    for part in re.split(r"^# %%", program, flags=re.MULTILINE)[1:]:
        kind, _, text = part.partition("\n")
        if "[markdown]" in kind:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
            found.append(nbformat.v4.new_markdown_cell(text.strip()))
        else:
            found.append(nbformat.v4.new_code_cell(text.strip()))
    for at, cell in enumerate(found):
        cell.id = f"cell-{at}"
    return found


def make(name: str) -> None:
    """Writes one notebook."""
    program = (HERE / f"{name}.py").read_text(encoding="utf-8")
    notebook = nbformat.v4.new_notebook(cells=cells(program))
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    client = nbclient.NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": HERE}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            for form, value in output.get("data", {}).items():
                if isinstance(value, str):
                    output["data"][form] = _CHANGES.sub("0x0", value)
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, HERE / f"{name}.ipynb")
    print(f"wrote {name}.ipynb: {len(notebook.cells)} cells")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or ["tour"]:
        make(wanted)
