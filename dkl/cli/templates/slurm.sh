#!/usr/bin/env bash
# A scheduler and @crew@ of @cores@ and @memory@ MiB each, in one allocation of Slurm.
# Submit it with `sbatch THIS_FILE`. Written by `dkl cluster slurm`.
# @why@
#SBATCH --job-name=@name@
#SBATCH --ntasks=@tasks@
#SBATCH --cpus-per-task=@cpus@
#SBATCH --mem-per-cpu=@memory_per_cpu@M
#SBATCH --time=@time@
#SBATCH --partition=@queue@
#SBATCH --account=@account@
#SBATCH --array=1-@array@%1
#SBATCH --output=@name@-%j.log
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --no-kill
set -euo pipefail
run=@folder@/@name@-$SLURM_JOB_ID # on a disk that all nodes share
file=$run/scheduler.json
mkdir -p "$run"
rm -f "$file" # of an earlier start of this job
export DASK_CONFIG=@dask_config@
python=@python@
share=(--exact --cpus-per-task=@cpus@ --mem-per-cpu=@memory_per_cpu@M)
net=()
net=(--interface @interface@)

srun "${share[@]}" --ntasks=1 --output="$run/scheduler.log" "$python" -m dask scheduler --scheduler-file "$file" \
  --port 0 --dashboard-address 127.0.0.1:0 --preload dkl.engine.preload "${net[@]}" &
scheduler=$! # Slurm ends it, and the workers, with this script
for _ in $(seq 1500); do
  { [ -s "$file" ] || ! kill -0 "$scheduler" 2> /dev/null; } && break
  sleep 0.2
done
[ -s "$file" ] || { echo "no scheduler; see $run/scheduler.log" >&2; exit 4; }
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 srun "${share[@]}" --ntasks=@workers@ --kill-on-bad-exit=0 \
  --output="$run/worker-%t.log" "$python" -m dask worker --scheduler-file "$file" --nthreads @cpus@ \
  --memory-limit @limit@MiB --local-directory "${TMPDIR:-/tmp}" --no-dashboard --death-timeout 300 \
  --preload dkl.engine.preload "${net[@]}" &
@body@
