"""What the five services share: the worker that owns the commit, telemetry, connections."""
