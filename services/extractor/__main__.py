"""`python -m services.extractor`."""

from services.common.run import main
from services.extractor.app import build
from trawl.kinds import Stage

main(Stage.EXTRACTOR, build)
