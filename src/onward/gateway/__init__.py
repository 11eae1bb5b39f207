"""The gateway: requests come from a RabbitMQ broker, and each gets one answer there. Needs aio-pika (extra `gateway`)."""
