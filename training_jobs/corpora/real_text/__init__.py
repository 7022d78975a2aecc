"""What a base model reads of real text: encyclopedia, news, stories, questions, word problems, foreign sentences.

The sources are files of others that are named when the corpus is made; none of their sentences is part of the project.
"""
