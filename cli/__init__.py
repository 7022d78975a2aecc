"""The ``toolformer`` command: the one room that knows all the others.

- ``main.py``: the subcommands and their options; imports what a subcommand needs only when it runs
- ``up.py``: start everything, report when it is ready, stop everything
- ``components.py``: what ``up`` starts: modules, addresses, environments
- ``supervisor.py``: keeps a component running; ``child.py``: one process; ``tethered.py``: how it dies with its parent
- ``stack.py``: services or a gateway for as long as another command needs them
- ``stage_run/``: the pipeline of the jobs, or one stage of it: here, in a container, on a cluster
- ``reproduce/``: the whole loop, from texts to the table of results
- ``complete.py``: streams a completion; ``highlight.py`` finds calls in the text
- ``tool_commands.py``: one call, and the table of tools
- ``doctor.py``: the checks' frame; ``checks.py``: the checks
- ``roles.py``: the packages of each role; ``checkout.py``: where the files beside the package are
- ``console.py``: what all of them print with
"""
