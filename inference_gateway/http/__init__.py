"""The gateway over HTTP: OpenAI's completions, with tools called in the middle of the text.

What does not depend on HTTP is in ``serving/``.

- ``access.py``: keys and room as middleware
- ``completions.py``: ``POST /v1/completions``, as JSON or (``chunks.py``) as server-sent events
- ``event_stream.py``, ``connection.py``: a stream of events, a client that leaves
- ``operations.py``, ``description.py``: models, tools, health, readiness; what OpenAPI says of keys;
  ``playground.py``: the page
- ``app.py``: `create_app` puts it all behind routes
"""

from inference_gateway.http.app import create_app

__all__ = ["create_app"]
