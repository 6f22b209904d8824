"""Keeping a gate up to date with the scopes in the store, whoever else reads them for it at the same time."""

from trawl.frontier.admission import Gate
from trawl.ports import FrontierStore


async def learned(gate: Gate, store: FrontierStore, crawl_id: str) -> None:
    """Teach the gate the scopes that it does not know; raises StoreError.

    Scopes that somebody else taught it meanwhile are not taught twice: how many it knows says where to go on.
    """
    while True:
        version, known = gate.known
        found = await store.scopes(crawl_id, version=version, known=known)
        if gate.known == (version, known):
            gate.learn(*found)
            return
