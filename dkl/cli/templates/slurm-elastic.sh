#!/usr/bin/env bash
# A scheduler, and @crew@ of @cores@ and @memory@ MiB in Slurm jobs of their own, which are replaced
# when they end. Submit it with `sbatch THIS_FILE`. Needs dask-jobqueue. Written by `dkl cluster slurm --elastic`.
# @why@
#SBATCH --job-name=@name@
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=@cpus@
#SBATCH --mem=@scheduler_memory@M
#SBATCH --time=@time@
#SBATCH --partition=@queue@
#SBATCH --account=@account@
#SBATCH --array=1-@array@%1
#SBATCH --output=@name@-%j.log
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
set -euo pipefail
run=@folder@/@name@-$SLURM_JOB_ID # on a disk that all nodes share
file=$run/scheduler.json
mkdir -p "$run"
rm -f "$file" # of an earlier start of this job
export DASK_CONFIG=@dask_config@
python=@python@
jobs_of_workers() {
  for name in "${!SLURM_@}" "${!SBATCH_@}"; do # they must not inherit the sizes of this job
    [ "$name" = SLURM_CONF ] || unset "$name"
  done
  exec "$python" -m dkl.cli.elastic @settings@ "$run"
}
jobs_of_workers &
scheduler=$!
trap 'kill "$scheduler" 2> /dev/null || true; wait' EXIT
for _ in $(seq 1500); do
  { [ -s "$file" ] || ! kill -0 "$scheduler" 2> /dev/null; } && break
  sleep 0.2
done
[ -s "$file" ] || { echo "no scheduler" >&2; exit 4; }
@body@
