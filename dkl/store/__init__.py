"""Bytes: Zarr groups that xarray can read."""
