"""How a Kafka is reached: its address, and settings for security.

Settings come from the session, ``lakekit.connect(config={"lake.log.<setting>": value})``, never from a table.
The value of a secret is a reference, ``env:NAME`` or ``file:/path``. It is looked up where a client is made,
and kept nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakekit.errors import InvalidOptionError, LogStoreError, SetupError, did_you_mean

PREFIX = "lake.log."
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
SECRETS = ("sasl.password", "sasl.token", "ssl.key.password")
CHOICES = {"security.protocol": PROTOCOLS, "sasl.mechanism": MECHANISMS}
KNOWN = (
    *CHOICES,
    "sasl.username",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    *SECRETS,
)
# A name that cannot be one of a variable may be the secret itself.
_REFERENCE = re.compile(r"env:[A-Za-z_]\w*|file:/.+")
_SERVER = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}")


def log_settings(config: Mapping[str, object], before: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the settings of the LogStore in a session's `config`, as texts, under their full names.

    Args:
        config: any settings; those without the prefix are left out.
        before: settings of the session so far, which stay unless `config` has others.

    Raises:
        InvalidOptionError: for an unknown setting, a value it cannot have, a secret that is no reference, or
            settings that do not belong together. No value is shown: it may be a secret in the wrong place.
    """
    given = {key: str(value) for key, value in config.items() if key.startswith(PREFIX)}
    for key, value in given.items():
        name = key.removeprefix(PREFIX)
        if name not in KNOWN:
            raise InvalidOptionError(
                f"There is no setting '{name}' under '{PREFIX}'.",
                did_you_mean(name, KNOWN) or f"There are: {', '.join(KNOWN)}.",
            )
        if name in CHOICES and value not in CHOICES[name]:
            raise InvalidOptionError(
                f"Setting '{key}' has a value it cannot have.", f"Allowed: {', '.join(CHOICES[name])}."
            )
        if name in SECRETS and not _REFERENCE.fullmatch(value):
            raise InvalidOptionError(
                f"Setting '{key}' is no reference to a secret.",
                "Write 'env:NAME' for an environment variable, or 'file:/path' for a file.",
            )
    settings = {**(before or {}), **given}
    _check_together({key.removeprefix(PREFIX): value for key, value in settings.items()})
    return settings


@dataclass(frozen=True)
class Connection:
    """A Kafka and how to log in; holds references and no secrets, so it may be shown and pickled.

    Attributes:
        servers: ``host:port``, or several of them separated by commas.
        settings: those of the LogStore, without the prefix of their names.
    """

    servers: str
    settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, servers: str, config: Mapping[str, str]) -> Connection:
        """Builds a connection from an address and the session's settings under their full names.

        Raises:
            InvalidOptionError: for an address that is none, a setting that cannot be, or settings that do not
                belong together.
        """
        listed = [server.strip() for server in servers.split(",")]
        if not all(_SERVER.fullmatch(server) for server in listed):
            raise InvalidOptionError.bad_value(
                "log-store.address", servers, "host:port, or several of them separated by commas"
            )
        settings = {key.removeprefix(PREFIX): value for key, value in log_settings(config).items()}
        return cls(",".join(listed), settings)

    def for_aiokafka(self) -> dict[str, Any]:
        """Returns the arguments of aiokafka's clients, with secrets looked up.

        Raises:
            SetupError: if aiokafka is not installed.
            LogStoreError: if a secret or a certificate cannot be read.
        """
        _check_installed()
        protocol = self.settings.get("security.protocol", "PLAINTEXT")
        arguments: dict[str, Any] = {"bootstrap_servers": self.servers, "security_protocol": protocol}
        if protocol.startswith("SASL"):
            arguments["sasl_mechanism"] = mechanism = self.settings.get("sasl.mechanism", MECHANISMS[0])
            if mechanism == "OAUTHBEARER":
                arguments["sasl_oauth_token_provider"] = self._token_provider()
            else:
                arguments["sasl_plain_username"] = self.settings["sasl.username"]
                arguments["sasl_plain_password"] = self._secret("sasl.password")
        if protocol.endswith("SSL"):
            arguments["ssl_context"] = self._ssl_context()
        return arguments

    @contextlib.contextmanager
    def failures(self, topic: str) -> Iterator[None]:
        """Turns what aiokafka raises inside into a LogStoreError, and keeps its log from the user's screen.

        Args:
            topic: what the work inside is about.

        Raises:
            SetupError: if aiokafka is not installed.
        """
        _check_installed()
        from aiokafka import errors

        told = _Told()
        logger = logging.getLogger("aiokafka")
        logger.addHandler(told)
        try:
            yield
        except (errors.TopicAuthorizationFailedError, errors.ClusterAuthorizationFailedError) as error:
            raise LogStoreError(
                f"Kafka at {self.servers} does not allow this user what lakekit needs of topic '{topic}'.",
                "Allow Create, Describe, DescribeConfigs, Read and Write on it.",
            ) from error
        except (
            asyncio.TimeoutError,
            errors.KafkaConnectionError,
            errors.KafkaTimeoutError,
            errors.NodeNotReadyError,
            errors.RequestTimedOutError,
        ) as error:
            # aiokafka raises that no server can be used, and only its log says why.
            raise LogStoreError.unreachable(self.servers, told.last or _words(error)) from error
        except errors.KafkaError as error:
            raise LogStoreError.failed(topic, _words(error)) from error
        finally:
            logger.removeHandler(told)

    def _token_provider(self) -> Any:
        from aiokafka.abc import AbstractTokenProvider

        class Provider(AbstractTokenProvider):  # type: ignore[misc]
            """Looks the token up anew for each login: whoever writes it refreshes it."""

            async def token(_self) -> str | None:  # noqa: N805
                return self._secret("sasl.token")

        return Provider()

    def _ssl_context(self) -> ssl.SSLContext:
        certificate = self.settings.get("ssl.certificate.location")
        password = self._secret("ssl.key.password") or ""  # never None: OpenSSL would ask on the terminal
        try:
            context = ssl.create_default_context(cafile=self.settings.get("ssl.ca.location"))
            if certificate is not None:
                context.load_cert_chain(certificate, self.settings.get("ssl.key.location"), lambda: password)
        except OSError as error:
            raise LogStoreError(
                f"The certificates for Kafka at {self.servers} cannot be used: {error.strerror or error}.",
                f"Check the files named by the settings '{PREFIX}ssl.*', and the password of the key.",
            ) from None
        return context

    def _secret(self, name: str) -> str | None:
        reference = self.settings.get(name)
        if reference is None:
            return None
        kind, _, place = reference.partition(":")
        try:
            return os.environ[place] if kind == "env" else Path(place).read_text(encoding="utf-8").strip()
        except (KeyError, OSError, ValueError):
            raise LogStoreError(
                f"The secret of setting '{PREFIX}{name}' cannot be read from {reference}.",
                "Set that variable, or write that file, where the session runs.",
            ) from None


def _check_together(settings: Mapping[str, str]) -> None:
    """Refuses settings that lack others, and such as would silently have no effect."""
    protocol = settings.get("security.protocol", PROTOCOLS[0])
    for kind, fitting in (("sasl.", ("SASL_SSL", "SASL_PLAINTEXT")), ("ssl.", ("SSL", "SASL_SSL"))):
        idle = next((name for name in settings if name.startswith(kind)), None)
        if idle is not None and protocol not in fitting:
            raise InvalidOptionError(
                f"Setting '{PREFIX}{idle}' has no effect with the protocol {protocol}.",
                f"Set '{PREFIX}security.protocol' to {' or '.join(fitting)}.",
            )
    needed: tuple[str, ...] = ()
    if protocol.startswith("SASL"):
        token = settings.get("sasl.mechanism") == "OAUTHBEARER"
        needed = ("sasl.token",) if token else ("sasl.username", "sasl.password")
    missing = [f"'{PREFIX}{name}'" for name in needed if name not in settings]
    if missing:
        raise InvalidOptionError(
            f"The protocol {protocol} needs {' and '.join(missing)}.",
            "Set it in lakekit.connect(config=...).",
        )


def _check_installed() -> None:
    if importlib.util.find_spec("aiokafka") is None:
        raise SetupError(
            "A table with a log needs the package aiokafka, which is not installed.",
            'Install it with: pip install "lakekit[log]".',
        )


class _Told(logging.Handler):
    """Keeps the last error in aiokafka's log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage().strip(": ")


def _words(error: BaseException) -> str:
    """What an error of aiokafka says, without the number and name before it."""
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error.args[0]) if error.args else type(error).__name__
