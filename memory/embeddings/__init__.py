"""Meaning beside words: each memory's vector, found by nearness. Off until EMBEDDING_MODEL names a model.

models.py    which model, where it is asked, with which key
client.py    texts to vectors, over HTTP or in the process
embedded.py  the models in the process: english.py unpacks one, mpnet.py and word_pieces.py compute it
store.py     vectors in PostgreSQL: pgvector, its index, what is written and what is missing
filling.py   bring the vectors up to date, in batches, outside any transaction
questions.py the vector of a question; where there is none, search goes by words alone
checks.py    what `manage.py check` says
"""
