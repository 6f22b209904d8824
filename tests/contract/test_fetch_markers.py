"""Every store of markers knows which fetches are done."""

from trawl.ports import FetchMarkers


async def test_a_marked_fetch_is_done_and_no_other(markers: FetchMarkers) -> None:
    assert not await markers.done(7)
    await markers.mark(7)
    await markers.mark(7)
    assert [await markers.done(key) for key in (7, 8, 2**63 - 1)] == [True, False, False]
