"""Send mail through Django's mail back end."""

import re
from contextlib import suppress
from smtplib import SMTPServerDisconnected
from ssl import SSLError
from typing import Annotated, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage, get_connection
from django.core.validators import validate_email
from django.utils.encoding import punycode

from policy.provenance.infer import Declaration
from runs.tools import leaving
from runs.tools.base import NoAnswer, ToolContext, ToolError
from runs.tools.previews import Preview
from runs.tools.registry import tool

MAX_RECIPIENTS = 50
# Before the @. Quoted ones may be written in many ways, and by % and ! a mail server may be told to send the
# mail on to another host.
LOCAL = re.compile(r"[A-Za-z0-9.#$&'*+/=?^_`{|}~-]+")
SILENT = (TimeoutError, ConnectionError, SSLError, SMTPServerDisconnected)  # no answer, in place of a refusal
ENCODED = "=?"  # begins an encoded word (RFC 2047), which mail programs show as what it stands for


@tool(
    description="Send an e-mail in the user's name.",
    risk_level="high",
    mutating=True,
    supports_parallel=False,
    capabilities=("send_email",),
    declared=Declaration(
        output_trust="organization",
        steering=frozenset({"to"}),
        content=frozenset({"subject", "body"}),
        deeds=frozenset({"send"}),
        origin="declared",
    ),
    preview=Preview("mail", {"to": "to", "subject": "subject", "body": "body"}),
)
def send_email(
    run: ToolContext,
    *,
    to: Annotated[list[str], "The recipients' addresses", {"minItems": 1, "maxItems": MAX_RECIPIENTS}],
    subject: Annotated[str, "The subject line", {"maxLength": 500}],
    body: Annotated[str, "The text"],
) -> dict[str, Any]:
    """Send one message. Its Message-ID is made of the idempotency key, so that a copy can be told."""
    for address in to:
        try:
            validate_email(address if _on_one_line(address) else "")
        except ValidationError:
            raise ToolError(f"'{address}' is not an e-mail address.", "INVALID_ADDRESS") from None
        if not _as_sent(address):
            said = f"'{address}' is written otherwise than it would be sent: use the plain address."
            raise ToolError(said, "INVALID_ADDRESS")
    if not _on_one_line(subject):
        raise ToolError("The subject may not hold line breaks.", "INVALID_SUBJECT")
    if ENCODED in subject:
        raise ToolError(f"The subject may not hold {ENCODED}, which begins encoded words.", "INVALID_SUBJECT")
    message_id = f"<{run.idempotency_key[:32]}@{settings.MAIL_DOMAIN}>"
    sent = _sent(EmailMessage(subject, body, to=to, headers={"Message-ID": message_id}))
    return {"sent": sent, "to": to, "message_id": message_id}


def _sent(mail: EmailMessage) -> int:
    """How many have been sent. Raises ToolError; NoAnswer where the server said nothing more in the middle of
    it, and may have taken the mail.
    """
    mail.connection = connection = get_connection()
    try:
        connection.open()
        if (server := getattr(connection, "connection", None)) is not None:
            server.ehlo_or_helo_if_needed()  # the server's greeting is whole
        leaving.once_more()
        return mail.send()
    except OSError as error:
        lost = isinstance(error, SILENT) and getattr(connection, "connection", None) is not None
        failure = NoAnswer if lost else ToolError
        said = f"The mail server could not be used: {type(error).__name__}."
        raise failure(said, "MAIL_FAILED") from error
    finally:
        with suppress(OSError):  # it has answered about the mail by then
            connection.close()


def _as_sent(address: str) -> bool:
    """Whether the mail goes to the address as it is written, which is what rules and deciders have seen: no
    quotes, encoded words, further hosts, a host's numbers or characters that a domain has in another form.
    """
    local, _, domain = address.rpartition("@")
    if not LOCAL.fullmatch(local) or ENCODED in local or domain.startswith("["):
        return False
    return domain.isascii() or punycode(domain).encode().decode("idna") == domain.lower()


def _on_one_line(text: str) -> bool:
    """Whether no header ends in it: the standard library ends a line at a form feed and its like, too."""
    return len(f"{text}.".splitlines()) == 1
