"""`python -m services.dedup`."""

from services.common.run import main
from services.dedup.app import build
from trawl.kinds import Stage

main(Stage.DEDUP, build, opens_content=False)
