"""Translation into English: fastText names the language, NLLB on CTranslate2 translates (section 3 of the paper).

- ``flores.py``, ``labels.py``, ``scripts.py``: the languages' codes, and classifiers' labels mapped to them
- ``language_id.py``: the language of a text, with fastText
- ``sentences.py``: long text becomes sentences, and sentences become text again
- ``preparing.py``: the three above in one step, from a call's text to what the model reads
- ``model_folder.py``: what a converted model's folder holds
- ``translator.py``: sentences into English
- ``engine.py``, ``app.py``: the above as a tool service
- ``convert.py``: a published checkpoint becomes a model folder
- ``train.py`` and its ``train_*.py``, ``evaluate.py``: models made of phrases or of real pairs, and
  measured; jobs that the service never imports
"""
