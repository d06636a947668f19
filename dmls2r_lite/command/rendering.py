"""Markdown and what cells show as HTML: formulas without a script, tables without styles, no foreign tag."""

from __future__ import annotations

import re
from collections import defaultdict
from html import escape, unescape
from posixpath import normpath

from bs4 import BeautifulSoup, Comment, Tag
from math_core import LatexError, LatexToMathML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

OF_TABLES = {"table": (), "thead": (), "tbody": (), "tr": (), "th": ("colspan", "rowspan"), "td": ()}
OWN_ID = re.compile(r"&lt;a id=&quot;([a-z0-9-]+)&quot;&gt;&lt;/a&gt;")  # at the beginning of a heading
FOLDING = re.compile(r"(</?(?:details|summary)>)")  # the only HTML that a text may hold
EXTERNAL = re.compile(r"[a-z]+:", re.IGNORECASE)
NUMBER = re.compile(
    r"[-+−–]?(± )?\d[\d.,]*(e[-+]\d+)?( ?%| ± \d[\d.,]*(e[-+]\d+)?( \(\d+\))?| [▼●▲]| of \d+)?"
)
UNKNOWN = ("", "–", "NaN", "nan", "None")  # in a column of numbers as well
LONG_TEXT = 40  # characters, from which on a column keeps a width to be read in
SCROLLS = '<div class="scrolls" tabindex="0" role="group" aria-label="{}">{}</div>\n'
_latex = LatexToMathML(fancy_error=False)


def to_mathml(latex: str, block: bool = False) -> str:
    """A formula as MathML; as code if it cannot be read."""
    if r"\tag" in latex:
        latex = rf"\begin{{equation}}{latex}\end{{equation}}"
    try:
        return _latex.convert_with_local_state(latex, displaystyle=block)
    except LatexError:
        return f"<code>{escape(latex)}</code>"


class PageRenderer(IPythonRenderer):
    """From Markdown to HTML.

    Attributes
    ----------
    sections : list of (str, str)
        Id and text of each heading of the second level.
    """

    def __init__(self, trusted: bool = True, anchors: set[str] | None = None) -> None:
        """Take `trusted` for a text of a cell: in what it computed only links within the course are links.

        Headings get ids that are not yet in `anchors`.
        """
        super().__init__(escape=False, allow_harmful_protocols=False, exclude_anchor_links=True)
        self.trusted = trusted
        self.anchors = set() if anchors is None else anchors
        self.sections: list[tuple[str, str]] = []

    def inline_math(self, body: str) -> str:
        """Within a line."""
        return to_mathml(body)

    def block_math(self, body: str) -> str:
        """On lines of its own."""
        return SCROLLS.format("Formula", to_mathml(body, block=True))

    def latex_environment(self, name: str, body: str) -> str:
        """On lines of its own, as in LaTeX."""
        return self.block_math(rf"\begin{{{name}}}{body}\end{{{name}}}")

    def inline_html(self, html: str) -> str:
        """Let folding through, and show any other HTML as it is written."""
        return "".join(p if FOLDING.fullmatch(p) else escape(p) for p in FOLDING.split(html))

    def block_html(self, html: str) -> str:
        """Treat it like `inline_html`."""
        return self.inline_html(html) + "\n"

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Give each an id: its own, or what JupyterLab makes of its words."""
        own = OWN_ID.match(text)
        text = text[own.end() :] if own else text
        plain = re.sub(r"<[^>]+>", "", text)
        anchor = own[1] if own else unescape(plain).replace(" ", "-")
        if anchor in self.anchors:  # an id is unique in a page
            return f"<h{level}>{text}</h{level}>\n"
        self.anchors.add(anchor)
        if level == 2:
            self.sections.append((anchor, unescape(plain)))
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Lead to pages in place of notebooks; `settle_links` decides whether there is one."""
        if EXTERNAL.match(url) or url.startswith("//"):
            return super().link(text, url, title) if self.trusted else text
        if url.startswith("#"):
            return super().link(text, url, title)
        return f'<a data-page="{escape(page_of(url))}">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Show its text only: a page holds all its pictures itself."""
        return super().image(text, url, title) if url.startswith("data:image/") and self.trusted else text

    def table(self, text: str) -> str:
        """Let a wide one be scrolled."""
        soup = BeautifulSoup(f"<table>\n{text}</table>", "html.parser")
        _mark_columns(soup)
        return SCROLLS.format("Table", soup)

    def table_cell(self, text: str, align: str | None = None, head: bool = False) -> str:
        """Numbers, and what else is aligned to the right, get a class."""
        number = ' class="number"' if align == "right" else ""
        return f'<th scope="col"{number}>{text}</th>' if head and text.strip() else f"<td{number}>{text}</td>"


def page_of(url: str) -> str:
    """Where a link to a notebook or a text leads in a folder of pages."""
    path, mark, anchor = url.partition("#")
    return re.sub(r"\.(ipynb|md)$", ".html", normpath(path)) + mark + anchor


def markdown_to_html(text: str, renderer: PageRenderer | None = None) -> str:
    """Markdown with formulas as HTML."""
    return MarkdownWithMath(renderer or PageRenderer()).render(text)


def markdown_to_text(text: str) -> str:
    """Markdown as the words that a reader sees, on one line."""
    soup = BeautifulSoup(markdown_to_html(text, PageRenderer(trusted=False)), "html.parser")
    return " ".join(soup.get_text().split())


def table_to_html(html: str, label: str = "Table") -> str:
    """The tables of an output with their texts only: no style, no script, no empty heading."""
    soup = BeautifulSoup(html, "html.parser")
    for foreign in soup.find_all(["style", "script"]) + soup.find_all(
        string=lambda s: isinstance(s, Comment)
    ):
        foreign.extract()
    for tag in soup.find_all(True):
        if tag.name not in OF_TABLES:
            tag.unwrap()
            continue
        tag.attrs = {name: tag[name] for name in OF_TABLES[tag.name] if str(tag.get(name)).isdigit()}
        if tag.name == "th":
            if tag.get_text(strip=True):
                tag["scope"] = "col" if tag.find_parent("thead") else "row"
            else:
                tag.name = "td"
    tables = soup.find_all("table", recursive=False)
    for table in tables:
        _mark_columns(table)
    return "".join(SCROLLS.format(escape(label), table) for table in tables)


def _mark_columns(table: Tag) -> None:
    """Columns of numbers, with their headings, and columns of long texts get a class."""
    columns: dict[int, list[Tag]] = defaultdict(list)  # counted from the right: rows are named at the left
    for row in table.find_all("tr"):
        cells = row.find_all(["th", "td"])
        if not any(cell.get("colspan") for cell in cells):
            for place, cell in enumerate(reversed(cells)):
                columns[place].append(cell)
    for column in columns.values():
        texts = [
            cell.get_text(strip=True)
            for cell in column
            if cell.name == "td" and not cell.find_parent("thead")
        ]
        known = [text for text in texts if text not in UNKNOWN]
        if known and all(map(NUMBER.fullmatch, known)):
            style = "number"
        elif max(map(len, texts), default=0) > LONG_TEXT:
            style = "text"
        else:
            continue
        for cell in column:
            cell["class"] = style


def code_to_html(code: str) -> str:
    """Python with its keywords, texts and comments marked."""
    html = highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))
    return f'<pre class="code" tabindex="0">{html}</pre>'


def settle_links(html: str, pages: set[str]) -> str:
    """Let the marked links of a page lead to the pages that there are, and to nothing else.

    Parameters
    ----------
    html : str
    pages : set of str
        Paths from the page's folder.

    Returns
    -------
    str
    """

    def settle(link: re.Match[str]) -> str:
        exists = unescape(link[1]).partition("#")[0] in pages
        return f'<a data-page="{link[1]}"' + (f' href="{link[1]}"' if exists else "")

    return re.sub(r'<a data-page="([^"]*)"(?: href="[^"]*")?', settle, html)


def linked_pages(html: str) -> set[str]:
    """Paths that a page's marked links would lead to."""
    return {unescape(link).partition("#")[0] for link in re.findall(r'<a data-page="([^"]*)"', html)}
