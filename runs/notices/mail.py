"""E-mail: a person's own address, or one that an administrator entered for the organization."""

from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.utils.translation import gettext_lazy

from runs.notices.base import BadAddress, Message, NotSent, Sender


def check(address: str) -> str:
    try:
        validate_email(address)
    except ValidationError:
        raise BadAddress("This is no e-mail address.") from None
    return address


def send(address: str, message: Message, channel: str) -> None:
    if not address:
        raise NotSent("There is no e-mail address.", lasting=True)
    try:
        EmailMessage(message.subject, message.text, to=[address]).send()
    except OSError as error:  # of the mail server, or the way to it; smtplib's are among them
        raise NotSent(f"The mail server did not take it: {type(error).__name__}") from None


SENDER = Sender("email", gettext_lazy("E-mail"), check, send)
