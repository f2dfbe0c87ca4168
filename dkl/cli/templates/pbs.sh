#!/usr/bin/env bash
# A scheduler and @crew@ of @cores@ and @memory@ MiB each, in one job of PBS.
# Submit it with `qsub THIS_FILE`, and again if it was stopped. Written by `dkl cluster pbs`.
# @why@
#PBS -N @name@
#PBS -l select=@tasks@:ncpus=@cpus@:mem=@memory@mb
#PBS -l walltime=@time@
#PBS -q @queue@
#PBS -A @account@
#PBS -j oe
#PBS -r y
set -euo pipefail
run=@folder@/@name@-$PBS_JOBID # on a disk that all nodes share
file=$run/scheduler.json
mkdir -p "$run"
rm -f "$file" # of an earlier start of this job
export DASK_CONFIG=@dask_config@
python=@python@
net=()
net=(--interface @interface@)

"$python" -m dask scheduler --scheduler-file "$file" --port 0 --dashboard-address 127.0.0.1:0 \
  --preload dkl.engine.preload "${net[@]}" > "$run/scheduler.log" 2>&1 &
scheduler=$!
workers=()
trap 'kill "$scheduler" "${workers[@]}" 2> /dev/null || true; wait' EXIT
for _ in $(seq 1500); do
  { [ -s "$file" ] || ! kill -0 "$scheduler" 2> /dev/null; } && break
  sleep 0.2
done
[ -s "$file" ] || { echo "no scheduler; see $run/scheduler.log" >&2; exit 4; }
for chunk in $(seq @workers@); do # chunk 0 is the scheduler's; pbsdsh passes no variables on
  pbsdsh -n "$chunk" -- /usr/bin/env "DASK_CONFIG=${DASK_CONFIG:-}" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
    MKL_NUM_THREADS=1 "$python" -m dask worker --scheduler-file "$file" --nthreads @cpus@ --memory-limit @limit@MiB \
    --local-directory "${TMPDIR:-/tmp}" --no-dashboard --death-timeout 300 --preload dkl.engine.preload "${net[@]}" \
    > "$run/worker-$chunk.log" 2>&1 &
  workers+=("$!")
done
@body@
