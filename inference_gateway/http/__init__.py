"""The gateway over HTTP: OpenAI's completions, with tools called in the middle of the text.

What does not depend on HTTP is in ``serving/``.

- ``admission.py``: keys and room as middleware
- ``completions.py``, ``chat_routes.py``, ``token_routes.py``: what is completed, chatted and tokenised
- ``answers.py``: a completion's or a chat's answer, as JSON or (``chunks.py``) as server-sent events
- ``event_stream.py``, ``connection.py``: a stream of events, a client that leaves
- ``operations.py``: models, tools, health, readiness; what OpenAPI says of keys;
  ``playground.py``: the page
- ``app.py``: all of it behind routes and middleware
"""
