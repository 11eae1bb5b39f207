"""`onward tend`: repairs what no leg can (a job that was lost, a leg without a successor, a killed submit), when it
runs, and its timer. Nothing here removes results.
"""
