"""vLLM in the gateway's process: each completion is one session, which waits inside vLLM while a tool works."""
