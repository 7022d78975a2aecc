"""``toolformer jobs run STAGE --on local|docker|k8s``: one stage of the jobs, started in one of three ways.

- ``command.py``: the options, and which way is taken
- ``on_docker.py``: ``docker compose run``; ``on_kubernetes.py``: ``kubectl`` with the manifests of ``k8s/jobs``
- ``programs.py``: how both call those programs
"""
