#!/usr/bin/env bash
# Plans for several sizes in several processes: study.sh PROCESSES DIRECTORY
# A Slurm array would run the middle step: sbatch --array=1-8 --wrap 'foretrain plan --scenarios
# study/scenarios.jsonl --shard $SLURM_ARRAY_TASK_ID/8 --out study/rows-$SLURM_ARRAY_TASK_ID.jsonl'
set -euo pipefail
processes=$1
directory=$2
here=$(dirname "$0")
mkdir -p "$directory"

foretrain plan "$here/chat-1b.toml" --on "$here/lab.toml" --gpus 4,8,16 --batch 64 \
    --write-scenarios "$directory/scenarios.jsonl"
seq "$processes" | xargs -P "$processes" -I{} foretrain plan \
    --scenarios "$directory/scenarios.jsonl" --shard "{}/$processes" --out "$directory/rows-{}.jsonl"
foretrain plan --scenarios "$directory/scenarios.jsonl" --merge "$directory"/rows-*.jsonl \
    --out "$directory/rows.parquet"
