"""Wikipedia search: the best snippet for a query, by BM25 over a Lucene index of KILT pages (section 3 of the paper).

- ``sentences.py``, ``passages.py``: a page becomes passages of about a hundred words
- ``index.py``, ``manifest.py``, ``bundled.py``: passages become an index on disk, whole or not at all
- ``lucene.py``: the Java side, through pyserini's classes
- ``ranking.py``, ``snippets.py``: from Lucene's hits to one short line
- ``engine.py``, ``app.py``: the above as a tool service
"""
