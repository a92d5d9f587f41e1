#!/usr/bin/env bash
# All tests: those of Rust, then those of the Python package, from a wheel that is built and installed
# into a virtual environment of its own below target/. Without Python only the first.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo test --workspace --locked

python=""
for name in python3 python3.13 python3.12 python3.11 python3.10 python; do
  if command -v "$name" >/dev/null && "$name" -c 'import sys, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python=$name
    break
  fi
done
if [ -z "$python" ]; then
  echo "skipped: the Python package is not tested, since there is no Python 3.10 or newer with venv"
  exit 0
fi

environment=target/python
rm -rf "$environment" target/wheels
"$python" -m venv "$environment"
pip() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
# What answers can be turned into, and what runs the tests. PyTorch is used if it is there.
pip install "maturin>=1.9,<2" pytest numpy pandas polars pyarrow ray
# Built as the tests above were, so that nothing is compiled twice.
"$environment/bin/maturin" build --quiet --locked --profile dev --features as-tested \
  --manifest-path crates/foretrain-python/Cargo.toml --out target/wheels
pip install --no-deps target/wheels/*.whl
"$environment/bin/foretrain" --version
"$environment/bin/python" -m pytest -q crates/foretrain-python
