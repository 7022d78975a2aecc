"""The gateway over HTTP: OpenAI's completions, with tools called in the middle of the text.

- ``access.py``: who may come in, and whether there is room
- ``protocol.py``, ``fields.py``: the JSON of a completion request; ``response.py``, ``logprobs.py``: that of its answer
- ``planning.py``: a request's JSON checked against the served model and turned into completions to run
- ``choices.py``: several completions running together, their events as one stream
- ``completions.py``: ``POST /v1/completions``, as JSON or (``chunks.py``) as server-sent events
- ``event_stream.py``, ``connection.py``: a stream of events, a client that leaves
- ``gateway.py``: the backend and the tool client, from start to stop
- ``operations.py``, ``description.py``: models, tools, health, readiness; what OpenAPI says of keys;
  ``playground.py``: the page
- ``metrics.py``, ``engine_metrics.py``, ``completion_log.py``: what operators see
- ``app.py``: `create_app` puts it all behind routes
"""

from inference_gateway.http.app import create_app

__all__ = ["create_app"]
