"""What a root holds besides run folders: marks of requests and resumed runs, and proof that its storage is mounted.

Not here: anything inside one run's folder.
"""
