"""Fixtures of the LogStore's tests: real Kafkas, one embedded and one that wants to know who asks."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakekit.logstore import keeper
from lakekit.logstore.broker import EmbeddedBroker, _program
from tests.waiting import wait_until

SECRET = "canary-4711"


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an embedded broker."""
    embedded = EmbeddedBroker(str(tmp_path_factory.mktemp("log") / "warehouse"))
    yield embedded.address()
    embedded.leave()


@dataclass(frozen=True)
class SecureKafka:
    """A Kafka with TLS, passwords and rights: `writer` and `scram` may do all, `guest` nothing."""

    address: str
    certificate: str


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """A Kafka beside that of the warehouse, as one finds it in a company."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    folder = tmp_path_factory.mktemp("secure")
    ports = _free_ports(3)
    _certificate(folder)
    (folder / "server.properties").write_text(_SETTINGS.format(*ports, secret=SECRET))
    program = _program()
    scram = ["--add-scram", f"SCRAM-SHA-256=[name=scram,password={SECRET}]"]
    tool = ["kafka.tools.StorageTool", "format", "-t", "bGFrZWtpdC10ZXN0cy0wMQ", "-c", "server.properties"]
    subprocess.run(keeper._command(*program, *tool, *scram), cwd=folder, check=True, capture_output=True)
    log = folder / "log"
    with log.open("wb") as out:
        kafka = subprocess.Popen(
            keeper._command(*program, "kafka.Kafka", "server.properties"), cwd=folder, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: keeper.STARTED in log.read_bytes() or kafka.poll() is not None)
        assert kafka.poll() is None, log.read_text()[-3000:]
        yield SecureKafka(f"localhost:{ports[0]}", str(folder / "certificate.pem"))
    finally:
        kafka.terminate()
        kafka.wait(timeout=60)


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _certificate(folder: Path) -> None:
    request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", "key.pem", "-out", "certificate.pem", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(["openssl", *request, *files], cwd=folder, check=True, capture_output=True)
    (folder / "server.pem").write_text(
        (folder / "key.pem").read_text() + (folder / "certificate.pem").read_text()
    )


_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{1}
listeners=OUTSIDE://127.0.0.1:{0},CONTROLLER://127.0.0.1:{1},INSIDE://127.0.0.1:{2}
advertised.listeners=OUTSIDE://localhost:{0},INSIDE://127.0.0.1:{2}
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL
log.dirs=data
offsets.topic.replication.factor=1
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:writer;User:scram;User:bearer
ssl.keystore.type=PEM
ssl.keystore.location=server.pem
listener.name.outside.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,OAUTHBEARER
listener.name.outside.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_writer="{secret}" user_guest="{secret}";
listener.name.outside.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.outside.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="x";
"""
