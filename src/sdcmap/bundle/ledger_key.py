"""The key of a ledger: 32 random bytes in a private file, with a check value beside them and in the database.

The file has two lines: `key` with the bytes and `check` with a keyed digest. A key file of an earlier version has the bytes
alone. Earlier versions cannot read a file with a check value, so that they write no entry without its link in the chain.
"""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import NamedTuple

from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import SdcmapError

KEY_NAME = "key"
KEY_BYTES = 32
DIGEST = "sha256"
KEY_FILE = re.compile(rf"key ([0-9a-f]{{{2 * KEY_BYTES}}})\ncheck ([0-9a-f]{{64}})\n")
EARLIER_KEY_FILE = re.compile(rf"([0-9a-f]{{{2 * KEY_BYTES}}})")
HOW_TO_GO_ON = (
    "Restore the whole folder from a backup, or run `sdcmap ledger restart`, which starts a new ledger and records why."
)


class StoredKey(NamedTuple):
    """The key in a file; has_check : False where a version wrote it that had no check values and no chains."""

    key: bytes
    has_check: bool


class UntrustedLedger(SdcmapError):  # noqa: N818
    """A ledger that cannot vouch for itself."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(f"The ledger {folder} cannot vouch for itself: {problem}. {HOW_TO_GO_ON}")


def digest_key(key: bytes) -> str:
    """Return the check value of a key."""
    return hmac.digest(key, b"the check value of the ledger's key", DIGEST).hex()


def read_key(folder: Path) -> StoredKey | None:
    """Return the key in a folder, or None where there is no key; raise `UntrustedLedger` where it is damaged."""
    try:
        text = (folder / KEY_NAME).read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SdcmapError(f"the ledger {folder} cannot be read ({error.strerror}).") from None
    if match := EARLIER_KEY_FILE.fullmatch(text):
        return StoredKey(bytes.fromhex(match[1]), has_check=False)
    match = KEY_FILE.fullmatch(text)
    if match is None or not hmac.compare_digest(digest_key(bytes.fromhex(match[1])), match[2]):
        raise UntrustedLedger(folder, "its key is damaged")
    return StoredKey(bytes.fromhex(match[1]), has_check=True)


def write_key(folder: Path, key: bytes) -> None:
    """Write a key with its check value; a full disk leaves no file, or the file that was there."""
    write_atomically(folder / KEY_NAME, f"key {key.hex()}\ncheck {digest_key(key)}\n", durable=True)
