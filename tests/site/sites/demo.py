from tests.site.model import Site


def demo(host: str = "demo.test") -> Site:
    return Site(host, {})
