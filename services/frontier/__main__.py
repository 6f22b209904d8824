"""`python -m services.frontier`."""

from services.common.run import main
from services.frontier.app import build
from trawl.kinds import Stage

main(Stage.FRONTIER, build)
