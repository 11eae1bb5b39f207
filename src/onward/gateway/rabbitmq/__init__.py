"""The broker: connection, queues, consumer, publisher. Everything that needs aio-pika, and nothing that knows what a message means."""
