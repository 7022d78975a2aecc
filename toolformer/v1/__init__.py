"""The messages of ``proto/toolformer/v1``. All but this file is made by ``make proto``; `tests/test_proto.py` says when
it is not current. Nothing in here is imported by who does not speak gRPC."""
