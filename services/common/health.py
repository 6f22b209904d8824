"""Whether a service process is alive and ready, with the reasons why not."""

import time


class Health:
    """Alive until it says otherwise; ready once it has begun, and while nothing that it needs is failing."""

    def __init__(self) -> None:
        self._failing: dict[str, str] = {}
        self._begun = False
        self._dead = ""
        self._began_at = time.monotonic()

    def begun(self) -> None:
        """The service has its connections and takes records."""
        self._begun = True

    def failing(self, what: str, why: str) -> None:
        """Something that the service needs does not work for now."""
        self._failing[what] = why

    def working(self, what: str) -> None:
        """It works again."""
        self._failing.pop(what, None)

    def dead(self, why: str) -> None:
        """The process cannot go on; an orchestrator should start another."""
        self._dead = why

    @property
    def alive(self) -> tuple[bool, str]:
        """Whether the process can go on, and the reason why not."""
        return not self._dead, self._dead or "ok"

    @property
    def ready(self) -> tuple[bool, str]:
        """Whether records are taken, and the reasons why not, one a line."""
        if self._dead:
            return False, self._dead
        if self._failing:
            return False, "\n".join(f"{what}: {why}" for what, why in sorted(self._failing.items()))
        return self._begun, "ok" if self._begun else f"starting for {time.monotonic() - self._began_at:.0f} s"
