"""What the gateway serves, whichever door a request comes through: HTTP (``http/``) or gRPC (``grpc_api/``).

- ``access.py``: whose key it is, and what those who are not let in are answered
- ``protocol.py``, ``fields.py``: a completion request's fields; ``response.py``, ``logprobs.py``: those of its answer
- ``chat.py``, ``chat_template.py``: the same for a chat; its messages as a prompt
- ``planning.py``: a request checked against the served model and turned into completions to run
- ``choices.py``: several completions running together, their events as one stream
- ``gateway.py``: the backend and the tool client, from start to stop
- ``metrics.py``, ``completion_log.py``: what operators see
"""
