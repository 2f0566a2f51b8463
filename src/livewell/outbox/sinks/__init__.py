"""Sinks: one file for each kind of receiver.

registry       options in, a sink out; the built-in kinds, and those of other packages
kind           what a kind is, and what its sinks are made from
options        fields that options of several kinds have, and how they are read
address        where a receiver is: a secret, known by the variable that holds it
library        the client library of a kind, loaded when a sink is made
oversize       the words for an event that is too large
cloud_events   CloudEvents 1.0, binary mode, for HTTP, NATS, Kafka and AMQP
nats           NATS JetStream; drops repeats by itself
kafka          Kafka and Redpanda, by an idempotent producer
rabbitmq       RabbitMQ, with publisher confirms
redis          Redis and Valkey streams
webhook        signed HTTP, through the one client that may call out
file           lines of JSON in a file
tasks          an event becomes a job
null           counts, for benchmarks and tests
"""
