"""The supervised way to a model that calls: texts whose calls their generator places, with what the tools really say.

The paper's way, where a model finds out by itself which calls help, is in the other folders of ``training_jobs``; the
bundled model was made by it."""
