"""The gateway over gRPC: ``proto/toolformer/v1``, with the same completions and limits as over HTTP.

- ``messages.py``: requests and events as messages
- ``status.py``: errors as gRPC statuses with details
- ``access.py``: API keys in front of every method
- ``calls.py``: what happens around each RPC: its id, span, log line, count and room
- ``service.py``: ``CompletionService``
- ``server.py``: the server, with health and reflection, from start to drain

It is imported only where a port is asked for (`GatewaySettings.grpc_port`).
`docs/decisions/011-one-contract-for-rest-and-grpc.md` says why it is built this way.
"""
