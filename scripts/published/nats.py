"""A NATS client that is just large enough to send one request."""

import json
import socket
import urllib.parse


def request(url, subject, body=b""):
    """Sends a request and returns the JSON of its reply."""
    address = urllib.parse.urlparse(url)
    with socket.create_connection((address.hostname, address.port), 10) as connection:
        stream = connection.makefile("rwb")
        stream.readline()
        inbox = "_INBOX.published"
        stream.write(b'CONNECT {"verbose":false,"pedantic":false}\r\n')
        stream.write(f"SUB {inbox} 1\r\n".encode())
        stream.write(f"PUB {subject} {inbox} {len(body)}\r\n".encode() + body + b"\r\n")
        stream.flush()
        while True:
            line = stream.readline()
            if line.startswith(b"PING"):
                stream.write(b"PONG\r\n")
                stream.flush()
            elif line.startswith(b"MSG"):
                return json.loads(stream.read(int(line.split()[-1])))
            elif not line or line.startswith(b"-ERR"):
                raise OSError(f"NATS closed the connection: {line!r}")


def create_stream(url, name, subjects, **settings):
    body = {"name": name, "subjects": subjects, "storage": "file", "retention": "limits", **settings}
    return request(url, f"$JS.API.STREAM.CREATE.{name}", json.dumps(body).encode())


def create_bucket(url, name):
    settings = {"max_msgs_per_subject": 1, "allow_rollup_hdrs": True, "deny_delete": True, "discard": "new"}
    return create_stream(url, f"KV_{name}", [f"$KV.{name}.>"], **settings)


def delete_stream(url, name):
    return request(url, f"$JS.API.STREAM.DELETE.{name}")


def publish(url, subject, value):
    """Publishes one JSON message to a stream and waits for its acknowledgement."""
    return request(url, subject, json.dumps(value).encode())
