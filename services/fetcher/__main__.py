"""`python -m services.fetcher`."""

from services.common.run import main
from services.fetcher.app import build
from trawl.kinds import Stage

main(Stage.FETCHER, build)
