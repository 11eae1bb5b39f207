"""Which token may call which route: the table of rights, its rules, and the lookup by request.

Not here: any other decision about access. A route without a row in the table is not served.
"""
