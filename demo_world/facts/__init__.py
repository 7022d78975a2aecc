"""What a general reader asks an encyclopedia, as data: one table a kind of thing, worded in sentences of our own.

- ``*.tsv``: the tables; a row is a thing, a column what is known of it; ``;`` is between several
- ``tables/facts.toml``: the sentences
- ``fact_pages.py``: pages from both
- ``factbook.py``: where ``countries.tsv`` comes from
- ``compare.py``: compares the tables with an encyclopedia's text

``countries.tsv`` follows the CIA World Factbook (public domain). The others were written for this project from general
knowledge, then compared with English Wikipedia; facts that change within a few years are left out.
"""
