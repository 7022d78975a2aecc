"""What drives decoding machines: the local engine, or a remote completion server."""
