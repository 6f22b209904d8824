"""Parts of written pages that are generated, each between two marks."""


def with_table(page: str, name: str, table: str, target: str = "docs") -> str:
    """Give a page with a generated table in its place: that which `make TARGET` writes there."""
    begin, end = f"<!-- {name}: begin, written by `make {target}` -->\n", f"<!-- {name}: end -->\n"
    before, _, rest = page.partition(begin)
    return before + begin + table + end + rest.partition(end)[2]
