"""A folder elsewhere, through fsspec: which may be opened, what is in it, one file's bytes."""

import importlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import SplitResult, unquote, urlsplit

import fsspec  # type: ignore[import-untyped]

from reliability.conf import conf, folder_logins
from reliability.errors import AddressRefused, NoAnswer
from reliability.outbound import check_host

PROTOCOLS = frozenset({"file", "sftp", "s3"})
URL_CHARACTERS_MAX = 500


class FolderRefused(Exception):
    """The folder may not be read, or cannot; the text tells a person why and what to do."""


@dataclass(frozen=True)
class Seen:
    """One regular file as the place lists it; ``modified`` is opaque and only compared."""

    name: str
    path: str
    size_bytes: int
    modified: str
    inode: int | None


@dataclass(frozen=True)
class Place:
    """A folder that may be read."""

    system: Any
    path: str

    def end(self) -> None:
        """Hang up: an SFTP connection has a thread that would outlive the look."""
        if client := getattr(self.system, "client", None):
            client.close()


def folder_error(url: str) -> str:
    """Say why a URL may not be a source's folder, or nothing; asks nobody."""
    try:
        _parse(url)
    except FolderRefused as refused:
        return str(refused)
    return ""


def open_place(url: str) -> Place:
    """Connect to a folder. Raises ``FolderRefused``.

    Of this machine only what lies under ``conf().folder_root``; elsewhere with the login the
    settings have for this very host or bucket.
    """
    parts = _parse(url)
    try:
        match parts.scheme:
            case "file":
                return _local(parts)
            case "sftp":
                return _sftp(parts)
        return _other(parts)
    except ImportError:
        raise FolderRefused(
            f"install reliability[{parts.scheme}] to read {parts.scheme} folders"
        ) from None
    except (AddressRefused, NoAnswer) as error:
        raise FolderRefused(str(error)) from None
    except _failures() as error:
        raise _unreadable(error) from None


def listed(place: Place) -> Iterator[Seen]:
    """Yield the regular files right in the folder: no links, no folders. Raises ``FolderRefused``."""
    try:
        found = place.system.ls(place.path, detail=True)
    except _failures() as error:
        raise _unreadable(error) from None
    for one in found[: conf().folder_files_max + 1]:
        if one.get("type") == "file" and not one.get("islink"):
            name = str(one["name"]).rstrip("/").rpartition("/")[2]
            yield Seen(
                name, one["name"], int(one["size"] or 0), _modified(one), one.get("ino")
            )
    if len(found) > conf().folder_files_max:
        raise FolderRefused(
            f"more than {conf().folder_files_max:,} files lie there: move old ones away"
        )


@contextmanager
def opened(place: Place, seen: Seen) -> Iterator[IO[bytes]]:
    """Open a listed file for reading. Raises ``FolderRefused``, also where it was exchanged."""
    try:
        with place.system.open(seen.path, "rb") as stream:
            _refuse_another(stream, seen)
            yield stream
    except _failures() as error:
        raise _unreadable(error) from None


def _refuse_another(stream: Any, seen: Seen) -> None:
    """On this machine a link may have taken the file's place since it was listed."""
    if seen.inode is None:
        return
    now = os.fstat(stream.fileno())
    if now.st_ino != seen.inode or not stat.S_ISREG(now.st_mode):
        raise FolderRefused(f"{seen.name} became another file while it was opened")


def _parse(url: str) -> SplitResult:
    if len(url) > URL_CHARACTERS_MAX or not url.isprintable():
        raise FolderRefused(f"the folder's URL is longer than {URL_CHARACTERS_MAX} characters")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise FolderRefused("the folder's URL cannot be read") from None
    if parts.scheme not in PROTOCOLS:
        known = ", ".join(f"{name}://" for name in sorted(PROTOCOLS))
        raise FolderRefused(f"a folder's URL begins with one of {known}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise FolderRefused(
            "the URL holds no user, password or query: they belong in settings"
        )
    if ".." in unquote(parts.path).split("/"):
        raise FolderRefused("the URL's path holds no ..")
    if (parts.scheme == "file") == bool(parts.netloc):
        raise FolderRefused("write file:///folder, sftp://host/folder or s3://bucket/folder")
    return parts


def _local(parts: SplitResult) -> Place:
    root = conf().folder_root
    if not root:
        raise FolderRefused("RELIABILITY_FOLDER_ROOT is not set: no local folder may be read")
    real, base = Path(unquote(parts.path)).resolve(), Path(root).resolve()
    if not real.is_relative_to(base):
        raise FolderRefused("the folder lies outside RELIABILITY_FOLDER_ROOT")
    if not real.is_dir():
        raise FolderRefused("there is no such folder")
    return Place(fsspec.filesystem("file"), str(real))


def _sftp(parts: SplitResult) -> Place:
    login = dict(_login(parts))
    host, key = parts.hostname or "", login.pop("host_key", "")
    if not key:
        raise FolderRefused(
            "its login names no host_key (SHA256:…): whoever answered would get the password"
        )
    check_host(host)
    seconds = conf().outbound_time.total_seconds()
    system = fsspec.filesystem(
        "sftp", host=host, port=parts.port or 22, host_key_policy=_pinned(key), timeout=seconds,
        banner_timeout=seconds, auth_timeout=seconds, allow_agent=False, look_for_keys=False,
        skip_instance_cache=True, **login,
    )  # fmt: skip
    system.ftp.get_channel().settimeout(seconds)
    return Place(system, unquote(parts.path) or "/")


def _pinned(fingerprint: str) -> Any:
    """Build the policy that accepts this one key, whatever known_hosts says."""
    paramiko: Any = importlib.import_module("paramiko")

    class Pinned(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
        def missing_host_key(self, _client: Any, hostname: str, key: Any) -> None:
            if key.fingerprint != fingerprint:
                raise paramiko.SSHException(f"{hostname} has another host key")

    return Pinned()


def _other(parts: SplitResult) -> Place:
    login = _login(parts) if parts.scheme == "s3" else {}
    seconds = conf().outbound_time.total_seconds()
    limits = {"connect_timeout": seconds, "read_timeout": seconds}
    more = {"config_kwargs": limits} if parts.scheme == "s3" else {}
    system = fsspec.filesystem(parts.scheme, skip_instance_cache=True, **more, **login)
    return Place(system, f"{parts.netloc}{unquote(parts.path)}")


def _login(parts: SplitResult) -> Mapping[str, str]:
    place = f"{parts.scheme}://{parts.netloc}"
    login = folder_logins().get(place)
    if login is None:
        raise FolderRefused(f"RELIABILITY_FOLDER_LOGINS has no login for {place}")
    return login


def _modified(one: Mapping[str, Any]) -> str:
    found = (one.get(name) for name in ("mtime", "LastModified", "created"))
    return str(next((value for value in found if value is not None), ""))


def _failures() -> tuple[type[Exception], ...]:
    """Return what the libraries in use raise; those that are not loaded raise nothing."""
    own = (("paramiko", "SSHException"), ("botocore.exceptions", "BotoCoreError"))
    loaded = ((sys.modules.get(module), name) for module, name in own)
    return (OSError, EOFError, *(getattr(module, name) for module, name in loaded if module))


def _unreadable(error: Exception) -> FolderRefused:
    """Name what went wrong; of a library's error only its kind, which can tell no secret."""
    told = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return FolderRefused(f"the folder cannot be read: {told or type(error).__name__}")
