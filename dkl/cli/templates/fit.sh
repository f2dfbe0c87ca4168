
export DASK_DKL__SCHEDULER_TIMEOUT=120 DASK_DKL__NO_WORKERS_TIMEOUT=@patience@ # seconds; workers come when they may
"$python" -m dkl fit @fit@ --resume auto --scheduler "$file" &
fit=$!
stopped=
trap 'stopped=time; kill -TERM "$fit" 2> /dev/null || true' USR1 # dkl leaves its checkpoint and exits with 143
trap 'stopped=order; kill -TERM "$fit" 2> /dev/null || true' TERM INT
while kill -0 "$fit" 2> /dev/null; do # a signal ends `wait` early
  wait "$fit" || true
done
code=0
wait "$fit" || code=$?
[ -z "$stopped" ] || echo "stopped ($stopped): started again, it goes on from its checkpoint" >&2
@again@
exit "$code"
