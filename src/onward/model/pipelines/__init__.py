"""Nouns and rules of a pipeline: plan, tasks, attempts, scores, environment builds, uploads, and what a pipeline needs next.

Pure; what people write is read in inputs, and carried out in the room pipelines.
"""
