"""Markdown and tables as HTML: formulas without a script, no foreign markup."""

from __future__ import annotations

import re
from html import escape, unescape
from posixpath import normpath

import bleach
from bs4 import BeautifulSoup
from math_core import LatexError, LatexToMathML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

LET_THROUGH = re.compile(r'(</?(?:details|summary)>|<a id="[a-z0-9-]+">|</a>)')  # folding, and marks of terms
NUMBER = re.compile(r"<td>(?=([-+−–±\d.,e%()▼●▲\s]|of|NaN|nan|None)*</td>)")
LONG_TEXT = re.compile(r"<td>(?=[^<]{40})")  # a column keeps a width in which this can be read
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
    """From Markdown to HTML. Any tag but those of folding is shown as it is written."""

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
        """Escape what is not let through."""
        return "".join(p if LET_THROUGH.fullmatch(p) else escape(p) for p in LET_THROUGH.split(html))

    block_html = inline_html

    def heading(self, text: str, level: int, **attrs: object) -> str:
        """Give each the id that JupyterLab makes of its words, unless it has a mark."""
        words = unescape(re.sub("<[^>]+>", "", text))
        anchor = "" if "<a id=" in text else f' id="{escape(words.replace(" ", "-"))}"'
        return f"<h{level}{anchor}>{text}</h{level}>\n"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        """Lead to pages in place of notebooks and texts; `link_pages` decides whether there is one."""
        if url.startswith(("https://", "http://", "#")):
            return super().link(text, url, title)
        page = re.sub(r"\.(ipynb|md)(?=#|$)", ".html", normpath(url))
        return text if ":" in url or url.startswith("//") else f'<a data-page="{escape(page)}">{text}</a>'

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Show its words: the pictures of a page are outputs."""
        return text

    def table(self, text: str) -> str:
        """Let a wide one be scrolled."""
        return _finish(f"<table>{text}</table>", "Table")


_markdown = MarkdownWithMath(
    PageRenderer(escape=False, allow_harmful_protocols=False, exclude_anchor_links=True)
)


def markdown_to_html(text: str) -> str:
    """Markdown with formulas as HTML."""
    return _markdown.render(text)


def markdown_to_text(text: str) -> str:
    """Markdown as the words that a reader sees, on one line."""
    return " ".join(BeautifulSoup(markdown_to_html(text), "html.parser").get_text().split())


def table_to_html(html: str, label: str = "Table") -> str:
    """The tables of an output with their words only: no style, no script, no link."""
    tags = {"table", "thead", "tbody", "tr", "th", "td"}
    clean = bleach.clean(html, tags, ["colspan", "rowspan"], strip=True)
    return "".join(
        _finish(table, label) for table in re.findall("<table>.*?</table>", clean, flags=re.DOTALL)
    )


def _finish(table: str, label: str) -> str:
    """Let a wide one be scrolled, mark numbers and long texts; an empty heading is none."""
    table = re.sub(r"<th([^>]*)>\s*</th>", r"<td\1></td>", table)
    table = NUMBER.sub('<td class="number">', LONG_TEXT.sub('<td class="text">', table))
    return SCROLLS.format(escape(label), table)
