if [ "$stopped" = time ] || { [ "$code" -eq 4 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 3 ]; }; then
  # time is up, or the scheduler was lost: the next element of the array goes on, or this job once more
  [ -n "${SLURM_ARRAY_JOB_ID:-}" ] || scontrol requeue "$SLURM_JOB_ID"
fi
