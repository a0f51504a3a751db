"""How a Kafka is reached: what settings can be, that secrets stay secret, and logging in to a real Kafka."""

import asyncio
import base64
import json
import os
import pickle
import socket
import subprocess
import time

import pytest

import lakekit
from lakekit.errors import InvalidOptionError, LogStoreError
from lakekit.logstore.connection import Connection, log_settings
from lakekit.logstore.topic import end_offsets, ensure_topic

SECRET = "canary-4711"
PASSWORD = {
    "lake.log.security.protocol": "SASL_SSL",
    "lake.log.sasl.username": "writer",
    "lake.log.sasl.password": "env:LOG_PASSWORD",
}


def without_secret(raised):
    shown = (raised.value, raised.value.__cause__, raised.value.__context__)
    assert not any(SECRET in repr(error) + str(error) for error in shown)
    return str(raised.value)


def test_settings_of_others_are_left_out():
    given = {"spark.driver.memory": "1g", "lake.log.security.protocol": "SSL"}
    assert log_settings(given) == {"lake.log.security.protocol": "SSL"}


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        (
            "sasl.passwort",
            SECRET,
            "no setting 'sasl.passwort' under 'lake.log.'. Did you mean 'sasl.password'",
        ),
        ("x", SECRET, "no setting 'x' under 'lake.log.'. There are: security.protocol"),
        ("sasl.password", SECRET, "is no reference to a secret. Write 'env:NAME'"),
        ("sasl.password", f"env:{SECRET}", "is no reference"),
        ("sasl.token", "file:", "is no reference"),
        ("ssl.key.password", SECRET, "is no reference"),
        ("security.protocol", SECRET, "cannot have. Allowed: PLAINTEXT, SSL"),
        ("sasl.mechanism", "GSSAPI", "cannot have. Allowed: PLAIN, SCRAM-SHA-256"),
    ],
)
def test_settings_that_cannot_be(setting, value, message):
    with pytest.raises(InvalidOptionError) as raised:
        log_settings({f"lake.log.{setting}": value})
    assert message in without_secret(raised)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"security.protocol": "SASL_SSL"}, "needs 'lake.log.sasl.username' and 'lake.log.sasl.password'"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "needs 'lake.log.sasl.token'"),
        ({"sasl.username": "me"}, "'lake.log.sasl.username' has no effect with the protocol PLAINTEXT"),
        ({"security.protocol": "PLAINTEXT", "ssl.ca.location": "/ca"}, "has no effect"),
    ],
)
def test_settings_that_do_not_belong_together(settings, message):
    with pytest.raises(InvalidOptionError) as raised:
        log_settings({f"lake.log.{name}": value for name, value in settings.items()})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "servers", ["", "host", "host:port", "kafka://host:9092", "a:1,,b:2", f"me:{SECRET}@h:1"]
)
def test_an_address_that_is_none(servers):
    with pytest.raises(InvalidOptionError, match=r"log-store\.address"):
        Connection.of(servers, {})


@pytest.mark.parametrize("servers", ["host:9092", "a.example:9092, b-2:9093", "127.0.0.1:1", "[::1]:9092"])
def test_an_address(servers):
    assert Connection.of(servers, {}).for_aiokafka()["bootstrap_servers"] == servers.replace(" ", "")


def test_a_secret_is_looked_up_where_a_client_is_made(monkeypatch):
    connection = pickle.loads(pickle.dumps(Connection.of("host:1", PASSWORD)))
    with pytest.raises(LogStoreError, match="cannot be read from env:LOG_PASSWORD"):
        connection.for_aiokafka()
    monkeypatch.setenv("LOG_PASSWORD", SECRET)
    assert connection.for_aiokafka()["sasl_plain_password"] == SECRET
    assert SECRET.encode() not in pickle.dumps(connection)
    assert SECRET not in repr(connection) + repr(vars(connection))


def test_a_secret_in_a_file(tmp_path):
    place = tmp_path / "password"
    connection = Connection.of("host:1", PASSWORD | {"lake.log.sasl.password": f"file:{place}"})
    with pytest.raises(LogStoreError, match=r"cannot be read from file:/.*password"):
        connection.for_aiokafka()
    place.write_text(f"{SECRET}\n")
    assert connection.for_aiokafka()["sasl_plain_password"] == SECRET


def test_certificates_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setenv("KEY_PASSWORD", SECRET)
    settings = {"lake.log.security.protocol": "SSL", "lake.log.ssl.ca.location": str(tmp_path / "gone.pem")}
    with pytest.raises(LogStoreError, match=r"certificates for Kafka at host:1 cannot be used: No such file"):
        Connection.of("host:1", settings).for_aiokafka()
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    settings = {
        "lake.log.security.protocol": "SSL",
        "lake.log.ssl.certificate.location": str(broken),
        "lake.log.ssl.key.password": "env:KEY_PASSWORD",
    }
    with pytest.raises(LogStoreError) as raised:
        Connection.of("host:1", settings).for_aiokafka()
    assert "cannot be used" in without_secret(raised)


def test_an_encrypted_key_never_asks_on_the_terminal(tmp_path, secure_kafka, monkeypatch):
    key = tmp_path / "key.pem"
    encrypt = ["openssl", "genrsa", "-aes256", "-passout", f"pass:{SECRET}", "-out", str(key), "2048"]
    subprocess.run(encrypt, check=True, capture_output=True)
    request = ["openssl", "req", "-x509", "-key", str(key), "-passin", f"pass:{SECRET}", "-subj", "/CN=me"]
    subprocess.run([*request, "-out", str(tmp_path / "me.pem")], check=True, capture_output=True)
    settings = {
        "lake.log.security.protocol": "SSL",
        "lake.log.ssl.certificate.location": str(tmp_path / "me.pem"),
        "lake.log.ssl.key.location": str(key),
    }
    with pytest.raises(LogStoreError, match="the password of the key"):
        Connection.of("host:1", settings).for_aiokafka()
    monkeypatch.setenv("KEY_PASSWORD", SECRET)
    settings["lake.log.ssl.key.password"] = "env:KEY_PASSWORD"
    assert Connection.of("host:1", settings).for_aiokafka()["ssl_context"].check_hostname


def to(kafka, **settings):
    given = {f"lake.log.{name.replace('_', '.')}": value for name, value in settings.items()}
    return Connection.of(kafka.address, {"lake.log.ssl.ca.location": kafka.certificate} | PASSWORD | given)


def test_logging_in_with_a_password(secure_kafka, monkeypatch):
    monkeypatch.setenv("LOG_PASSWORD", SECRET)
    assert asyncio.run(ensure_topic(to(secure_kafka), "plain", 2)) == 2
    assert asyncio.run(end_offsets(to(secure_kafka), "plain")) == {0: 0, 1: 0}
    scram = to(secure_kafka, sasl_mechanism="SCRAM-SHA-256", sasl_username="scram")
    assert asyncio.run(ensure_topic(scram, "plain", 5)) == 2


def test_logging_in_with_a_token(secure_kafka, tmp_path):
    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now = int(time.time())
    claims = {"sub": "bearer", "iat": now, "exp": now + 3600}
    (tmp_path / "token").write_text(f"{part({'alg': 'none'})}.{part(claims)}.")
    settings = {
        "lake.log.security.protocol": "SASL_SSL",
        "lake.log.sasl.mechanism": "OAUTHBEARER",
        "lake.log.sasl.token": f"file:{tmp_path / 'token'}",
        "lake.log.ssl.ca.location": secure_kafka.certificate,
    }
    connection = Connection.of(secure_kafka.address, settings)
    assert asyncio.run(ensure_topic(connection, "token", 1)) == 1


def test_a_wrong_password_is_said_and_not_shown(secure_kafka, monkeypatch):
    monkeypatch.setenv("LOG_PASSWORD", f"{SECRET}-wrong")
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        with pytest.raises(LogStoreError) as raised:
            asyncio.run(ensure_topic(to(secure_kafka, sasl_mechanism=mechanism), "t", 1))
        assert "uthentication failed" in without_secret(raised)


def test_a_certificate_that_nobody_here_signed(secure_kafka, monkeypatch):
    monkeypatch.setenv("LOG_PASSWORD", SECRET)
    with pytest.raises(LogStoreError, match="certificate verify failed"):
        asyncio.run(ensure_topic(Connection.of(secure_kafka.address, PASSWORD), "t", 1))


def test_a_user_without_rights(secure_kafka, monkeypatch):
    monkeypatch.setenv("LOG_PASSWORD", SECRET)
    asyncio.run(ensure_topic(to(secure_kafka), "theirs", 1))
    for topic in ("theirs", "mine"):
        with pytest.raises(LogStoreError) as raised:
            asyncio.run(ensure_topic(to(secure_kafka, sasl_username="guest"), topic, 1))
        assert f"does not allow this user what lakekit needs of topic '{topic}'" in without_secret(raised)


def test_the_session_keeps_the_settings_from_spark(lake):
    with pytest.raises(InvalidOptionError, match="is no reference"):
        lakekit.connect(config={"lake.log.sasl.password": SECRET})
    with pytest.raises(InvalidOptionError, match="has no effect"):
        lakekit.connect(config={"lake.log.sasl.username": "me"})
    assert lake.log_settings == {}
    try:
        assert lakekit.connect(config=PASSWORD) is lake
        lakekit.connect(config={"lake.log.sasl.username": "another", "spark.sql.ansi.enabled": True})
        assert lake.log_settings == PASSWORD | {"lake.log.sasl.username": "another"}
        assert not any("lake.log" in key for key, _ in lake.spark.sparkContext.getConf().getAll())
        assert lake.spark.conf.get("lake.log.sasl.username", "none") == "none"
    finally:
        lake.log_settings.clear()


@pytest.mark.parametrize("key", ["lake.logs.x", "kafka.x", "lake.log"])
def test_a_key_of_neither(key):
    with pytest.raises(InvalidOptionError, match=r"start with 'spark\.' or 'lake\.log\.'"):
        lakekit.connect(config={key: "x"})


def test_a_port_where_nobody_listens_has_a_reason():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        with pytest.raises(LogStoreError) as raised:
            asyncio.run(end_offsets(Connection.of(address, {}), "t"))
    assert f"Kafka at {address} cannot be reached" in raised.value.message
    assert os.strerror(111) in raised.value.message or "Connect" in raised.value.message
