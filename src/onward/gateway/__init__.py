"""The gateway: takes requests from RabbitMQ and sends one answer to each. Needs aio-pika (extra `gateway`).

Not here: what a request becomes (operations/requests), where it is stored (tracker/requests).
"""
