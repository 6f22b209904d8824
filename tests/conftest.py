"""Fixtures for all tests."""

from tests.site.fixtures import fake_web, web_process

__all__ = ["fake_web", "web_process"]
