"""Text made comparable: letters, dates, amounts, encodings. Pure, and blind to languages where it can be."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from urllib.parse import unquote

from common.normal_forms import normalized

# Characters nobody sees: they may not make two values equal that look alike, nor hide one.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\U000e0000-\U000e007f]"
)
WORD = re.compile(r"[^\W_]+")
_CJK = "\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af"
UNSPACED = re.compile(f"[{_CJK}]")
UNSPACED_RUN = re.compile(f"[{_CJK}]+")

# Addresses, links and account numbers: what leads somewhere wherever it stands.
ADDRESS = re.compile(
    rf"(?<![A-Za-z0-9_.+%'-])(?:(?![{_CJK}])[\w.+%'-]){{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}"
)
_FILES = (
    "docx?|xlsx?|pptx?|pdf|txt|csv|tsv|md|json|xml|ya?ml|html?|png|jpe?g|gif|svg|"
    "zip|gz|tar|py|js|ts|log|sql|eml|ics"
)
LINK = re.compile(
    r"(?i:\b[a-z][a-z0-9+.-]{1,15}://|\bwww\.)[^\s<>\"'`，。；！？、）】」]+"
    rf"|(?<![@\w.-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?!(?:{_FILES})\b)[a-z]{{2,24}}\b(?![@\w.-]{{0,99}}@)(?:[/?:][^\s<>\"'`]*)?"
    r"|(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?:[/:][^\s<>\"'`]*)?(?![\w.])"
)
ACCOUNT = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
LEADS = (LINK, ADDRESS, ACCOUNT)
KINDS = {"address": ADDRESS, "account": ACCOUNT, "link": LINK}
OWNER = re.compile(r"([^\W\d_]+)['’]s\s")  # "Zoe's email"
# "You can find her e-mail on …": a person says where a value of this kind is to be taken from.
_FINDS = r"\b(?:find|found|look up|take|get|listed|given|stated|stands?|available)\b"
_FIND = rf"{_FINDS}.{{0,60}}?"
_WHOSE = r"(?:\b(?:his|her|their|its|my|our|your)|['’]s)\s+"
_FIND_IT = (  # and nothing else there: "look up the news and answer her e-mail" is about no address
    rf"{_FINDS}(?:(?!\b(?:and|then|in|at|on|from|for|to|with|about|or)\b)[^.,;:!?\n]){{0,60}}?"
)
KIND_NAMES = {
    "address": re.compile(
        rf"{_FIND_IT}(?:{_WHOSE}e-?mail\b|\be-?mail address)|(?:找到|查到|取得).{{0,20}}(?:邮箱|邮件地址)"
    ),
    "account": re.compile(
        rf"{_FIND}(?:{_WHOSE}|\bthe )(?:iban|account number)\b|(?:找到|查到|取得).{{0,20}}账号"
    ),
    "link": re.compile(
        rf"{_FIND}(?:{_WHOSE}|\bthe )(?:link|url|web address)\b|(?:找到|查到|取得).{{0,20}}(?:链接|网址)"
    ),
}
SENTENCE = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
PLACE = re.compile(r"\S[^\s./]*[./]\S+")

# The www of www.news is a part of the name.
SCHEME = re.compile(r"^(?:https?://|mailto:|tel:)?(?:www\.(?![^/]*@)(?=[^./]+\.))?", re.IGNORECASE)
JOINS = re.compile(r"[\w@%+~-]")
QUOTES = "\"'`“”‘’«»「」『』<>()[]{}，。；,; \t\r\n"

_NAMES = (
    "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|"
    "sep sept september|oct october|nov november|dec december"
)
MONTHS = {name: month for month, names in enumerate(_NAMES.split("|"), 1) for name in names.split()}
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
DATE = re.compile(
    rf"(?P<y>\d{{4}})\s*[-/.年]\s*(?P<m>\d{{1,2}})\s*[-/.月]\s*(?P<d>\d{{1,2}})日?"
    rf"|(?<!\d)(?P<a>\d{{1,2}})[/.](?P<b>\d{{1,2}})[/.](?P<y2>\d{{4}})"
    rf"|(?<!\d)(?P<m3>\d{{1,2}})\s*月\s*(?P<d3>\d{{1,2}})\s*[日号]"
    rf"|\b(?P<mn>{_MONTH})\.?\s+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<y4>\d{{4}}))?"
    rf"|\b(?P<d5>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<mn5>{_MONTH})\b\.?(?:,?\s+(?P<y5>\d{{4}}))?",
    re.IGNORECASE,
)
TIME = re.compile(
    r"(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?:\.\d+)?(?!\d)|(?<!\w)\d{1,2}\s?(?:am|pm|点)(?!\w)", re.IGNORECASE
)
# What may stand beside a date and its time in a value: 2024-05-13T10:00Z, Monday, May 13, at noon.
BESIDE_DATE = re.compile(
    r"(?:[\s,+-]|\b(?:t|z|at|on|from|by|until|the|utc|gmt|noon|midnight|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)\b)*"
)
NUMBER = re.compile(r"(?<![\w.,])[+-]?(?:\d{1,3}(?:[,' ’]\d{3})+(?:\.\d+)?|\d+(?:[.,]\d+)?)(?![\w]|[.,]\d)")
_SPELLED = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen twenty|once|twice|both|pair|dozen|两 三 四 五 六 七 八 九 十"
)
_FROM = (0, 1, 2, 2, 2, 12, 2)  # what each of these groups begins with
NUMERALS = {
    word: Decimal(first + place)
    for first, group in zip(_FROM, _SPELLED.split("|"), strict=True)
    for place, word in enumerate(group.split())
}
SPELLED = re.compile(rf"\b(?:{'|'.join(word for word in NUMERALS if word.isascii())})\b")
# A number that names something is no amount: invoice 48213, order #7, room 12.
NAMED = re.compile(
    r"(?:\b(?:invoice|order|ticket|case|account|customer|reference|ref|id|flight|room|page|version|file|issue|"
    r"pull request|pr|zip|year|code|pin|extension|contract|transaction|number|no|nr)\b\.?|#)"
    r"(?:\s*(?:no|nr|number|id)\b\.?)?\s*[:#]?\s*$"
)
# How people say no. An apostrophe is written in many ways, or left out; "can't you …?" asks for it.
_N_T = "n(?: ?[\u0301\u00b4\u2018\u2019'`])?t"
NOT = (
    r"(?<!why )\b(?:(?:(?:do|does|must|should|shall|will|can|could|would|need|may|might|is|are)\s+)?not"
    rf"|never|cannot|without|(?:do|does|must|should|sha|wo|ca|could|would|need|may|might|is|are){_N_T})"
    r"\b(?!\s+(?:only|just|merely|simply)\b)"
)
# The same in Chinese; 能不能 asks for it, 别人 and 特别 are other words.
NOT_CHINESE = (
    "(?:(?<!要)不要(?!忘)|(?<![特分级个区性类辨])别(?![忘人的处名])|请勿|切勿|勿|无需|不得(?!不)|(?<!能)不能(?!不)"
    "|(?<!可)不可(?!不)|禁止|严禁|不许|不准|不必|不用)"
)
NO = f"{NOT}|{NOT_CHINESE}"
_ABBREVIATED = r"(?<!\b[DM]r)(?<!\bMrs)(?<!\bMs)(?<!\bProf)(?<!\bSt)(?<!\be\.g)(?<!\bi\.e)"
_CLAUSE = (
    r"(?:(?<=:)[ \t]*(?:(?:(?:\n[ \t]*){1,3}(?:[-*•]|\d+[.)])[^\n]*)+|\n)"  # a list of whom
    r"|(?!\bbut\b|, (?:send|use|just|only|rather|instead|pay|write)|[;!?\n]"
    rf"|{_ABBREVIATED}\.(?:\s|$)).){{1,300}}"
)
# What the person forbids, up to where the clause ends; and what they quote. What holds the mark by which it
# began is looked for so far and no further: of a thousand beginnings each would be read to the end.
FORBIDDEN = re.compile(
    rf"(?:\b(?<!why )(?:never|(?:do|must|should|shall)(?:\s+not|{_N_T})|(?<!\bi )(?:cannot|ca{_N_T})(?! you)"
    r"|without\s+\w+ing|not\s+to|avoid|except|excluding|exclude|but\s+not|leave\s+out)\b"
    rf"(?!\s+(?:forget|hesitate|fail)\b){_CLAUSE}"
    r"|\b(?:instead of|rather than|other than|apart from|(?:every\w+|all|any\w+) but)"
    r"\s+(?:(?:to|for|with)\s+)?\S+"
    rf"|{NOT_CHINESE}[^，。；,;\n]{{1,100}})",
    re.IGNORECASE,
)
STRAY = 200  # characters of a quotation that holds a mark without its other half


def _between(begin: str, end: str, others: str = "", more: str = "") -> str:
    """A quotation, with others inside it or a stray mark. `more`: what else it does not hold."""
    plain = f"[^{begin}{end}{others}{more}]*+"
    inner = f"{begin}{plain}{end}{plain}" + (f"|„{plain}[“”]{plain}" if others else "")
    return rf"{begin}(?:{plain}(?:{inner})*+{end}|[^{end}\n]{{1,{STRAY}}}+{end})"


# A mail that is passed on has no end: what follows the line that begins it may all be somebody else's.
_HEAD, _COLON = r"[*_]{0,2}", r"[ \t]?[*_]{0,2}[:：][*_]{0,2}"  # "*From:* Eve" as well
_PASSED_ON = (
    r"^[ \t]*(?:(?:-{2,}[ \t]*)?(?:forwarded message|original (?:message|appointment)"
    r"|weitergeleitete nachricht|ursprüngliche nachricht|转发的?邮件|原始邮件)[ \t]*(?:-{2,}|:?[ \t]*$)"
    r"|begin forwarded message\b"
    r"|on [^\n]{5,200}\n?[^\n]{0,100}\bwrote:?[ \t]*$"
    r"|(?:am|le|el|il|op|em|den|w dniu) [^\n]{5,200}\b(?:schrieb|a écrit|escribió|escreveu|ha scritto|schreef"
    r"|skrev|napisał)\b"
    r"[^\n]{0,100}[:：][ \t]*$"
    r"|-{3,}[ \t]*[^\W\d_][^\n]{2,60}?[ \t]*-{3,}[ \t]*$"
    r"|(?:fwd?|wg|tr|rv|转发)[:：][ \t]*\S"
    rf"|{_HEAD}(?:from|von|de|发件人|reply-to){_COLON}(?:[^\n]*@|[^\n]+\n[ \t]*{_HEAD}(?:sent|date|to|cc"
    rf"|subject|gesendet|datum|an|betreff|reply-to|发送时间|日期|收件人|主题){_COLON})"
    rf"|{_HEAD}(?:sent|date|to|subject){_COLON}[^\n]*\n[ \t]*{_HEAD}from{_COLON})[^\0]*"
)
# What stands between two lines of dashes, or between the tags of one.
_FRAMED = (
    r"^[ \t]*[-_=*]{3,}[ \t]*\n(?:(?!^[ \t]*[-_=*]{3,}[ \t]*$)[^\0])+^[ \t]*[-_=*]{3,}[ \t]*$"
    r"|<(?P<tag>mail|e-?mail|message|document|text|letter|quote)\b[^>]{0,200}>(?:(?!</(?P=tag)\b)[^\0])*"
)
QUOTED = re.compile(
    rf"{_PASSED_ON}|{_FRAMED}|```(?:(?!```)[^\0])+(?:```|\Z)|~~~(?:(?!~~~)[^\0])+(?:~~~|\Z)"
    r"|\"\"\"(?:(?!\"\"\")[^\0])+\"\"\"|<blockquote\b(?:(?!</blockquote)[^\0])*|\[quote\b(?:(?!\[/quote)[^\0])*"
    r"|(?<!\w)'[^'\n]{2,}'(?!\w)|(?<!\w)'(?=\S)(?:[^']|(?<=\w)'(?=\w)){2,2000}(?<=\S)'(?!\w)"
    r"|\"[^\"\n]*\"|(?<!\w)\"(?=\S)[^\"]{2,}(?<=\S)\"(?!\w)|`[^`\n]*`|^[ \t]*(?:>|&gt;|\|)[^\n]*"
    rf"|{_between('“', '”', '„')}|[“„][^“”„]*+[“”]|{_between('„', '“', '”')}"
    rf"|{_between('«', '»')}|{_between('»', '«')}|[‹›][^‹›\n]*[‹›]"
    rf"|(?<!\w){_between('‘', '’', more=chr(10))}|(?<!\w)‘(?=\S)[^‘’]{{2,2000}}(?<=\S)’(?!\w)"
    rf"|{_between('「', '」')}|{_between('『', '』')}|{_between('《', '》')}|{_between('〈', '〉')}"
    r"|[〝〞][^〝〞〟]*[〞〟]|❝[^❝❞]*❞|＂[^＂]*＂",
    re.MULTILINE | re.IGNORECASE,
)
MANY = 1000  # of a thing, nobody orders more without a word on it
LONGEST_NAME = 5  # words of a quotation that may name something
LONGEST_NUMBER = 40  # characters; longer ones are compared as text
WHOLE_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
ENCODED = re.compile(r"(?<![\w+/=])[A-Za-z0-9+/_-]{12,}={0,2}(?![\w+/=])")
HEX = re.compile(r"(?<!\w)(?:[0-9a-fA-F]{2}){6,}(?!\w)")
OF_A_PART = {"base64": ENCODED, "hexadecimal": HEX, "without spaces": ACCOUNT}  # may stand inside a value
PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
ESCAPE = re.compile(r"\\(?:[bfnrt]|u[0-9a-fA-F]{4})")
ENTITY = re.compile(r"&#?\w{2,8};")


def normalise(text: str) -> str:
    """One case, one form of each character (NFKC), nothing invisible; letters that look alike stay apart, and
    so do those that `casefold` makes equal: straße.de and strasse.de are two domains.
    """
    return text.lower() if text.isascii() else in_one_form(text).lower()


def in_one_form(text: str) -> str:
    """The text with one form of each character (NFKC), and nothing invisible."""
    return normalized("NFKC", INVISIBLE.sub("", text))


def offsets(text: str) -> list[int]:
    """For each character of `normalise(text)`, and its end, where it stands in `text`."""
    found: list[int] = []
    for place, character in enumerate(text):
        found += [place] * len(normalise(character))
    return [*found, len(text)]


def tokens(text: str) -> list[str]:
    """The words of a normalised text; what is written without spaces ends beside what is not."""
    if not text.isascii():
        text = UNSPACED_RUN.sub(r" \g<0> ", text)
    return WORD.findall(text)


def joins(character: str) -> bool:
    """Whether a value with this beside it is part of something longer."""
    return bool(JOINS.match(character)) and not UNSPACED.match(character)


def bare(value: str) -> str:
    """A normalised value without quotes around it, and a link without what people leave out."""
    value = value.strip(QUOTES)
    short = SCHEME.sub("", value)
    return short.rstrip("/") or value


def sentences(text: str) -> list[str]:
    return SENTENCE.split(text)


def is_place(value: str) -> bool:
    """Whether a value names a place to read: a link, a path, a file's name."""
    return bool(PLACE.fullmatch(value.strip())) and "@" not in value


def atomic(value: str) -> bool:
    """Whether the value is one thing, such as an address, a link, a number or a file's name."""
    return not any(map(str.isspace, value)) and not UNSPACED.search(value)


def is_plain(value: str) -> bool:
    """Whether a value is written as it looks: only then may it be equal to a trusted one."""
    return not INVISIBLE.search(value) and (
        value.isascii() or not atomic(value) or normalized("NFKC", value) == value
    )


def dates(text: str) -> Iterator[tuple[tuple[str, str], int, int]]:
    """Dates in usual forms as (year or "", "MM-DD") with their span."""
    for found in DATE.finditer(text):
        part = found.groupdict()
        if part["a"]:  # day and month in either order
            pairs = [(part["a"], part["b"]), (part["b"], part["a"])]
        else:
            month = part["m"] or part["m3"] or MONTHS[(part["mn"] or part["mn5"]).lower()]
            pairs = [(month, part["d"] or part["d3"] or part["d4"] or part["d5"])]
        year = part["y"] or part["y2"] or part["y4"] or part["y5"] or ""
        for month, day in pairs:
            if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
                yield (year, f"{int(month):02}-{int(day):02}"), *found.span()


def is_moment(text: str, start: int, end: int) -> bool:
    """Whether a text is a date with its time and weekday, and nothing else."""
    return bool(BESIDE_DATE.fullmatch(TIME.sub(" ", f"{text[:start]} {text[end:]}")))


def numbers(text: str) -> Iterator[tuple[Decimal, int, int]]:
    """Numbers that are no part of a date or a time, with their span."""
    masked = TIME.sub(blank, DATE.sub(blank, text))
    for found in NUMBER.finditer(masked):
        value = number(found[0])
        if value is not None:
            yield value, *found.span()
    for found in SPELLED.finditer(masked):
        yield NUMERALS[found[0]], *found.span()


def names(text: str, value: Decimal, start: int) -> bool:
    """Whether the number that begins there names something, as an invoice; "order 2 chairs" is a count."""
    found = NAMED.search(text[max(0, start - 40) : start])
    if found is None or not text[start].isdigit():
        return False
    return not (found[0].startswith("order") and value < MANY)


def number(text: str) -> Decimal | None:
    """The number a text is: 1,000.50 is 1 000.5; a single comma before one or two digits is a point."""
    if len(text) > LONGEST_NUMBER:
        return None
    plain = re.sub(r"[' ’]", "", text.strip())
    plain = plain.replace(",", ".") if re.fullmatch(r"[+-]?\d+,\d{1,2}", plain) else plain.replace(",", "")
    try:
        return Decimal(plain) if WHOLE_NUMBER.fullmatch(plain) else None
    except InvalidOperation:
        return None


def blank(found: "re.Match[str]") -> str:
    return "\x00" * len(found[0])


def spaces(found: "re.Match[str]") -> str:
    """In the place of a passage: every other character stays where it was."""
    return " " * len(found[0])


CODES = ("base64", "hexadecimal")  # of decodings: what nobody reads in them


def decodings(text: str) -> Iterator[tuple[str, str]]:
    """What a text says in other words: (how, text) for base64, hexadecimal, percent signs and entities."""
    if PERCENT.search(text):
        yield "percent", unquote(text)
    if ENTITY.search(text):
        from html import unescape

        yield "entities", unescape(text)
    for found in ACCOUNT.finditer(text.upper()):
        if " " in found[0]:
            yield "without spaces", found[0].replace(" ", "")
    for found in ENCODED.finditer(text):
        said = _decoded(found[0])
        if said:
            yield "base64", said
    for found in HEX.finditer(text):
        said = _printable(bytes.fromhex(found[0]))
        if said:
            yield "hexadecimal", said


def unescaped(text: str) -> str:
    """What a text says that is written as JSON: the end of a line is no letter of the next word."""
    return ESCAPE.sub(_unescaped, text)


def _unescaped(found: "re.Match[str]") -> str:
    if found[0][1] != "u":
        return "\n" if found[0][1] == "n" else " "
    letter = chr(int(found[0][2:], 16))
    return letter if letter.isprintable() else " "


def decoded(value: str) -> Iterator[tuple[str, str]]:
    """What the whole of a value says in other words; beside an encoded part the rest says something else."""
    plain = value.strip()
    for how, said in decodings(plain):
        form = OF_A_PART.get(how)
        if form is None or form.fullmatch(plain.upper() if form is ACCOUNT else plain):
            yield how, said


def _decoded(text: str) -> str:
    try:
        return _printable(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return ""


def _printable(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return ""
    return text if len(text) >= 4 and text.replace("\n", " ").replace("\t", " ").isprintable() else ""


def quoted(text: str) -> Iterator[tuple[int, int]]:
    """The spans of what others say in a text: a quotation that is more than an address."""
    for found in QUOTED.finditer(text):
        inside = found[0].strip(QUOTES)
        if not nothing_beside(inside, leads(inside)):
            yield found.span()


def own(text: str) -> str:
    """The person's words without what they forbid and what they quote."""
    return without(text, [*(found.span() for found in FORBIDDEN.finditer(text)), *quoted(text)])


def without_dictation(text: str) -> str:
    """The text without quotations longer than a name."""
    long = [found.span() for found in QUOTED.finditer(text) if len(tokens(found[0])) > LONGEST_NAME]
    return without(text, long)


def without_addresses(text: str) -> str:
    return without(text, [(start, end) for _, start, end in leads(text)])


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with these spans blanked, every other character where it was."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def leads_somewhere(value: str) -> bool:
    """Whether the whole value is an address, a link or an account number."""
    return any(form.fullmatch(value) for form in (LINK, ADDRESS)) or bool(ACCOUNT.fullmatch(value.upper()))


def nothing_beside(text: str, led: Iterable[tuple[str, int, int]]) -> bool:
    """Whether a text is a list of addresses and nothing else."""
    return tokens(text) == tokens(" ".join(text[start:end] for _, start, end in led))


def leads(text: str) -> Iterator[tuple[str, int, int]]:
    """Addresses, links and account numbers inside a text: what makes its reader go somewhere."""
    taken = 0
    for found in sorted(
        (m for form in LEADS for m in form.finditer(text)), key=lambda m: (m.start(), -m.end())
    ):
        if found.start() >= taken:
            taken = found.end()
            yield found[0].rstrip(".,;:!?)]"), found.start(), found.end()
