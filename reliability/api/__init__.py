"""Own jobs over HTTP, for callers that are not this Python: enqueue, look, report completion."""
