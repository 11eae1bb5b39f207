"""The broker: connection, queues, consumer, publisher. Everything that needs aio-pika.

Not here: what a message means (messages).
"""
