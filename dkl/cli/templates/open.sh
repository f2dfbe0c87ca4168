trap 'exit 0' TERM INT
echo "the cluster is open: dkl fit DATA MODEL --scheduler $file"
wait
