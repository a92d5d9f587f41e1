#!/usr/bin/env bash
# Times `foretrain inspect` against HolisticTraceAnalysis on the same generated traces, as whole commands.
# Usage: scripts/compare-with-hta.sh [WORKDIR] [LAYERS] [STEPS]
# Needs cargo and python3 with venv; installs HolisticTraceAnalysis into WORKDIR/venv.
set -euo pipefail
work=${1:-$(mktemp -d)}
layers=${2:-36}
steps=${3:-16}
cd "$(dirname "$0")/.."

mkdir -p "$work"
cargo build --release -p foretrain-cli
cargo build --release -p foretrain-testkit --example gen_big
target=${CARGO_TARGET_DIR:-target}
if [ ! -d "$work/traces" ]; then
  "$target/release/examples/gen_big" job "$work/traces" 8 "$layers" "$steps" 3 1.3
fi
if [ ! -d "$work/venv" ]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q HolisticTraceAnalysis 'pandas<3'
fi
cat > "$work/compare.py" <<'PY'
import sys
from hta.trace_analysis import TraceAnalysis

analysis = TraceAnalysis(trace_dir=sys.argv[1])
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
PY

# Wall and CPU seconds and peak memory of one command and its children.
measure() {
  python3 - "$@" <<'PY'
import os, resource, subprocess, sys, time
start = time.time()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.time() - start:.2f} s wall, {used.ru_utime + used.ru_stime:.2f} s CPU, "
      f"{used.ru_maxrss / 1024:.0f} MB peak (largest process), exit {code}")
PY
}

size=$(du -sb "$work/traces" | cut -f1)
echo "traces: $((size / 1000000)) MB in $(ls "$work/traces" | wc -l) files"
for run in 1 2 3; do
  echo "foretrain inspect: $(measure "$target/release/foretrain" inspect "$work/traces" --no-progress)"
  echo "HTA load + two breakdowns: $(measure "$work/venv/bin/python" "$work/compare.py" "$work/traces")"
done
