"""Pictures of clusters: asked at most every half minute for all who look, and the last one saved for those who do not ask.

Arithmetic over them lives in onward.planning.
"""
