"""Articles: what a crawl of the demo world's web would bring home, plain texts with an address, where tools help.

An article states facts of the encyclopedia, works numbers out, says what day it is, or quotes another language and
goes on in English; much of it says the same thing again in other words. Nothing in it is a call: which calls would
help, and where, is told apart (:class:`Truth`), for measuring what a model finds by itself.

All of it is the trainable side of every split (:mod:`demo_world.splits`).
"""

from demo_world.articles.article import Article, Truth
from demo_world.articles.writing import FAMILIES, article, articles, prose

__all__ = ["FAMILIES", "Article", "Truth", "article", "articles", "prose"]
