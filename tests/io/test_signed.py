"""Signed statements, checked against the specification's example and by the library itself."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from equivox.core.errors import DamageError, RequestError
from equivox.io.signed import (
    PAYLOAD_TYPE,
    STATEMENT_TYPE,
    envelope,
    key_id,
    pae,
    read_private_key,
    read_public_key,
    signed_statement,
)

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
NAMES = [
    hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + key.public_key().public_bytes_raw()).hexdigest()
    for key in (KEY, OTHER)
]
PAYLOAD = json.dumps({"_type": STATEMENT_TYPE, "subject": []}).encode()
PKCS8 = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)


def opened(document: object, key: Ed25519PrivateKey = KEY) -> object:
    return signed_statement(Path("x.dsse.json"), json.dumps(document).encode(), key.public_key())


def test_the_encoding_is_that_of_the_specification() -> None:
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    # Lengths are of bytes: é has two.
    assert pae("é", "é".encode()) == b"DSSEv1 2 \xc3\xa9 2 \xc3\xa9"


def test_a_signature_holds_without_our_code() -> None:
    made = envelope(PAYLOAD, KEY)
    assert made["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(made["payload"])
    (one,) = made["signatures"]
    text = b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    KEY.public_key().verify(base64.b64decode(one["sig"]), text)
    # RFC 8410: the DER of an Ed25519 public key is 12 fixed bytes and the key.
    der = bytes.fromhex("302a300506032b6570032100") + KEY.public_key().public_bytes_raw()
    assert one["keyid"] == hashlib.sha256(der).hexdigest() == key_id(KEY.public_key())


def test_what_was_signed_is_returned() -> None:
    made = envelope(PAYLOAD, KEY)
    assert opened(made) == json.loads(PAYLOAD)
    # A key's name is a hint: neither a wrong one nor a strange signature beside ours matters.
    other = envelope(PAYLOAD, Ed25519PrivateKey.generate())
    both = made | {"signatures": [*other["signatures"], made["signatures"][0] | {"keyid": "another"}]}
    assert opened(both) == json.loads(PAYLOAD)


def _signed(payload: bytes, kind: str) -> dict[str, object]:
    signature = {"keyid": "", "sig": base64.b64encode(KEY.sign(pae(kind, payload))).decode()}
    return {"payloadType": kind, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}


def changed(name: str) -> tuple[dict[str, object], str]:
    made = envelope(PAYLOAD, KEY)
    (one,) = made["signatures"]
    spoilt = bytearray(base64.b64decode(one["sig"]))
    spoilt[5] ^= 1
    return {
        "payload": (made | {"payload": base64.b64encode(PAYLOAD.replace(b"[]", b"[ ]")).decode()}, "changed after"),
        "type": (made | {"payloadType": "text/plain"}, "changed after"),
        "signature": (made | {"signatures": [one | {"sig": base64.b64encode(spoilt).decode()}]}, "changed after"),
        # The SHA-256 of the public keys of RFC 8410's form, to sixteen digits.
        "another key": (envelope(PAYLOAD, OTHER), f"another key signed it: {NAMES[1]:.16}, not {NAMES[0]:.16};"),
        "another key under our name": (
            made | {"signatures": [envelope(PAYLOAD, Ed25519PrivateKey.generate())["signatures"][0] | {"keyid": "x"}]},
            "another key",
        ),
        "no signature": (made | {"signatures": []}, "another key signed it: none"),
        "no base64": (made | {"payload": "é"}, "no signed statement"),
        "signs that base64 has not": (made | {"payload": f"*{made['payload']}"}, "no signed statement"),
        "no payload": ({"payloadType": PAYLOAD_TYPE, "signatures": []}, "no signed statement"),
        "signatures are a number": (made | {"signatures": 3}, "no signed statement"),
        "signed, but no statement": (envelope(b'{"_type": "else"}', KEY), "no in-toto statement"),
        "no type": (_signed(PAYLOAD, "text/plain"), "no in-toto statement"),
        "signed, but no JSON": (envelope(b"\xff", KEY), "no in-toto statement"),
    }[name]


@pytest.mark.parametrize(
    "name",
    ["payload", "type", "signature", "another key", "another key under our name", "no signature", "no base64",
     "signs that base64 has not", "no payload", "signatures are a number", "no type", "signed, but no statement",
     "signed, but no JSON"],
)  # fmt: skip
def test_a_change_is_named(name: str) -> None:
    document, said = changed(name)
    with pytest.raises(DamageError, match=said):
        opened(document)


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b"{", b"[" * 100_000, b'"\\ud800"'])
def test_what_is_no_envelope_is_refused(content: bytes) -> None:
    with pytest.raises(DamageError, match="no signed statement"):
        signed_statement(Path("x"), content, KEY.public_key())


def test_keys_are_read(tmp_path: Path) -> None:
    private, public = tmp_path / "key.pem", tmp_path / "public.pem"
    private.write_bytes(KEY.private_bytes(*PKCS8, serialization.NoEncryption()))
    public.write_bytes(
        KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    assert read_private_key(private).private_bytes_raw() == bytes(range(32))
    assert read_public_key(public) == KEY.public_key()
    for read, path in ((read_private_key, public), (read_public_key, private)):
        with pytest.raises(RequestError, match="openssl"):
            read(path)


def test_other_keys_are_refused_in_one_line(tmp_path: Path) -> None:
    large = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kinds = {
        "rsa": large.private_bytes(*PKCS8, serialization.NoEncryption()),
        "ec": ec.generate_private_key(ec.SECP256R1()).private_bytes(*PKCS8, serialization.NoEncryption()),
        "password": KEY.private_bytes(*PKCS8, serialization.BestAvailableEncryption(b"x")),
        "text": b"no key" + b"x" * 999_994,
        "large": b"x" * 1_000_001,
    }
    for name, content in kinds.items():
        path = tmp_path / name
        path.write_bytes(content)
        words = "no file of at most 1,000,000 bytes" if name == "large" else "openssl"
        with pytest.raises(RequestError, match=f"`sign`.*{words}"):
            read_private_key(path)
    with pytest.raises(RequestError, match="is a folder; name the file"):
        read_private_key(tmp_path)
    with pytest.raises(RequestError, match=r"RSA.*not Ed25519"):
        read_private_key(tmp_path / "rsa")
    public = tmp_path / "rsa.pub"
    public.write_bytes(
        large.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(RequestError, match=r"RSA.*not Ed25519"):
        read_public_key(public)
    for missing in (tmp_path / "none.pem", tmp_path, Path("/dev/zero")):
        with pytest.raises(RequestError, match="`key`"):
            read_public_key(missing)
