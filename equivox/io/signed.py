"""Signed statements: an in-toto Statement in a DSSE envelope, signed with an Ed25519 key.

Sources: in-toto Attestation Framework v1 (https://github.com/in-toto/attestation, spec/v1) and DSSE
(https://github.com/secure-systems-lab/dsse). Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equivox.core.errors import DamageError, RequestError
from equivox.core.files import refuse_unusable_file
from equivox.core.text import parsed_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"

LARGEST = 1_000_000
"""The largest file of a key or a statement that is read, in bytes."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's pre-authentication encoding of a payload and its type.

    >>> pae("http://example.com/HelloWorld", b"hello world")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Return the Ed25519 key to sign with; RequestError, naming the file, for any other file."""
    serialization, ed25519 = _cryptography()
    load = partial(serialization.load_pem_private_key, password=None)
    fix = "`openssl genpkey -algorithm ed25519` makes a private key without a password"
    key: Ed25519PrivateKey = _key(path, "sign", load, ed25519.Ed25519PrivateKey, fix)
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Return the Ed25519 key to check with; RequestError, naming the file, for any other file."""
    serialization, ed25519 = _cryptography()
    fix = "`openssl pkey -in PRIVATE -pubout` gives the public key of an Ed25519 key"
    key: Ed25519PublicKey = _key(path, "key", serialization.load_pem_public_key, ed25519.Ed25519PublicKey, fix)
    return key


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise RequestError(
            'signatures need the package cryptography; install it with `pip install "equivox[sign]"`'
        ) from None
    return serialization, ed25519


def _key(path: Path, option: str, load: Callable[[bytes], Any], kind: type[Any], fix: str) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    content = read_small_file(path, option)
    try:
        key = load(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise RequestError(f"`{option}` {path} holds no such key in PEM; {fix}") from None
    if not isinstance(key, kind):
        raise RequestError(f"`{option}` {path} holds {type(key).__name__}, which is not Ed25519; {fix}")
    return key


def read_small_file(path: Path, option: str) -> bytes:
    """Return the bytes of a file that an option names; RequestError if it cannot be read or is larger than a key."""
    refuse_unusable_file(path, option)
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            raise RequestError(f"`{option}` {path} is not there, or no file of at most {LARGEST:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f"`{option}` {path} cannot be read: {error.strerror or error}") from None


def key_id(key: Ed25519PublicKey) -> str:
    """Return the name of a key: the SHA-256 of its SubjectPublicKeyInfo in DER, in hexadecimal digits."""
    serialization, _ = _cryptography()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def envelope(payload: bytes, key: Ed25519PrivateKey) -> dict[str, Any]:
    """Return the DSSE envelope of a payload of the type `PAYLOAD_TYPE`, signed with `key`."""
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(pae(PAYLOAD_TYPE, payload))).decode(),
            }
        ],
    }


def signed_statement(path: Path, content: bytes, key: Ed25519PublicKey) -> Mapping[str, Any]:
    """Return the statement in the envelope `content`, which was read from `path`, if `key` signed it.

    Any signature of `key` will do; what an envelope calls its keys decides nothing. DamageError for what is no
    envelope, for another key, and for a payload or a signature that changed.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        document = parsed_json(content)
        kind, payload = document["payloadType"], _decoded(document["payload"])
        signatures = [(str(one.get("keyid", "")), _decoded(one["sig"])) for one in document["signatures"]]
        signed = pae(kind, payload)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(path, f"it is no signed statement: {type(error).__name__} {error}") from None
    for _, signature in signatures:
        try:
            key.verify(signature, signed)
        except InvalidSignature:
            continue
        return _statement(path, kind, payload)
    ours, there = key_id(key), [name for name, _ in signatures]
    if ours in there:
        raise _refused(path, "its payload or its signature changed after it was signed")
    names = ", ".join(name[:16] for name in there) or "none"
    raise _refused(path, f"another key signed it: {names}, not {ours[:16]}")


def _refused(path: Path, why: str) -> DamageError:
    return DamageError(f"{path} proves nothing: {why}; ask the sender for the statement again", path, why)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is no base64: {error}") from None


def _statement(path: Path, kind: str, payload: bytes) -> Mapping[str, Any]:
    try:
        document = parsed_json(payload)
    except ValueError:
        document = None
    if kind != PAYLOAD_TYPE or not isinstance(document, dict) or document.get("_type") != STATEMENT_TYPE:
        raise _refused(path, "it is signed, but it is no in-toto statement, version 1")
    return document
