"""The outside world behind the ports; the only rooms where a client library is imported."""
