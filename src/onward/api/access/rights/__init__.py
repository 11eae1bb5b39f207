"""Which token may call which route: the table of rights, the rules it is made of and the lookup by request.

A route without a row is not served; no other decision about access belongs here.
"""
