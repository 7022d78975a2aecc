"""``toolformer jobs run STAGE --on local|docker|k8s``: one stage of the jobs, started in one of three ways.

- ``command.py``: the options, and which way is taken
- ``on_docker.py``: a container of Docker's engine; ``compose.py``: how docker-compose.yml describes it
- ``on_kubernetes.py``: a Job of a cluster; ``manifests.py``: how ``k8s/jobs`` describes it; ``cluster.py``: the API
  server; ``pods.py``: what the Job's pods do and say
- ``log_lines.py``: a log that is followed over broken connections, every line once
- ``words.py``: the command's own words, beside those of the stage
"""
