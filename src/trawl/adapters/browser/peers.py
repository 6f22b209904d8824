"""Who is at the other end of a connection from this machine."""

import asyncio
import os
from ipaddress import ip_address
from pathlib import Path
from typing import Final

_TABLES: Final = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
_LOCAL: Final = 1
"""The column of the near end's address and port."""
_USER: Final = 7
"""The column of the number of the user whose socket it is."""


def is_ours(writer: asyncio.StreamWriter) -> bool:
    """Whether the process that connected is of this user; True where the system does not tell."""
    peer = writer.get_extra_info("peername")
    if peer is None:
        return False
    address = ip_address(peer[0].partition("%")[0])
    words = address.packed
    turned = b"".join(words[at : at + 4][::-1] for at in range(0, len(words), 4)).hex().upper()
    wanted = f"{turned}:{peer[1]:04X}"
    try:
        lines = _TABLES[address.version].read_text().splitlines()[1:]
    except OSError:
        return True
    users = {columns[_USER] for columns in map(str.split, lines) if columns[_LOCAL] == wanted}
    return not users or str(os.getuid()) in users
