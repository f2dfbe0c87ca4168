"""Where rows come from: one format per file, each a stream of batches in bounded memory."""
