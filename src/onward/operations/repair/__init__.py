"""`onward tend`: repairs what no leg can (a lost job, a leg without a successor, a killed submit), when it runs, and its timer.

Not here: deleting results, deciding what a run needs (model/policy).
"""
