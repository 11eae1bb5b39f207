"""One leg from begin to end: may it begin, what became of earlier legs, hand over, train, watch, judge the end, decide
how the run goes on. No helper processes, no ranks, no pipelines.
"""
