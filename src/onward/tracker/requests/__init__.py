"""The gateway's store of requests and of the messages that go back, apart from the tracker's tables.

Not here: the broker (gateway/rabbitmq).
"""
