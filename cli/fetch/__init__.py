"""``toolformer fetch``: the published weights and data that a run with real models needs.

``parts.toml`` says what there is, ``catalogue`` reads it, ``listing`` asks the servers for sizes and digests,
``transfer`` brings one file, ``part_manifest`` remembers and checks what came, ``fetching`` does all of it,
``command`` prints."""
