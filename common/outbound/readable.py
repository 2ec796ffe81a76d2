"""HTML as text a model can read: no markup, a line for each block.

Regular expressions that give nothing back, so the time is linear in the page's length whatever the page
is; `html.parser` of Python 3.11 is quadratic in unclosed tags (40 KB of them held it for nine seconds).
"""

import re
from html import unescape
from urllib.parse import unquote

MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)          # a comment
      | <[!?][^>]*+(?:>|\Z)        # a doctype, a processing instruction
      | <(?P<end>/?)(?P<tag>[a-zA-Z][^\s/<>]*+)(?:[^<>"']|"[^"]*+"|'[^']*+')*+>
    """,
    re.VERBOSE | re.DOTALL,
)
RAW = frozenset({"script", "style", "textarea"})  # up to their end tag, or to the page's end
UNSEEN = RAW | {"template", "noscript", "svg", "iframe", "object", "select"}
END_TAGS = {tag: re.compile(rf"</{tag}\b[^>]*+(?:>|\Z)", re.IGNORECASE) for tag in UNSEEN}
BLOCKS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
    }
    | {"figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr"}
    | {"html", "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot"}
    | {"thead", "title", "tr", "ul"}
)
REFERENCE = re.compile(r"&#?\w{1,32};?")
MAILTO = re.compile(r"""\bhref\s*=\s*["']?\s*mailto:(?P<address>[^"'?>\s]{3,254})""", re.IGNORECASE)
SPACES = re.compile(r"[^\S\n]+")
BREAKS = re.compile(r" ?\n[ \n]*")


def readable(html: str) -> str:
    """The words of a page in its order: `- ` before list items, ` | ` between the cells of a row, and behind
    the words of a link to a mail address that address, where they do not say it.
    """
    words: list[str] = []
    mailto, since = "", 0  # of the link that is open
    endless: set[str] = set()
    position = 0
    while markup := MARKUP.search(html, position):
        words.append(_plain(html[position : markup.start()]))
        position = markup.end()
        tag = (markup["tag"] or "").lower()
        if tag in UNSEEN and not markup["end"] and tag not in endless:
            end = END_TAGS[tag].search(html, position)
            if end:
                position = end.end()
            elif tag in RAW:
                position = len(html)
            else:
                endless.add(tag)
        elif tag == "a":
            if mailto and mailto not in "".join(words[since:]):
                words.append(f" ({mailto}) ")
            to = None if markup["end"] else MAILTO.search(markup[0])
            mailto, since = unquote(unescape(to["address"])) if to else "", len(words)
        else:
            words.append(_gap(tag, bool(markup["end"])))
    words.append(_plain(html[position:]))
    return BREAKS.sub("\n", SPACES.sub(" ", "".join(words))).strip()


def _plain(text: str) -> str:
    return REFERENCE.sub(lambda reference: unescape(reference[0]), text).replace("\n", " ")


def _gap(tag: str, is_end: bool) -> str:
    if tag == "li" and not is_end:
        return "\n- "
    if tag in ("td", "th") and is_end:
        return " | "
    return "\n" if tag in BLOCKS else ""
