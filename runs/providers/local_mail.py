"""Does a goal ask for an e-mail, to whom, and with which words? Patterns, in English and Chinese.

An address is only ever taken from what the person said, never from memory or a page: what stands
there may have been put there by somebody else.
"""

import re

from common.text import sentences

LOOKED_AT = 600  # characters at either end of a goal: a long one is material, not a request

# No mailbox has a longer name (RFC 5321), and a long word is not read anew from each of its letters.
ADDRESS = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z0-9](?:[\w.+-]{0,62}[\w+-])?@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+", re.ASCII
)

# where an English request may begin
_BEGINS = (
    r"(?:^|[,;:.!?]\s*|(?<=[\u3400-\u9fff])\s*|\b(?:please|and|then|also|now|to|you|let's|kindly)\s+)"
    r"(?:please\s+|kindly\s+|quickly\s+)*"
)
_NOT_AN_OBJECT = (
    r"(?!(?:is|are|was|were|will|would|me|us|myself|address|addresses|server|servers|setting|settings|back-?end"
    r"|tool|tools|rule|rules|policy|policies|template|templates|need|needs|require|requires|approval|approvals"
    r"|client|clients|service|services|notification|notifications|marketing|format|or)\b)"
)
_ENGLISH = re.compile(
    _BEGINS + r"(?:"
    rf"(?:e-?mail|mail|notify|inform|alert)\s+{_NOT_AN_OBJECT}[\w“\"'(]"
    r"|send\s+(?:out\s+)?(?:[\w'-]+\s+){0,4}?(?:e-?mail|mail|message|note|notice|letter|reminder|invitation)s?\b"
    r"|(?:send|forward)\s+.{1,200}?\bto\s+\S"
    r"|send\s+(?:him|her|them)\s+\S"
    r"|write\s+(?:to\s+\S|(?:[\w'-]+\s+){0,3}?(?:e-?mail|mail|message|letter)\b)"
    r"|let\s+(?!me\b|us\b)(?:[\w'-]+\s+){1,4}know\b"
    r")",
    re.IGNORECASE,
)
_ENGLISH_QUESTION = re.compile(
    r"^\W*(?:(?:hi|hello|hey|please|and|so|but)\W+)*(?:what|how|why|who|whom|when|where|which|whether|does|do|did"
    r"|is|are|was|were|has|have|had|should|may|might|can\s+(?!you\b)|could\s+(?!you\b)|would\s+(?!you\b)"
    r"|explain|describe)\b",
    re.IGNORECASE,
)
_ENGLISH_NO = re.compile(
    r"\b(?:don't|do not|never|not|without|nobody should)\s+(?:\w+\s+){0,2}$", re.IGNORECASE
)
_WORD_FOR_SENDING = re.compile(
    r"\b(?:e-?mail|mail|send|notify|inform|write|forward)\b|发|寄|写信|邮件|通知|告知|转告", re.IGNORECASE
)

_CHINESE = re.compile(
    r"(?:发送?|写|寄)(?:一?[封份个条])?[^，。！？；\s]{0,14}?(?:电子邮件|邮件|信(?!息|用|任|号))"
    r"|邮件(?:通知|告知|告诉|发给|发送给|给)"
    r"|(?:通知|告知|转告)(?!书|单|中心|设置|功能|系统|机制|规则|列表|栏|是|的|有|我|和|与)\s*[\w@]"
    r"|(?:发给|发送给|寄给|抄送|转发给)\s*(?!我)\S"
)
_CHINESE_QUESTION = re.compile(r"怎么|怎样|如何|为什么|为何|什么|谁|哪|是否|多少|几")
_CHINESE_ASKS_IF = re.compile(r"吗|么[？?]?$")
_CHINESE_REQUEST = re.compile(r"请|帮|麻烦|可以|能不能|可否|能否|劳烦")
_CHINESE_NO = re.compile(r"(?:不要|别|无需|不用|不必|禁止|没有|未|不准)[^，。；]{0,5}$")

_QUOTED = re.compile(r"“([^”]{2,})”|\"([^\"]{2,})\"|「([^」]{2,})」|『([^』]{2,})』")
_AFTER_ADDRESS = re.compile(
    r"^\W*(?:(?:and\s+)?(?:that|saying|to say|say|telling \w+(?: that)?|with the (?:text|words?|message))\b"
    r"[\s:,]*"
    r"|[,，:：;；]?\s*(?:内容(?:是|为)?|告诉|通知|跟|对)?(?:他们|她们|他|她|大家|对方)?(?:说|讲)?[:：，,]?)(?P<rest>.{4,})$",
    re.IGNORECASE | re.DOTALL,
)
_THAT = re.compile(r"\b(?:that|saying)\s+(?P<rest>.{4,})$", re.IGNORECASE | re.DOTALL)
_POLITE = re.compile(r"^\W*(?:can|could|would|will) you\b.*\?\s*$", re.IGNORECASE | re.DOTALL)
_ABOUT = re.compile(
    r"\b(?:about|regarding|concerning)\s+(?P<rest>.{3,})$|(?:关于|有关)(?P<zh>.{2,})$", re.I | re.S
)
_SENDS = re.compile(
    r"\b(?:please|send|e-?mail|mail|notify|inform|alert|write|forward|message|let|know)\b|发送|发给|发|邮件|通知|告知|请|给",
    re.IGNORECASE,
)


def wants_mail(goal: str) -> bool:
    """Whether the goal asks to write to somebody, rather than asking about mail."""
    return any(_requests(sentence) for sentence in _looked_at(goal))


def addresses(*texts: str) -> list[str]:
    """The addresses in what a person said, each once."""
    return list(dict.fromkeys(found for text in texts for found in ADDRESS.findall(text)))


def message(goal: str) -> str | None:
    """The words to be sent, where the goal gives them: in quotation marks, or after the address."""
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(goal)]
    if quoted:
        return str(max(quoted, key=len)).strip()
    said = None
    last = list(ADDRESS.finditer(goal))[-1:]
    if last:
        after = goal[last[0].end() :].strip()
        said = None if _ABOUT.match(after) else _AFTER_ADDRESS.match(after)
    said = said or (_THAT.search(goal) if wants_mail(goal) else None)
    if said is None:
        return None
    words = _sentence(said["rest"])
    return words.rstrip("?") if _POLITE.match(goal) else words


def subject_matter(goal: str) -> str:
    """What the mail is to be about, where the goal says so."""
    about = _ABOUT.search(ADDRESS.sub(" ", goal))
    return " ".join((about["rest"] or about["zh"]).split()) if about else ""


def without_sending(goal: str) -> str:
    """The goal's words but for those that ask to send, to look up what is left."""
    return _SENDS.sub(" ", ADDRESS.sub(" ", goal))


def _requests(sentence: str) -> bool:
    english, chinese = _ENGLISH.search(sentence), _CHINESE.search(sentence)
    if _ENGLISH_QUESTION.search(sentence) or _asks_in_chinese(sentence):
        return False
    if english and not _ENGLISH_NO.search(sentence[: english.start() + 1]):
        return not _denied(sentence, english)
    if chinese and not _CHINESE_NO.search(sentence[: chinese.start()]):
        return True
    return bool(
        not english and not chinese and ADDRESS.search(sentence) and _WORD_FOR_SENDING.match(sentence.strip())
    )


def _denied(sentence: str, found: re.Match[str]) -> bool:
    verb = re.search(r"[a-z-]+(?=\s)", found[0], re.IGNORECASE)
    return bool(_ENGLISH_NO.search(sentence[: found.start() + (verb.start() if verb else 0)]))


def _asks_in_chinese(sentence: str) -> bool:
    if _CHINESE_QUESTION.search(sentence):
        return True
    return bool(_CHINESE_ASKS_IF.search(sentence) and not _CHINESE_REQUEST.search(sentence))


def _looked_at(goal: str) -> list[str]:
    if len(goal) <= 2 * LOOKED_AT:
        return sentences(goal)
    return sentences(goal[:LOOKED_AT]) + sentences(goal[-LOOKED_AT:])


def _sentence(words: str) -> str:
    words = " ".join(words.split()).strip(" ,，:：")
    return words[:1].upper() + words[1:]
