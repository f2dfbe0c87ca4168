#!/usr/bin/env bash
# A scheduler and @crew@ of @cores@ and @memory@ MiB each, as processes of this machine.
# Ctrl-C ends them. Written by `dkl cluster local`.
# @why@
set -euo pipefail
run=@folder@/@name@
file=$run/scheduler.json
mkdir -p "$run"
rm -f "$file"
export DASK_CONFIG=@dask_config@
python=@python@

"$python" -m dask scheduler --host 127.0.0.1 --scheduler-file "$file" --port 0 --dashboard-address 127.0.0.1:0 \
  --preload dkl.engine.preload > "$run/scheduler.log" 2>&1 &
scheduler=$!
trap 'kill "$scheduler" "${workers:-$scheduler}" 2> /dev/null || true; wait' EXIT
for _ in $(seq 1500); do
  { [ -s "$file" ] || ! kill -0 "$scheduler" 2> /dev/null; } && break
  sleep 0.2
done
[ -s "$file" ] || { echo "no scheduler; see $run/scheduler.log" >&2; exit 4; }
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 "$python" -m dask worker --scheduler-file "$file" \
  --host 127.0.0.1 --nworkers @workers@ --nthreads @cpus@ --memory-limit @limit@MiB --no-dashboard --death-timeout 60 \
  --preload dkl.engine.preload > "$run/workers.log" 2>&1 &
workers=$!
@body@
