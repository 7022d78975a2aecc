"""Question answering with Atlas: a dense retriever and a Fusion-in-Decoder reader over an index of passages.

- ``bert.py``, ``t5.py``, ``padding.py``: the two models, of transformers' layers under the published parameter names
- ``formats.py``: the texts that they see
- ``retriever.py``, ``reader.py``: questions and passages to vectors; questions with passages to answers
- ``passages.py``, ``passage_index.py``, ``index_folder.py``, ``build_index.py``: what is searched; ``page_search.py``:
  a service that is asked instead
- ``weights.py``, ``checkpoint.py``: a model on disk; ``published.py``, ``convert.py``: Atlas' own files made into one
- ``engine.py``, ``app.py``: the above as a tool service that merges calls into batches
- ``nearest.py``, ``shown.py``: for a reader of sentences, the nearest of what was found, and their words that are asked
- ``vocabulary.py``, ``copying.py``, ``train_gaps.py``, ``train_questions.py``, ``train_typed.py``, ``train_ahead.py``,
  ``train_loss.py``, ``train.py``, ``evaluate.py``: such a reader learns from real text
"""
