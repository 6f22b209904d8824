"""`python -m services.indexer`."""

from services.common.run import main
from services.indexer.app import build
from trawl.kinds import Stage

main(Stage.INDEXER, build)
