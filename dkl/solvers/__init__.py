"""Small dense problems: numpy in, numpy out, never dask."""
