"""Markdown and text: the conversion table of the requirements, and that nothing is lost or reinterpreted."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from trawl.extractor.markdown import joined_markdown, joined_text, render
from trawl.extractor.tree import parse

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def converted(html: str) -> tuple[str, str]:
    page = parse(html.encode(), nodes_max=100_000, depth_max=150)
    blocks = render(page.body, lambda url: url)
    return joined_markdown(blocks), joined_text(blocks)


def markdown(html: str) -> str:
    return converted(html)[0]


def words_of_rendered(source: str) -> list[str]:
    """The words that a reader of the rendered Markdown sees."""
    page = parse(READER.render(source).encode(), nodes_max=100_000, depth_max=150)
    return joined_text(render(page.body, lambda url: url)).split()


def test_the_example_of_the_requirements_converts_exactly() -> None:
    html = """<h2>About Us</h2>
<p>The <em>Iglesia Ni Cristo</em> is a Christian religion.</p>
<blockquote>"So always be ready..."</blockquote>
<a href="/history">Learn more</a>"""
    assert (
        markdown(html)
        == """## About Us

The *Iglesia Ni Cristo* is a Christian religion.

> "So always be ready..."

[Learn more](/history)"""
    )


@pytest.mark.parametrize(
    ("html", "wanted"),
    [
        ("<h1>Heading</h1>", "# Heading"),
        ("<h3>Heading</h3>", "### Heading"),
        ("<h6>Heading</h6>", "###### Heading"),
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<ul><li>List item</li><li>Next</li></ul>", "- List item\n- Next"),
        ("<ol><li>List item</li><li>Next</li></ol>", "1. List item\n2. Next"),
        ("<ol start=3><li>Three</li></ol>", "3. Three"),
        ('<a href="url">text</a>', "[text](url)"),
        ("<strong>bold</strong> <b>bold</b>", "**bold** **bold**"),
        ("<em>italic</em> <i>italic</i>", "*italic* *italic*"),
        ("<code>code</code>", "`code`"),
        ("<pre>code\n  block</pre>", "```\ncode\n  block\n```"),
        ("<blockquote>quoted <p>text</p></blockquote>", "> quoted\n>\n> text"),
        ('<p><img src="i.png" alt="An image"></p>', "![An image](i.png)"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ("<p>a<br>b</p>", "a\\\nb"),
        ("<p>a</p><hr><p>b</p>", "a\n\n---\n\nb"),
        ("<del>gone</del>", "~~gone~~"),
        ("<dl><dt>Term</dt><dd>Meaning</dd></dl>", "**Term**\n\nMeaning"),
        ("<figure><img src=a.png alt=A><figcaption>Caption</figcaption></figure>", "![A](a.png)\n\nCaption"),
        ("<ul><li><input type=checkbox checked> done</li></ul>", "- [x] done"),
    ],
)
def test_the_conversion_table(html: str, wanted: str) -> None:
    assert markdown(html) == wanted


def test_nested_lists_are_indented_to_their_item() -> None:
    html = "<ol><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li><p>d</p><p>e</p></li></ol>"
    assert markdown(html) == "1. a\n   - b\n     - c\n2. d\n\n   e"


def test_case_31_a_list_inside_a_table_cell_keeps_its_text() -> None:
    md, text = converted(
        "<table><tr><th>Day<th>Open<tr><td>Mo<td><ul><li>10:00-12:00</li><li>13:00-18:00</li></ul></table>"
    )
    assert "| Mo | • 10:00-12:00<br>• 13:00-18:00 |" in md
    assert "10:00-12:00" in text
    assert "13:00-18:00" in text


def test_case_32_spans_are_expanded_so_that_no_cell_shifts() -> None:
    html = """<table><tr><th>A</th><th>B</th><th>C</th></tr><tr><td rowspan=2>x</td><td>1</td><td>2</td></tr>
    <tr><td>3</td><td>4</td></tr><tr><td colspan=2>y</td><td>5</td></tr></table>"""
    md, text = converted(html)
    assert md.splitlines()[2:] == ["| x | 1 | 2 |", "| x | 3 | 4 |", "| y | y | 5 |"]
    assert text.replace("\n", " ") == "A | B | C x | 1 | 2 3 | 4 y | 5"


def test_spans_that_overlap_or_lie_stay_bounded() -> None:
    html = "<table>" + "<tr><td rowspan=999 colspan=999>x</td><td>y</td></tr>" * 50 + "</table>"
    assert len(markdown(html)) < 2_000_000
    assert markdown("<table><tr><td rowspan=0 colspan=-1>a<td>b<tr><td>c<td>d</table>").splitlines()[2] == "| c | d |"


def test_case_33_code_is_kept_byte_by_byte_with_its_language() -> None:
    html = (
        '<pre><code class="language-dockerfile"><span>FROM</span><span> </span><span>golang</span>:1.21<span> </span>AS'
        "<span> </span>build\n<span>\tRUN</span>  x &lt; y *z*\n\n</code></pre>"
    )
    md, text = converted(html)
    assert md == "```dockerfile\nFROM golang:1.21 AS build\n\tRUN  x < y *z*\n```"
    assert text == "FROM golang:1.21 AS build\n\tRUN  x < y *z*"


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ('<pre class="brush: python">x</pre>', "python"),
        ('<div class="highlight-source-rust"><pre>x</pre></div>', "rust"),
        ('<pre data-lang="Go">x</pre>', "go"),
        ('<pre><code class="lang-c++">x</code></pre>', "c++"),
        ('<pre class="text">x</pre>', ""),
    ],
)
def test_the_language_of_code_is_found_where_highlighters_put_it(html: str, language: str) -> None:
    assert markdown(html) == f"```{language}\nx\n```"


def test_code_that_holds_fences_gets_a_longer_one() -> None:
    assert markdown("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````"
    assert markdown("<code>a`b</code>") == "``a`b``"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3*4=12", "3\\*4=12"),
        ("# not a heading", "\\# not a heading"),
        ("[1] see", "\\[1\\] see"),
        ("1. not a list", "1\\. not a list"),
        ("- not a list", "\\- not a list"),
        ("> not a quote", "\\> not a quote"),
        ("snake_case_name", "snake_case_name"),
        ("_under_", "\\_under\\_"),
        ("a < b", "a < b"),
        ("a &lt;b&gt; c", "a \\<b> c"),
        ("C&amp;amp;D", "C\\&amp;D"),
        ("back\\slash", "back\\\\slash"),
        ("`tick`", "\\`tick\\`"),
        ("--- three", "--- three"),
        ("===", "\\==="),
        ("#hashtag", "#hashtag"),
    ],
)
def test_case_35_literal_markdown_characters_are_escaped(text: str, wanted: str) -> None:
    assert markdown(f"<p>{text}</p>") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("#", "\\#"), ("C #", "C \\#"), ("a ###", "a \\###"), ("C#", "C#"), ("<b>#</b>", "**#**")],
)
def test_a_heading_that_ends_like_a_closing_sequence_keeps_its_end(text: str, wanted: str) -> None:
    assert markdown(f"<p>x</p><h2>{text}</h2>") == f"x\n\n## {wanted}"


def test_links_without_words_and_permalinks_are_dropped() -> None:
    assert (
        markdown('<h2>Title<a class=headerlink href="#t">¶</a></h2><p><a href="/x"></a>word</p>') == "## Title\n\nword"
    )


def test_a_link_around_a_card_becomes_its_first_text() -> None:
    html = '<a href="/p/1"><div><h3>Product</h3><p>Blurb</p></div></a>'
    assert markdown(html) == "### [Product](/p/1)\n\nBlurb"


def test_a_table_that_only_lays_out_the_page_is_flattened() -> None:
    html = "<table><tr><td><h2>Left</h2><p>text</p></td><td><p>right</p></td></tr></table>"
    assert markdown(html) == "## Left\n\ntext\n\nright"


def test_bars_in_cells_are_escaped() -> None:
    assert "| a\\|b | `c\\|d` |" in markdown("<table><tr><th>x<th>y<tr><td>a|b<td><code>c|d</code></table>")


def test_white_space_moves_out_of_emphasis() -> None:
    assert markdown("<p>a<b> b </b>c</p>") == "a **b** c"
    assert markdown("<p>a<b> </b>c</p>") == "a c"


def test_urls_with_spaces_and_parentheses_stay_one_destination() -> None:
    assert markdown('<a href="/a (b) c">x</a>') == "[x](/a%20%28b%29%20c)"


_TEXT = st.text(
    st.sampled_from("ab1 *_[]()#>-+.!`~|\\<&=:\"'é") | st.characters(codec="ascii", min_codepoint=33),
    min_size=1,
    max_size=25,
)
_ESCAPES = {ord("<"): "&lt;", ord("&"): "&amp;", ord(">"): "&gt;"}
_INLINE = st.recursive(
    _TEXT.map(lambda text: text.translate(_ESCAPES)),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag.split()[0]}>",
        st.sampled_from(["b", "em", "code", 'a href="/x"', "span"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)
_BLOCK = st.builds(
    lambda tag, parts: f"<{tag}>{' '.join(parts)}</{tag.rpartition('><')[2] or tag}>",
    st.sampled_from(["p", "h2", "div", "ul><li", "ol><li", "blockquote"]),
    st.lists(_INLINE, min_size=1, max_size=3),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_BLOCK, min_size=1, max_size=4).map("".join))
def test_rendered_markdown_has_the_words_of_the_page(html: str) -> None:
    md, text = converted(html)
    squeezed = re.sub(r"\s+", "", "".join(words_of_rendered(md)))
    assert squeezed.replace("\u200b", "") == re.sub(r"\s+", "", text)
