"""What leads somewhere, in the one form in which two spellings of it are equal.

Mail and web addresses (any case, IDN, any public suffix, and spelled to be overlooked: `evil[.]com`), account
numbers (IBAN in any case and grouping; others where a word says so), phone numbers, crypto wallets. Letters
that only look alike stay different: such an address equals nobody's.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote

import idna

from common.normal_forms import split_url
from policy.provenance.words import in_one_form

LONGEST = 100_000  # characters of a text that are searched; values that lead somewhere are looked up in them
# Domains of private networks and of documents, which the public list leaves out.
_PRIVATE = ("example", "test", "local", "localhost", "internal", "lan", "corp", "home", "intra", "onion")
_L = r"[^\W_]"  # a letter or digit of any script
_CJK = "\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LABEL = rf"(?:(?![{_CJK}])[^\W_](?:[\w-]{{0,61}}[^\W_])?)"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{1,8}}\.?"
_TAIL = r"[^\s<>\"'`，。；！？、）】」]*"
BEFORE_HOST = re.compile(
    rf"(?:(?<![\w.+%-])(?<![^\W_]')|(?<=[{_CJK}]))(?!')(?P<local>(?:(?![{_CJK}])[\w.+%'-]){{1,64}})@(?=[^\W_])"
)
PLAIN_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL}){{0,8}}")
_ANY_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
# A host that may begin as a word of Chinese does; and what may be its last label before words glued to it.
FOREIGN_HOST = re.compile(rf"{_ANY_LABEL}(?:\.{_ANY_LABEL}){{1,8}}")
MAY_END = re.compile(rf"[a-z0-9-]+(?=[{_CJK}])|[{_CJK}]{{1,4}}", re.IGNORECASE)
URL = re.compile(rf"\b(?P<scheme>[a-z][a-z0-9+.-]{{1,15}}):/{{1,3}}(?P<rest>{_TAIL})", re.IGNORECASE)
BARE = re.compile(
    rf"(?<![@\w.-])(?://)?(?P<host>{_HOST}|\d{{8,10}}(?=/)|(?:\d{{1,3}}\.){{3}}\d{{1,3}})(?P<port>:\d{{1,5}})?(?P<rest>[/?#]{_TAIL})?(?![\w@])"
)
SCRIPTS = re.compile(rf"\b(?:javascript|data|vbscript):{_TAIL}", re.IGNORECASE)
ACCOUNT = re.compile(r"(?<![^\W_])[A-Za-z]{2}[ .-]?\d{2}(?:[ .\-]?[A-Za-z0-9]){8,30}(?![^\W_])")
GROUPED = re.compile(r"(?<![^\W_])[A-Za-z]{2}[ .-]?\d{2}")
FORMAL = re.compile(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?")
LABELLED = re.compile(
    r"\b(?:account|acct|a/c|konto|kontonummer|sort code|routing|iban|账号|账户|卡号)"
    r"(?: (?:no|number|nr|code))?\.?\s*(?:is|:|#|：)?\s*(?P<digits>\d(?:[ .-]?\d){5,19})(?!\d)",
    re.IGNORECASE,
)
PHONE = re.compile(r"(?:\+|\b00)[\d(](?:[\d() ./-]{5,22})\d")
CALLED = re.compile(
    r"\b(?:phone|telephone|tel|mobile|cell|call|whatsapp|sms|text|fax|电话|手机)\b\.?"
    r"(?: (?:me|us|him|her|them|no|number|at|on|is))*\s*[:#：]?\s*"
    r"(?P<digits>\(?\d(?:[() ./-]{0,2}\d){6,14})(?!\d)",
    re.IGNORECASE,
)
# Written as nothing but a phone number is: an area code in brackets, the three groups of an American one, or
# a Chinese mobile.
UNANNOUNCED = re.compile(
    r"(?<![\w(.-])(?:\(0?\d{2,5}\) ?\d{3,4}[ -]?\d{3,4}|\d{3}[-.]\d{3}[-.]\d{4}"
    r"|1[3-9]\d(?:[ -]?\d{4}){2})(?![\w-])"
)
# Names in messengers and payment services, where the service is named beside them.
_SERVICE = (
    r"(?:telegram|wechat|weixin|whatsapp|skype|discord|signal|venmo|cash ?app|paypal|zelle|alipay|qq"
    r"|微信|支付宝)"
)
HANDLE = re.compile(
    rf"(?<![^\W_{_CJK}]){_SERVICE}(?: ?(?:id|handle|account|user(?:name)?|at|is|号|账号|群)){{0,4}}"
    r"\s{0,2}[:：#]?\s{0,2}"
    r"(?P<name>@[\w.-]{2,64}|(?=[\w.-]{0,64}[\d_])[A-Za-z0-9][\w.-]{4,64})"
    rf"|(?<![\w.@])(?P<before>@[\w.-]{{2,64}}) (?:on|at|via|in) {_SERVICE}(?![^\W_])",
    re.IGNORECASE,
)
SHARE = re.compile(r"(?<![\\\w:])\\\\[\w.-]{2,253}\\[\w$.-]+")
IPV6 = re.compile(
    r"(?<![\w:.])\[?(?P<address>(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4})\]?(?![\w:])", re.IGNORECASE
)
WALLETS = re.compile(
    r"\b(?:0x[0-9a-fA-F]{40}|(?:bc1|tb1|ltc1|addr1|BC1)[a-zA-Z0-9]{20,100}|[13LM][1-9A-HJ-NP-Za-km-z]{25,34}"
    r"|T[1-9A-HJ-NP-Za-km-z]{33}|r[1-9A-HJ-NP-Za-km-z]{24,34}|4[0-9AB][1-9A-HJ-NP-Za-km-z]{93}"
    r"|[1-9A-HJ-NP-Za-km-z]{43,44})\b"
)
_FILES = re.compile(
    r"docx?|xlsx?|pptx?|pdf|txt|[ct]sv|md|json|xml|ya?ml|html?|png|jpe?g|gif|svg|zip|gz|tar|py|[jt]s|log|sql|"
    r"eml|ics|sh|rs",
    re.IGNORECASE,
)
SLASHES = re.compile(r":/{1,3}")  # browsers take any number of them
WWW = re.compile(r"^www\.(?=[^.]+\.)")  # www.news is a name of its own
# Domains that are words with which a sentence may go on after a point without a blank.
_WORDS = re.compile(
    r"in|is|it|at|be|so|to|no|my|me|us|am|by|as|do|de|la|co|info|he|we|if|an|or|on|go|now|the"
)
MAILBOX = re.compile(r"(?!\w+://|//)[^\s@]+@[^\s@]+")
QUOTING = ("<>", '""', "''", "``", "()", "[]", "{}", "“”", "‘’", "«»")
ODD_LOCAL = re.compile(r"^['.]|[%&`{}()\[\]<>\"|!#$*/=?^~]")
PERSONAL = ("mail", "phone", "account", "wallet")  # kinds of form that lead to somebody
# What a text must hold before a slower search is worth its time.
MAY_HIDE = re.compile(r"[\[({]|[dD][oO][tT]|[xX]{2}[pP]")
LONG_WORD = 26  # letters, of a wallet
ENTITY = re.compile(r"&(?:#x?[0-9a-fA-F]{2,6}|commat|period|colon|sol|num|lowbar);")
FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
TWO_DIGITS = re.compile(r"\d\d")
COUNTRY = re.compile(r"[A-Z]{2}\d{2}")
LONGEST_HOST = 253  # characters
HIDDEN = re.compile(r"[\[({] ?(?:[.@]|dot|at|punkt|点)|\bdot\b|hxxp", re.IGNORECASE)
DIGITS = re.compile(r"\d[\d() ./-]{4,}\d")
_DOTS = re.compile(
    r"\s?[\[({]\s?(?:\.|dot|punkt|点)\s?[\])}]\s?|[\u3002\uff0e\uff61\u2024]|(?<=\w) (?:dot|DOT) (?=\w)"
)
_ATS = re.compile(
    r"\s?[\[({]\s?(?:@|at|AT)\s?[\])}]\s?|(?<=\w) (?:at|AT) (?=[\w-]+(?:\.[\w-]+)*\.[a-z]{2,24}\b)"
)


def clean(text: str) -> str:
    """The text with nothing invisible and no second form of a character, and addresses put back together."""
    if "&" in text:
        text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = in_one_form(_DOTS.sub(".", text))
        text = FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)
    if MAY_HIDE.search(text) and HIDDEN.search(text):
        dotted = _DOTS.sub(".", text)
        text = _ATS.sub("@", dotted) if dotted != text or "[" in text or "(" in text else text
        text = re.sub(r"\bhxxp(s?)\b", r"http\1", text, flags=re.IGNORECASE)
    return (
        text.replace("\\/", "/")
        .replace(":\\\\", "://")
        .replace("%40", "@")
        .replace("%2E", ".")
        .replace("%2e", ".")
    )


def leads(text: str) -> Iterator[tuple[str, int, int]]:
    """(canonical, start, end) of all that leads somewhere in a cleaned text; the earlier and longer first."""
    taken = 0
    for start, end, form in sorted(_found(text[:LONGEST]), key=lambda each: (each[0], -each[1])):
        if start >= taken:
            taken = end
            yield form, start, end


def canonical(value: str) -> str:
    """The form of a value that as a whole leads somewhere; empty for any other."""
    text = clean(value).strip(" \t\r\n<>\"'`.,;")
    first = next(iter(leads(text)), None) if len(text) <= 2000 else None
    if first is not None and first[1] == 0 and len(text) - first[2] <= 1:
        return first[0]
    digits = re.sub(r"[ .()/-]", "", text)
    return f"digits:{digits.lstrip('+')}" if re.fullmatch(r"\+?\d{6,20}", digits) else ""


def is_mailbox(value: str) -> bool:
    """Whether a value is one mail address, however it is written."""
    return bool(MAILBOX.fullmatch(value.strip()))


def mailbox(value: str) -> tuple[str, str]:
    """A value that is one mail address without what quotes it, and its form: empty where its first part holds
    what a mail program may take for a letter of it (`'ann@`, `{ann@`, `%61nn@`).
    """
    plain = value.strip().rstrip(" \t.,;:")
    if len(plain) > 2 and plain[0] + plain[-1] in QUOTING:
        plain = plain[1:-1]
    if plain[:7].lower() == "mailto:":
        plain = plain[7:]
    odd = ODD_LOCAL.search(plain.partition("@")[0])
    return plain, "" if odd else canonical(plain)


def spellings(form: str) -> tuple[str, ...]:
    """A form, and its digits alone where a value may be written without a word that says what they are."""
    digits = form.partition(":")[2].lstrip("+")
    return (form, f"digits:{digits}") if kind(form) in ("phone", "account") and digits.isdigit() else (form,)


def kind(form: str) -> str:
    """mail, link, account, phone or wallet."""
    return form.partition(":")[0]


def _found(text: str) -> Iterator[tuple[int, int, str]]:
    yield from _mails(text)
    yield from _links(text)
    yield from _accounts(text)
    yield from _phones(text)
    yield from _handles(text)
    for found in WALLETS.finditer(text) if _has_long_word(text) else ():
        wallet = found[0].lower() if found[0][:2].lower() in ("0x", "bc", "tb", "lt", "ad") else found[0]
        if _looks_random(found[0]):
            yield found.start(), found.end(), f"wallet:{wallet}"


def _mails(text: str) -> Iterator[tuple[int, int, str]]:
    if "@" not in text:
        return
    found = BEFORE_HOST.search(text)
    while found:
        host = _mail_host(text, found.end())
        name = _host(host)
        if name and "." in name:
            local = found["local"].lower().lstrip(".")
            yield found.start(), found.end() + len(host), f"mail:{local}@{name}"
        found = BEFORE_HOST.search(text, found.end() + len(host))


def _mail_host(text: str, start: int) -> str:
    """The host of an address as it stands there. No blank ends it in a script that writes none: there it goes
    as far as a domain that is in the public list; "" where no host stands.
    """
    plain = PLAIN_HOST.match(text, start)
    found = plain[0] if plain else ""
    if text.isascii() or not (wide := FOREIGN_HOST.match(text, start)) or wide[0].isascii():
        return found
    labels = wide[0].split(".")
    for last in range(len(labels) - 1, 0, -1):
        for end in _ends(labels[last]):
            if end.lower() in _top_domains():
                return ".".join((*labels[:last], end))
    return found


def _ends(label: str) -> Iterator[str]:
    """A label, and what may be one before the words that are glued to it."""
    yield label
    if may_end := MAY_END.match(label):
        yield from (may_end[0][:length] for length in range(len(may_end[0]), 0, -1))


def _links(text: str) -> Iterator[tuple[int, int, str]]:
    for found in URL.finditer(text) if ":/" in text else ():
        form = _link(found[0].rstrip(".,;:!?)]"))
        if form:
            yield found.start(), found.start() + len(found[0].rstrip(".,;:!?)]")), form
    for found in SCRIPTS.finditer(text) if ":" in text else ():
        yield found.start(), found.end(), f"link:{found[0].casefold()}"
    for found in SHARE.finditer(text) if "\\" in text else ():
        yield found.start(), found.end(), f"link:{found[0].casefold()}"
    for found in IPV6.finditer(text) if text.count(":") > 1 else ():
        # Short ones are as often a piece of a program: `a::1`.
        bracketed = found[0][0] == "["
        if (bracketed or (len(found["address"]) > 6 and re.search(r"\d", found[0]))) and _address(
            found["address"]
        ):
            yield found.start(), found.end(), f"link:{_address(found['address'])}"
    if "." not in text and "/" not in text:
        return
    for found in BARE.finditer(text):
        if _is_host(found["host"], bool(found["rest"] or found["port"])):
            whole = found[0].rstrip(".,;:!?)]")
            form = _link(f"http://{whole.lstrip('/')}")
            if form:
                yield found.start(), found.start() + len(whole), form


def _is_host(host: str, goes_on: bool) -> bool:
    """Whether dotted words are a domain: under a public suffix, and no file and no end of a sentence."""
    host = host.rstrip(".")
    if re.fullmatch(r"[\d.]+", host):
        return _address(host) != ""
    last = host.rpartition(".")[2]
    if _FILES.fullmatch(last) and not goes_on and not host.lower().startswith("www."):
        return False
    if last.istitle() and (_WORDS.fullmatch(last.lower()) or len(last) > 6) and not goes_on:
        return False
    return host.lower().startswith("www.") or bool(_suffix(host.lower()))


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    """The public suffix list as the package brings it; nothing is fetched. Loaded when it is first needed."""
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None, extra_suffixes=_PRIVATE)


@lru_cache(maxsize=1)
def _top_domains() -> frozenset[str]:
    """The last labels of all public suffixes, in their own letters and in those of ASCII."""
    return frozenset(suffix.rpartition(".")[2] for suffix in (*_suffixes().tlds, *_PRIVATE))


@lru_cache(maxsize=4096)
def _suffix(host: str) -> str:
    found = _suffixes()(host)
    return str(found.suffix) if found.domain else ""


def _link(url: str) -> str:
    """Host and path: without scheme, `www.`, a user's name before the host, and how a letter is written."""
    try:
        parts = split_url(SLASHES.sub("://", url, count=1))
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return f"link:{url.casefold()}"
    name = _host(host)
    if not name:
        return ""
    path = unquote(parts.path).rstrip("/")
    tail = "".join(mark + unquote(part) for mark, part in (("?", parts.query), ("#", parts.fragment)) if part)
    user = f"{parts.username}@" if parts.username else ""
    usual = port in (None, 80, 443)
    return f"link:{user}{WWW.sub('', name)}{'' if usual else f':{port}'}{path}{tail}"


@lru_cache(maxsize=4096)
def _host(host: str) -> str:
    """A host's name in letters of ASCII (IDNA, UTS 46); an address of any spelling as four numbers."""
    host = host.rstrip(".")
    if address := _address(host):
        return address
    if len(host) > LONGEST_HOST:
        return host.casefold()  # no host, and IDNA would take minutes to find that out
    if host.isascii() and "xn--" not in host.lower():
        return host.lower()
    try:
        return idna.encode(host, uts46=True).decode().lower()
    except (idna.IDNAError, UnicodeError):
        return host.lower()


def _address(host: str) -> str:
    """An IP address, also as one number or in hexadecimal."""
    try:
        if re.fullmatch(r"\d{8,10}|0x[0-9a-fA-F]{8}", host):
            return str(ip_address(int(host, 0)))
        return str(ip_address(host.strip("[]")))
    except ValueError:
        return ""


def _accounts(text: str) -> Iterator[tuple[int, int, str]]:
    for found in FORMAL.finditer(text) if COUNTRY.search(text) else ():
        if _alone(text, *found.span()):
            yield *found.span(), f"account:{_compact(found[0])}"
    if not TWO_DIGITS.search(text) or not (DIGITS.search(text) or GROUPED.search(text)):
        return
    for found in ACCOUNT.finditer(text):
        length = _iban(found[0])
        if length:
            yield found.start(), found.start() + length, f"account:{_compact(found[0][:length])}"
    for found in LABELLED.finditer(text):
        yield *found.span("digits"), f"account:{_compact(found['digits'])}"


def _iban(text: str) -> int:
    """How many characters of the text are a valid IBAN; 0 where it does not begin with one."""
    from schwifty import IBAN  # takes a tenth of a second to load, and few runs need it
    from schwifty.exceptions import SchwiftyException

    plain = [place for place, letter in enumerate(text) if letter.isalnum()]
    try:
        length = IBAN("".join(text[place] for place in plain), allow_invalid=True).spec.iban_length
        if len(plain) < length:
            return 0
        valid = IBAN("".join(text[place] for place in plain[:length]), allow_invalid=True).is_valid
    except (SchwiftyException, KeyError, ValueError):
        return 0
    return plain[length - 1] + 1 if valid else 0


def _phones(text: str) -> Iterator[tuple[int, int, str]]:
    if not DIGITS.search(text):
        return
    for found in PHONE.finditer(text):
        import phonenumbers

        written = found[0] if found[0].startswith("+") else f"+{found[0][2:]}"
        try:
            number = phonenumbers.parse(written)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_possible_number(number):
            form = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
            yield found.start(), found.end(), f"phone:{form}"
    for found in CALLED.finditer(text):
        digits = re.sub(r"\D", "", found["digits"])
        if len(digits) >= 7:
            yield *found.span("digits"), f"phone:{digits}"

    for found in UNANNOUNCED.finditer(text):
        yield found.start(), found.end(), f"phone:{re.sub(r'[^0-9]', '', found[0])}"


def _handles(text: str) -> Iterator[tuple[int, int, str]]:
    """Names in a messenger or a payment service, as accounts."""
    for found in HANDLE.finditer(text):
        part = "name" if found["name"] else "before"
        name = found[part].rstrip(".-")
        yield found.start(part), found.start(part) + len(name), f"account:{name.lstrip('@').upper()}"


def _compact(text: str) -> str:
    return re.sub(r"[ .\-]", "", text).upper()


def _alone(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return not before.isalnum() and not after.isalnum()


def _has_long_word(text: str) -> bool:
    return any(len(word) >= LONG_WORD for word in text.split())


def _looks_random(text: str) -> bool:
    """Whether capitals, small letters and digits are mixed as no word mixes them."""
    if text[:2].lower() in ("0x", "bc", "tb", "lt", "ad"):
        return any(map(str.isdigit, text))
    return any(map(str.isdigit, text)) and any(map(str.isupper, text)) and any(map(str.islower, text))
