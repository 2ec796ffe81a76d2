"""Template tags of people's own pages: `{% load web %}`."""

from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from runs.admin import words

register = template.Library()


def _link(self: Any, tokens: Any, index: int, options: Any, env: Any) -> Any:
    """A link of an agent's: it opens apart, and tells the other side nothing."""
    tokens[index].attrSet("rel", "nofollow noopener noreferrer")
    tokens[index].attrSet("target", "_blank")
    return self.renderToken(tokens, index, options, env)


# No HTML passes, links lead only where browsers may be sent, and nothing is fetched for anybody: no images.
MARKDOWN = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
MARKDOWN.disable(["image", "html_block", "html_inline"])
MARKDOWN.add_render_rule("link_open", _link)


@register.filter
def markdown(text: str) -> SafeString:
    """An agent's Markdown as HTML. What it has of HTML is shown as text."""
    html: SafeString = mark_safe(MARKDOWN.render(text))  # noqa: S308 - the renderer above escapes
    return html


@register.filter
def words_of(text: str) -> str:
    """The text with characters that hide or reorder others spelled out."""
    return words.visible(text)
