"""Load on a running gateway, and other ways to complete a text with tool calls, driven and measured alike.

`load` says what is asked for and when; `ways` are what may answer it: the gateway (`pause`), a client that resubmits
(`resubmit`); `driver` sends the one to the other, `record` is what a client saw of a
request, `figures` what is told of all of them. `gateway`, `tool` and `stream` are the processes and the wire.
"""
