"""Wikipedia search: the best snippet for a query, by BM25 over a Lucene index of KILT pages (section 3 of the paper).

- ``passages.py``: a page becomes passages of about a hundred words
- ``extracted.py``: what WikiExtractor writes, read as KILT's pages
- ``cutting.py``, ``lucene_index.py``, ``progress.py``: pages become passages, passages a Lucene index, with all cores
- ``index.py``, ``manifest.py``: all of that as one command; an index is on disk whole or not at all
- ``java.py``, ``lucene.py``: the Java machine, and Lucene's search in it
- ``ranking.py``, ``snippets.py``: from Lucene's hits to one short line
- ``engine.py``, ``app.py``: the above as a tool service
"""
