"""`python -m tests.e2e.buggy_extractor`: the extractor's service with a bug that some pages bring out."""

from collections.abc import Sequence

from services.common.run import main
from services.extractor import app
from trawl.kinds import Stage
from trawl.records import FetchedPage, Record

BAD_PATH = "/n/7"


class Buggy(app.Extracting):
    """Raises on one page, whenever it comes."""

    async def _one(self, record: Record) -> Sequence[Record]:
        if isinstance(record, FetchedPage) and record.url.endswith(BAD_PATH):
            raise ZeroDivisionError(f"{record.url} has no words")
        return await super()._one(record)


if __name__ == "__main__":
    app.Extracting = Buggy  # type: ignore[misc]
    main(Stage.EXTRACTOR, app.build)
