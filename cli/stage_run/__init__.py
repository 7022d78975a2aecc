"""``toolformer jobs run``: the whole pipeline of the jobs; or one stage, started in one of three ways.

- ``command.py``: all stages, with the services started for them; or the options of one, and which way is taken
- ``on_docker.py``: ``docker compose run``; ``on_kubernetes.py``: ``kubectl`` with the manifests of ``k8s/jobs``
- ``programs.py``: how both call those programs
"""
