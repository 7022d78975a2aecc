"""Load on a running gateway, and other ways to complete a text with tool calls, driven and measured alike.

`load` says what is asked for and sends it; `ways` are what may answer it: the gateway (`Pause`), a client that
resubmits (`Resubmit`); `record` is what a client saw of a request, `figures` what is reported of all of them.
`gateway`, `tools` and `stream` are the processes and the wire.
"""
