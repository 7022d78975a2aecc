"""The gateway over HTTP: OpenAI's completions, with tools called in the middle of the text.

- ``protocol.py``: the JSON of a completion request and its answer
- ``planning.py``: a request's JSON checked against the served model and turned into completions to run
- ``choices.py``: several completions running together, their events as one stream
- ``completions.py``: ``POST /v1/completions``, as JSON or as server-sent events
- ``event_stream.py``, ``connection.py``, ``request_id.py``: a stream of events, a client that leaves, a request's id
- ``gateway.py``: the backend and the tool client, from start to stop
- ``operations.py``, ``metrics.py``: models, tools, health, readiness, metrics; ``playground.py``: the page
- ``app.py``: `create_app` puts it all behind routes
"""

from inference_gateway.http.app import create_app

__all__ = ["create_app"]
