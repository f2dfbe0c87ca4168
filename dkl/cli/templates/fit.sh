
stopped=
stop() {
  stopped=$1
  kill -TERM "$fit" 2> /dev/null || true
}
trap 'stop time' USR1 # the time limit is near: dkl leaves its checkpoint and exits with 143
trap 'stop order' TERM INT
"$python" -m dkl fit @fit@ --resume auto --scheduler "$file" &
fit=$!
while kill -0 "$fit" 2> /dev/null; do # a signal ends `wait` early
  wait "$fit" || true
done
code=0
wait "$fit" || code=$?
@again@
exit "$code"
