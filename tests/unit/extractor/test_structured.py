"""Structured data: every valid block survives, whatever its neighbours are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.extractor.structured import json_ld_items, json_values, structured_data
from trawl.extractor.tree import parse


def data_of(html: str, bytes_max: int = 100_000) -> dict[str, Any]:
    return structured_data(parse(html.encode(), nodes_max=100_000, depth_max=150), bytes_max)


def script(text: str) -> str:
    return f'<script type="application/ld+json">{text}</script>'


PRODUCT = '{"@context": "https://schema.org", "@type": "Product", "name": "Lamp // not a comment, {really}"}'


@pytest.mark.parametrize(
    "block",
    [
        PRODUCT,
        f"<![CDATA[{PRODUCT}]]>",
        f"//<![CDATA[\n{PRODUCT}\n//]]>",
        f"/* <![CDATA[ */ {PRODUCT} /* ]]> */",
        f"<!-- {PRODUCT} -->",
        f"{PRODUCT};",
        f"  {PRODUCT} ; ",
        PRODUCT.replace("}", ",}").replace("really,}", "really}"),
        f"[{PRODUCT},]",
        f"/* made by a plugin */ {PRODUCT}",
        PRODUCT.replace('"@type"', '// type\n"@type"'),
        PRODUCT.replace("Lamp", "Lamp\n\t"),
        f'{{"@context": "https://schema.org", "@graph": [{PRODUCT}]}}',
    ],
)
def test_case_37_each_way_to_write_a_block_slightly_wrong_is_read(block: str) -> None:
    found = data_of(script(block))
    assert list(found) == ["schema.org/Product"]
    assert found["schema.org/Product"][0]["name"].endswith("// not a comment, {really}")


def test_case_37_a_broken_block_costs_no_other_block() -> None:
    html = script("{bad") + script(PRODUCT) + script("") + script('{"@type": "Event"') + script('{"@type": "Person"}')
    assert set(data_of(html)) == {"schema.org/Product", "schema.org/Person"}


def test_case_37_concatenated_objects_are_all_read_up_to_the_damage() -> None:
    assert [item["@type"] for item in json_ld_items(['{"@type": "A"}{"@type": "B"};\n{"@type": "C"} {"@type":'])] == [
        "A",
        "B",
        "C",
    ]


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    (item,) = json_ld_items(['{"@type": "A", "x \\ud800": ["y \\udc00", "\\ud83d\\ude00"]}'])
    assert item["x \ufffd"] == ["y \ufffd", "\U0001f600"]
    json.dumps(item, ensure_ascii=False).encode()


def test_a_type_may_be_a_url_or_a_list() -> None:
    html = script('{"@type": "http://schema.org/Recipe"}') + script('{"@type": ["Organization", "schema:Place"]}')
    assert set(data_of(html)) == {"schema.org/Recipe", "schema.org/Organization", "schema.org/Place"}


def test_microdata_is_read_with_nested_items() -> None:
    html = """<div itemscope itemtype="https://schema.org/Product"><h1 itemprop=name>Lamp</h1>
    <img itemprop=image src="/l.jpg"><div itemprop=offers itemscope itemtype="https://schema.org/Offer">
    <meta itemprop=price content="9.99"><span itemprop=priceCurrency>EUR</span></div>
    <i itemprop=color>red</i><i itemprop=color>blue</i></div>"""
    (product,) = data_of(html)["schema.org/Product"]
    assert product["name"] == "Lamp"
    assert product["image"] == "/l.jpg"
    assert product["offers"] == {"@type": "https://schema.org/Offer", "price": "9.99", "priceCurrency": "EUR"}
    assert product["color"] == ["red", "blue"]


def test_opengraph_and_twitter_are_read_and_repeated_properties_are_lists() -> None:
    html = """<meta property="og:title" content="T"><meta property="og:image" content="a">
    <meta property="og:image" content="b">
    <meta name="twitter:card" content="summary">"""
    assert data_of(html) == {
        "opengraph": {"og:title": "T", "og:image": ["a", "b"]},
        "twitter": {"twitter:card": "summary"},
    }


def test_the_result_is_bounded_in_bytes() -> None:
    html = script('{"@type": "Big", "text": "' + "x" * 5000 + '"}') + script(PRODUCT)
    assert set(data_of(html, 1000)) == {"schema.org/Product"}


@pytest.mark.parametrize("tail", ['"no end', "/* no end", "<!-- no end", ";" * 1_000, " " * 1_000 + "//", "]]>;"])
def test_a_value_survives_what_has_no_end_behind_it(tail: str) -> None:
    assert json_values('{"a": [1,], "b": 2} ' + tail) == [{"a": [1], "b": 2}]


@pytest.mark.parametrize(
    "block", ["[" * 50_000, '{"a":' * 50_000, '{"@graph":[' * 500 + "]}" * 500, '{"a": 1e999}', "NaN"]
)
def test_hostile_blocks_cost_little_and_break_nothing(block: str) -> None:
    html = script(block) + script(PRODUCT)
    found = data_of(html)
    assert "schema.org/Product" in found
    assert "Infinity" not in json.dumps(found)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=10),
        lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3),
        max_leaves=10,
    )
)
def test_valid_json_is_read_as_it_is(value: Any) -> None:
    wrapped = [value]
    assert json_values(json.dumps(wrapped)) == [wrapped]
