"""How contributions are added: the only numerical layer that knows dask."""
