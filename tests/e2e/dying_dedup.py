"""`python -m tests.e2e.dying_dedup`: a duplicate gate that is killed between check-and-add and its send."""

import os
import signal
from collections.abc import Sequence

from services.common.run import main
from services.dedup import app
from trawl.dedup.stage import DedupStage
from trawl.kinds import Stage
from trawl.records import Record


async def _step(stage: DedupStage, records: Sequence[Record]) -> list[Sequence[Record]]:
    for record in records:
        await stage.step(record)  # type: ignore[arg-type]  # the topic's record
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process goes on")


if __name__ == "__main__":
    app._step = _step
    main(Stage.DEDUP, app.build, opens_content=False)
