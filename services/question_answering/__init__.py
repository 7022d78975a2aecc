"""Question answering with Atlas: a dense retriever and a Fusion-in-Decoder reader over an index of passages."""
