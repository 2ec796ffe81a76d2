"""Which addresses a person's words give, and what for: as whom to write to, pay or invite, or by saying whose
they are.

A list of what counts, not of what does not: an address that the words mention in any other way, in a language
or a form that nobody thought of, is not the person's for a call that acts, and is asked about.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from policy.provenance import forms, lexicon
from policy.provenance.infer import Declaration
from policy.provenance.intent import REMINDERS, intent_of_clause
from policy.provenance.words import NOT, NOT_CHINESE, UNSPACED, normalise, spaces

LONGEST = 20_000  # characters of what a person says; what stands behind them gives nothing
_SOMEBODY = "somebody@person.invalid"  # an address in the place of a name
ANYTHING = ""  # what an address is given for whose owner is told
NEAR = 200  # characters on either side of an address that say what it is there


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# An address is written as a letter nobody writes, and read in its order.
MARK = "\ue000"
# What may stand around one.
_OPEN = r"[\s'\"`“„‘«<(\[{]*(?:mailto:)?"
_CLOSE = r"[\s'\"`”“’»>)\]}]*"
NAME = (
    r"(?-i:(?!(?:What|Who|Whom|Which|Where|When|How|Why|This|That|It|There|The|If|An?|I|From|By|Sender|Mail|Email)\b)"
    r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.?\s)?[^\W\d_a-zß-ÿ][\w’'-]*(?:\s[^\W\d_a-zß-ÿ][\w’'-]*){0,3})"
)
_WHOSE = rf"(?:my|our|your|his|her|their|its|{NAME}['’]s?)"
_KIND = r"(?:new|current|work|private|personal|business|bank|company|home|mobile|right|correct|own)"
_ADDRESS = (
    r"(?:(?:e-?mail|mail|postal|web|bank|account|phone|mobile|telephone|cell|telegram|wechat|whatsapp|paypal|venmo)\s){0,2}"
    r"(?:e-?mail|mail|address|addresses|account|iban|phone|number|mobile|telephone|wallet|website|site|homepage"
    r"|blog|page|url|link|telegram|wechat|whatsapp|paypal|venmo|signal|mailbox)"
)
_PEOPLE = (
    r"(?:colleagues?|friends?|boss|manager|landlord|accountant|partner|wife|husband|mother|father|brother|sister"
    r"|team|people|persons?|users?|members?|guests?|participants?|attendees?|recipients?|contacts?|customers?|clients?)"
)
# Whose address it is, between what says "to" and the address itself.
_PHRASE = (
    rf"(?:(?:him|her|them|me|us|{NAME})\sand\s)?(?:(?:{_WHOSE}|the|this|these|following|both|also|please|all|new|other|a|an|him|them|{_KIND})\s)*"
    rf"(?:{NAME},?\s?)?"
    rf"(?:(?:{_PEOPLE}|addresses|ones?|others)[\s:,]*)?(?:{NAME},?\s?)?(?:(?:at|under)\s)?(?:{_ADDRESS}\s?){{0,2}}(?:at\s|no\.?\s|nr\.?\s|:)?"
)
_DIRECT = re.compile(rf"\s*:?\s*{_PHRASE}{_OPEN}")
_BEFORE = re.compile(
    rf"(?P<rest>.*)(?<![\w-])(?P<by>to|cc|bcc|with|for|at|via|into|onto|on|in|through|under|from):?\s{_PHRASE}{_OPEN}",
    re.DOTALL,
)
# "Forward A to Ann": it is what is sent, and not to whom.
_TO_ANOTHER = re.compile(
    rf"{_CLOSE}\sto\s(?:{NAME}|{MARK}|(?:him|her|them|me|us)\b|(?:my|our|the|his|her)\s\w)"
)
# "Add A to the meeting", and not "add A to the notes"; "let A know", and not "let A wait".
_ADDED = re.compile(
    rf"{_CLOSE}\s*(?:$|[.,;!?)]|{MARK}|(?:and|please|too|instead|for|an?|that|about)\b|as\s(?:an?\s)?(?:guest|participant|attendee"
    r"|recipient|member|cc)|(?:to|in|on)\s(?:the\s|my\s|our\s|this\s)?(?:[\w’'-]+\s){0,3}?(?:event|meeting|calendar|invite"
    r"|invitation|participant|attendee|guest|channel|team|group|project|contact|folder|recipient|cc|bcc|copy|newsletter|appointment"
    r"|call|party|chat|course|workspace|(?:e-?)?mail)s?\b(?!\s(?!and\b|for\b|on\b|at\b|about\b|with\b|in\b|of\b|to\b|that\b"
    r"|next\b|this\b|tomorrow\b|today\b|as\b|if\b|when\b|so\b|then\b|please\b|too\b|by\b|from\b|list\b|event\b|members?\b)[a-z]))",
    re.IGNORECASE,
)
_AFTER = {
    **dict.fromkeys(("add", "include", "copy"), _ADDED),
    "let": re.compile(rf"{_CLOSE}\s(?:and\s[^.;,]{{1,60}}\s)?(?:know|have)\b"),
}
# What stands behind a further address of a list; of none of them something is said.
_GOES_ON = re.compile(
    rf"{_CLOSE}\s*(?:$|[.,;:!?&+/(-]|{MARK}|(?:and|or|as|also|plus|too|please|the|a|an|my|our|this|that|it|about|for|to|at|on"
    r"|in|via|by|with|before|after|when|once|if|today|tomorrow|now|instead|saying|know|each|all|every|next|your|his|her|their)\b)",
    re.IGNORECASE,
)
# The recipient of what was sent is no recipient of what is to be sent.
_DISPATCHED = re.compile(
    r"\b(?:wrote|written|sent|went|gone|goes|came|comes|arrived|arrives|forwarded|mailed|emailed|replied|said|says"
    r"|told|paid|transferred|shared|invited|addressed|received|belongs?|moved|mails|emails|letters|payments"
    r"|transfers|writes|sends|writing|sending|paying|access|due|owed)(?:\s\w+){0,2}\s*$",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    rf"{_CLOSE}(?:(?:,|;|/|&|\+|\band\b|\bor\b|\bas well as\b|\balso\b|\bplus\b|[-*•]|\d+[.)]"
    rf"|\b(?:with\s)?(?:an?\s)?(?:copy|copies|cc|bcc)(?:\sto)?\b:?|\bto\b|\bwith\b)\s*)+{_PHRASE}{_OPEN}"
)
_AND_ANOTHER = re.compile(rf"{_CLOSE}(?:the|a|an|my|our)\s\w+,?\sand\s{_OPEN}")
_ARTICLE = re.compile(r"\s(?:the|a|an|my|our)\s")
_SUBJECT = re.compile(  # an address of which something is said
    rf"{_CLOSE}(?:['’]s\b|(?:\s|^)*(?:is|was|are|were|has|had|wrote|writes|sent|sends|says|said|claims|claimed|asked"
    r"|asks|wants|wanted|gets|got|must|should|may|might|can|cannot|could|will|would|did|does|keeps|kept|never|not"
    r"|no|forwarded|needs|bounced|bounces|seems|looks|looked|came|comes)\b"
    r"|[^.;,]{0,40}\b(?:block|spam|black|ban|filter|junk|deny|scam)\w*)",
    re.IGNORECASE,
)

# "Her email is …", "Ann's address: …", "IBAN …".
_LABEL = (
    r"(?:to|cc|bcc|recipients?|participants?|attendees?|guests?|invitees?|addressees?|payee|beneficiary)"
    r"\s?[:：]"
)
_NAMED = re.compile(
    rf"(?:(?:^|[\s(,;:])(?:{_WHOSE}|the)\s(?:{_KIND}\s)*{_ADDRESS}(?:\s(?:of|for)\s{NAME})?\s?(?:is|are|[:=])?"
    rf"|(?:^|[.;,(])\s*[-*•]?\s*(?:{NAME},?\s{_ADDRESS}\s?(?:is|[:=])|{_ADDRESS}\s?(?:is|[:=])?)"
    rf"|(?:^|[.;])\s*[-*•]?\s*{_LABEL}"
    rf"|(?:^|[\s(,;]){NAME}['’]s?\sis|\b(?:reach|contact|find)\s(?:her|him|them|me|us|{NAME})\s(?:at|under|on|by|via)"
    rf"|\b{NAME}\s(?:is|can be reached|may be reached)\s(?:at|under|on|via)){_OPEN}$",
    re.IGNORECASE,
)
_IS_THEIRS = re.compile(
    rf"{_CLOSE}\sis\s(?:(?:{_WHOSE}|the)\s(?:{_KIND}\s)*{_ADDRESS}|(?:the\s)?(?:right|correct|new)\sone)\b"
)
_CALLED = re.compile(rf"(?:^|[.;,]|\band\s)\s*{NAME}\s?[(<]$")
_WANTS = re.compile(
    rf"{_CLOSE}\s(?:(?:wants|needs|would like|should (?:get|have)|gets|(?:waits|is waiting) for)"
    r"\s(?:the|an?|this|that|it|our|your|more|to (?:know|see|have|get|receive|read|be (?:told|informed)))"
    r"|has to (?:know|see|have|get|receive|read))\b(?!\smoney)",
    re.IGNORECASE,
)
# A sentence with such a word says whose an address is in another sense.
_BAD = re.compile(
    r"\b(?:spam|scam|phish|fraud|fake|suspicious|block|black|ban(?:s|ned)?\b|hack|attack|stolen|malicious|wrong"
    r"|former|previous|outdated|obsolete|invalid|stranger|sender|ignore|warning|beware|old\b|ex\b|from\b|by\b"
    r"|sa(?:y|id)|claim|told|tells|wrote|writes|accord|pretend|reads?\b)",
    re.IGNORECASE,
)
# A word that is written as a name is: with a capital, and not in capitals.
_WRITTEN_AS_NAME = r"(?=[^\W\d_a-zß-ÿ])(?![^\W\d_a-zß-ÿ]{2,}(?![^\W\d_]))"
# What may stand behind a name that is given; "send Monday figures" gives none.
_ENDS_NAME = re.compile(
    rf"{_GOES_ON.pattern}|{_CLOSE}\s*(?:[$€£¥\d)\]]|['’]|{NAME}|(?:back|again|by|per|using|from|since|because|so|who|which|what"
    r"|how|whether|where|no|any|some|three|two|one|has|asked|and|then|both|directly)\b)",
    re.IGNORECASE,
)
# "Zoe the report", "the landlord 500"; and what says that it goes to somebody else.
_GETS_IT = re.compile(
    rf"{_CLOSE}\s(?:(?:the|an?|my|our|his|her|their|what|all|every)\b|[$€£¥\d])", re.IGNORECASE
)
_GOES_TO = re.compile(
    rf"[^.;!?\n]*\b(?:to|with)\s(?:{NAME}|{MARK}|(?:him|her|them|me|us|everybody|everyone)\b|(?:my|our|the|his|her|their|all)\s)",
    re.IGNORECASE,
)
_WHOM = re.compile(
    rf"\b(?:to|from|of|by|answer|thank)\s(?:(?:the|my|our|his|her|their|this|that|{_KIND})\s)*({NAME}|{_PEOPLE}\b)"
    rf"|\b({NAME}|{_PEOPLE})['’]s?\s|\bthat\s({NAME}|{_PEOPLE})\s(?:has\s)?(?:sent|wrote|written|mailed)\b"
)
# Who is named before a word: "my boss asap", "Bob asap"; not "the Zeta lawyers".
_SOMEBODY_ELSE = re.compile(rf"\b(?:{_PEOPLE}|him|her|them|me|us)\b|^(?!\s*(?:the|my|our)\s)\s*{NAME}")
# "Email Ann at A", and not "send Ann a report on A".
_REACHED = re.compile(
    rf"^\s*$|(?:^|\s)(?:him|her|them|me|us|it|this|that|both|{NAME}|(?:my|our|the|his|her|their)\s(?:\w+\s)?{_PEOPLE}"
    rf"|(?:{_WHOSE}|the)\s(?:{_KIND}\s)*{_ADDRESS}),?\s*$"
)
# An order that says itself whom it is about, at its beginning: "email Ann …", "send a summary to all".
_TO_SOMEBODY = re.compile(
    rf"^\w+\s(?:(?:to|with)\s)?(?:me|us|all|everybody|everyone|{NAME}|(?:my|our|the|his|her|their)\s{_PEOPLE})\b"
    rf"|\b(?:to|cc|bcc)\s(?:me|us|all|everybody|everyone|{NAME}|(?:my|our|the|his|her|their)\s{_PEOPLE})\b"
    r"|^(?:e?mail|tell|notify|inform|text|message|cc|bcc|invite|answer)\s(?!(?:him|her|them|it|this|that|these|those"
    r"|the|an?|both|my|our|your|his|their|some|any|no|one|two|three|each|every|what|whether|when|how|about|and|or|to"
    r"|with|for|on|in|at|by|as|back|again|too|please|now|then)\b)[a-z]\w*\s",
    re.IGNORECASE,
)
# A message that is little else than an address answers a question.
_ANSWER = _set(
    "use the second first third last other one please it is it's its to yes ok okay thanks thank you her "
    "his my our email e-mail mail address account number iban this that here at sure hi hello and or both "
    "only just new work private personal for take send write try i mean meant would be should sorry "
    "rather instead"
)
_EXCEPTED = re.compile(
    r"^\s*(?:not|except|minus|but)\b|\b(?:bounced?|replace[sd]?)\b|\b(?:was|before|until)\s?[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_LONGEST_ANSWER = 8  # words beside the addresses
_LONGEST_NAME = 4  # words beside each address of a list
_WORD = re.compile(r"[^\W\d_][\w'’-]*")

# A letter of a word or of an address; where words are not spaced, a name begins anywhere.
_LETTER = r"[^\W\u2e80-\u9fff]|[-@]"
_TO = r"(to|at|into|send|pay|email|mail|transfer|wire|use)"
# "Write to her", and not "send her report".
_THEM = (
    r"\b(?:him|her|them)\b(?=\s*(?:$|[.,;:!?)]|(?:the|an?|my|our|this|that|it|about|whether|when|if|and|or|for|to|at|on|in|by"
    r"|with|back|know|again|too|today|tomorrow|now|please|what|how)\b))"
)

# What may stand before a verb that commands; "customers pay …" only tells.
_YOU = _set("could can would will want should must please if")
_MINE = _set("i we i'd we'd i’d")
_LEADS_IN = _set(
    "please and then to you also or now just first second third next finally kindly but so afterwards "
    "later today tomorrow immediately again too either both let's lets help cc with further otherwise "
    "rather hi hello hey"
)
_SOFTENS = _set("please also kindly just now")
_WISHES = _set("want need like love wish ask prefer")
_GOVERNS = _WISHES | _set(
    "have has remember forget fail hesitate try sure going about time ready free not and or then also please"
)
_IS = _set("is are was were be")
_TASKS = _set("task tasks step steps plan aim goal job idea wish thing it")
_OF_OTHERS = _set(
    "me us wants wanted asked asks told tells tries tried plans said says begs begged urged urges demands "
    "expects expected invited reminded supposed allowed able forced she he they it her him them used "
    "refuses refused"
)
_TELLS = _set(
    "tell ask inform notify remind let message email mail write text reply respond answer announce warn"
)
_CONTENT = _set("that whether should must can could may might will would shall has have not what if because")
_ASKED = re.compile(rf"him|her|them|{_PEOPLE}")  # "ask her to write", "remind my boss to write"
_ARTICLES = _set("the a an my our your his her their all every this these")
# Of these verbs what stands beside them is no recipient, or they take something away.
_TAKES_AWAY = lexicon.ASKS["delete"] | _set("report mute filter find stop avoid return")
_OF_A_THING = (lexicon.MEANS["change"] | _set("put start make keep file close merge")) - {"add"}
SENDS = _set(
    "send mail email write forward reply tell message text notify inform post pay transfer wire respond"
)
_MAKES = _set("create schedule set setup make write prepare draft add put arrange organize plan")
_OF = re.compile(r"\b(?:of|about)\b", re.IGNORECASE)  # "a summary of the chat with A"
# Of these verbs a name beside them is somebody's; of the next, of what is sent, too; of these never.
_OF_PEOPLE = _set("invite notify tell inform remind contact ask cc bcc message thank reply respond text")
_WRITES_TO = _set("email mail write answer reach")
_PAYS = _set("pay reimburse refund")
_OF_SOMETHING = (_MAKES | _set("book reserve order buy purchase rent plan launch run")) - _set("write add")
_OF_GUESTS = _set("invite add include")  # whom they are about stands beside them, and what to behind "to"
_GETS = _set("buy order purchase book rent reserve install import clone copy")
_VERBS = (lexicon.VERBS | {"cc", "bcc", "include", "contact", "use", "reach"}) - {"open"}
_NO = re.compile(
    rf"{NOT}|\b(?:nobody|nothing|no(?!\s?,|\.\s?\d)|none|neither|nor|stop|avoid|ignore|refrain|refuse|except|minus"
    rf"|beware|rather than|instead of|other than|apart from|in place of|keep\s\w+\sfrom)\b|{NOT_CHINESE}",
    re.IGNORECASE,
)
_WHY_NOT = re.compile(
    r"\bwhy (?:don|do|not|couldn|can)\S*(?: not)?(?: you)?\b|\b(?:couldn|can|won|wouldn)\S?t you\b",
    re.IGNORECASE,
)
_REMINDERS = re.compile(REMINDERS.pattern, re.IGNORECASE)
_IF = re.compile(r"\b(?:if|when|as|since|because)\b[^,]*$", re.IGNORECASE)
_AFTER_NO = re.compile(r"\bbut\b(?!\s+not)|;|,\s(?:please|then)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"^\W*(?:is|are|was|were|did|does|do|has|have|had|am|should|shall|may|might|must|who|whom|whose|what|which|when"
    r"|where|how|why)\b.*\?[^\w?]*$|\b(?:should|shall|must|may|do)\s(?:i|we)\b.*\?[^\w?]*$",
    re.IGNORECASE | re.DOTALL,
)
# "Pay A?" asks back; a request says so.
_ASKS_BACK = re.compile(
    r"(?!.*\b(?:can|could|will|would|won['’]?t|don['’]?t|please)\b).*\?[^\w?]*$", re.IGNORECASE | re.DOTALL
)
_POINT = (
    r"(?<=[.])"
    + "".join(
        rf"(?<!\b{short}\.)"
        for short in ("no", "nr", "dr", "mr", "mrs", "ms", "st", "prof", "e\\.g", "i\\.e")
    )
    + r"(?<!\d\.)"
)
_SENTENCE = re.compile(rf"(?<=[!?])\s+|{_POINT}\s+|[。！？]|;\s(?!\s*{MARK})", re.IGNORECASE)
# "… www.example.com.They sent …": a sentence that begins without a blank; no domain ends in such a word.
_NO_BLANK = re.compile(
    rf"(?<=[a-z])\.(?=(?:{'|'.join(sorted(word.title() for word in lexicon.GLUE if len(word) > 3))})\s)"
)
_TOKEN = re.compile(rf"{MARK}|[^\W\d_]+(?:['’-][^\W\d_]+)*|[.,;:!?\n]")

# "The mail says: …", "translate: …": what follows is somebody's text.
_DICTATED = re.compile(
    r"\b(?:says?|said|reads?|wrote|writes|states?|stated|text|mail|message|letter|post|comment|note|page|article|quote"
    r"|received|got|forwarded|translate|summari[sz]e|explain|check|mean|means|answered|replied|asks|asked)\b"
    r"[^.;:!?\n]{0,60}:(?!\s*[\d-]*[.)]?\s*\ue000)(?=\s|$)",
    re.IGNORECASE,
)

# A line after which comes what somebody else wrote: "The mail says:", "What does this mean?"
_PASTES = re.compile(
    _DICTATED.pattern.removesuffix(r"(?=\s|$)") + r"\s*$"
    r"|\b(?:what|translate|summari[sz]e|explain|check|read|reply|answer|proofread|correct|look|analy[sz]e|is)\b"
    r"[^.\n]{0,60}\b(?:this|following|below)"
    r"(?:\s(?:e-?mail|mail|message|text|letter|note|thread|mean|say|ok|okay|legit|spam|real|true))?\s*[:?.]?\s*$"
    r"|\b(?:e-?mails?|mails?|messages?|letters?|threads?|texts?|notes?|conversation)\s(?:below|underneath|(?:that|which)\sfollows?)\W*$"
    r"|\b(?:e-?mail|mail|message|text|letter)\s(?:that\s)?(?:i|we)\s(?:have\s)?(?:got|received)\W*$",
    re.IGNORECASE,
)

# Chinese says it by what stands directly before the address.
_CHINESE_CLAUSE = re.compile(r"[，。；！？,;!?\n]")
_CHINESE_TO = re.compile(
    rf"(?:给|到|至|向|往|邀请|抄送|通知|告诉|联系|转账|付款|发送)\s?[^{MARK}\s的，、]{{0,6}}\s?{_OPEN}$"
)
_CHINESE_AND = re.compile(rf"{_CLOSE}\s?(?:和|与|及|以及|、|或)\s?[^{MARK}\s]{{0,6}}{_OPEN}")
_CHINESE_IS = re.compile(rf"(?:邮箱|邮件|地址|账号|账户|电话|手机|微信号|网址)\s?(?:是|为|：|:)\s?{_OPEN}$")
_CHINESE_BAD = re.compile(
    "让(?!我)|叫(?!我)|已|昨天|刚才|来自|从|骗|垃圾|旧|以前|可疑|诈|黑客|坏人|偷|吗|拒绝|翻译|解释"
)
# An order begins its clause; "他让我…", "为什么…", "昨天…" only tells.
_CHINESE_VERBS = "|".join(sorted(frozenset().union(*lexicon.CHINESE.values())))
_CHINESE_ORDER = re.compile(
    r"[\s\d.、)-]*(?:[Ee]mail|[Pp]lease|请|麻烦|帮我|帮忙|然后|再|并且|并|也|同时|最后|你|能|可以|我想|我要|现在|今天|明天|\s)*"
    rf"(?:把|将|给|向|往|发|写|寄|转|抄送|联系|总结|读|查|{_CHINESE_VERBS})"
)


_OPENS_LIST = re.compile(r"(?:[:,]|\b(?:to|cc|bcc|with|and|people|addresses|recipients))\s*$", re.IGNORECASE)
# "Reply to the mail from …" goes to whom it came from.
_ANSWERED = re.compile(
    r"\s(?:to\s)?(?:(?:the|this|that|my|last|latest|newest|unread|new)\s)*"
    r"(?:e-?mails?|mails?|messages?|letters?|requests?|questions?|invitations?)\s?"
)
# Behind an address, what says that further ones come on the next line.
_MORE = re.compile(
    rf"{_CLOSE}\s*(?:,|(?:[,;&+]|\b(?:and|or|also|plus|as well as|cc|bcc)\b)[\s,]*(?:\b(?:and|or|also"
    r"|plus|cc|bcc|to|with|the|these|those|following|other|others|people|persons|addresses|recipients|colleagues)\b[\s,]*)*:?)\s*",
    re.IGNORECASE,
)
_NOT_A_LIST = re.compile(
    r"\b(?:from|by|of|about|that|whether|what|which|who|whom|if|because|says?|reads?)\b", re.IGNORECASE
)
_ENDS_LABEL = re.compile(rf"^\s*{_LABEL}\s*$", re.IGNORECASE)
# "Send Ann the mails to …": who gets it is said already.
_SPOKEN_FOR = re.compile(
    rf"\s(?:me|us|her|him|them|(?:my|our|the|his|her)\s\w+|{NAME})\s(?:the|a|an|my|our|his|her|their|all|what|every|about)\s"
)
# "Forward to Ann the mails to …", "email Ann, hold the mail to …": the same; "answer Ann's mail to …".
_ALREADY_TO = re.compile(
    rf"\s(?:to\s(?:{NAME}|(?:him|her|them|me|us)\b)\s(?:the|a|an|my|our|his|her|their|all)\s|{NAME},?\s?,\s\w)"
)
_THINGS_TO = re.compile(rf"\s(?!.*['’]s?\s){NAME}\s[a-z]+\s*")  # "send Bob directions to …"
_ANOTHERS_MAIL = re.compile(rf"{NAME}['’]s?\s(?:\w+\s){{0,2}}\w+\s*$")
_ANOTHER_TIME = re.compile(r"\b(?:before|after|until|while|when|once|if|unless)\b", re.IGNORECASE)


def before_pasted(text: str) -> str:
    """The words up to a line after which comes what somebody else wrote."""
    lines = text.split("\n")
    last = next((number for number, line in enumerate(lines) if _PASTES.search(line)), len(lines))
    return "\n".join(lines[: last + 1])


def serves(said: str, declared: Declaration | None) -> bool:
    """Whether an address that a sentence gives is given for what a call does: "order a book on …" lets nobody
    write there.
    """
    if said == ANYTHING or declared is None or not declared.deeds:
        return True
    asked = intent_of_clause(said)
    return not (asked.verbs or asked.deeds) or asked.orders(declared)


def addresses(text: str, kind: "type[_Sentence] | None" = None) -> Mapping[str, set[str]]:
    """The addresses that words give, in every form of each, with the sentences that do or ANYTHING. `text`:
    without quotations.
    """
    clean = _NO_BLANK.sub(". ", forms.clean(text[:LONGEST]))
    found = list(forms.leads(clean))
    if not found or MARK in clean:
        return {}
    starts = [0, *(end for _, _, end in found)]
    ends = [*(start for _, start, _ in found), len(clean)]
    marked = MARK.join(clean[start:end] for start, end in zip(starts, ends, strict=True))
    spoken: dict[str, set[str]] = defaultdict(set)
    mails = {number for number, (form, *_) in enumerate(found) if forms.kind(form) == "mail"}
    for number, said in _spoken(marked, kind or _Sentence, mails):
        for spelled in forms.spellings(found[number][0]):
            spoken[spelled].add(said)
    return spoken


def names(text: str, name: str) -> set[str]:
    """The sentences, or ANYTHING, in which words give a name as they would give an address: "send Zoe the
    report", and not "tell Bob that Zoe wrote", nor "send the Monday report to Bob". `text`: without
    quotations. A word with a small letter is taken for a name in fewer places than one with a capital.
    """
    if name in lexicon.NOBODY:
        return set()
    alone = rf"{re.escape(name)}(?!{_LETTER}|\.\w)"
    begins = rf"(?<!{_LETTER})(?<!\w\.)"
    capital = _given_as(rf"{begins}(?-i:{_WRITTEN_AS_NAME}){alone}", text[:LONGEST], _Name)
    kind = _Name if re.fullmatch(_PEOPLE, name) else _Word
    return capital | _given_as(rf"{begins}(?-i:(?=[a-zß-ÿ])){alone}", text[:LONGEST], kind)


def whom(clause: str) -> list[str]:
    """The names, and the words for people, that say in a clause whose or to whom: "to Bob", "Ann's mail"."""
    return [next(filter(None, found.groups())) for found in _WHOM.finditer(clause)]


def pronouns(text: str) -> set[str]:
    """The same of whom was spoken of before: "Zoe asked for it. Send it to her"."""
    return _given_as(_THEM, text[:LONGEST], _Sentence)


def _given_as(spelled: str, text: str, kind: "type[_Sentence]") -> set[str]:
    answered = rf"\b(answer|reply\sto|respond\sto|react\sto)\s(?:{spelled})['’]s\s\w+"
    clean = re.sub(answered, rf"\1 {_SOMEBODY}", text, flags=re.IGNORECASE)
    clean = re.sub(
        rf"\b{_TO}\s(?:{spelled})['’]s\s{_ADDRESS}\b", rf"\1 {_SOMEBODY}", clean, flags=re.IGNORECASE
    )
    alone = f" {_SOMEBODY} " if UNSPACED.search(text) else _SOMEBODY
    clean = re.sub(spelled, alone, clean, flags=re.IGNORECASE)
    return addresses(clean, kind).get(forms.canonical(_SOMEBODY), set())


def _spoken(text: str, kind: "type[_Sentence]", mails: Collection[int]) -> Iterator[tuple[int, str]]:
    """The numbers of the marks that stand where an address is given, each with the sentence. `mails`: those
    of mail addresses.
    """
    if _is_answer(text, kind.answer):
        yield from ((number, ANYTHING) for number in range(text.count(MARK)))
        return
    first = 0
    goes_on: str | None = None  # what the addresses of a list on the next line are given for
    for line in text.split("\n"):
        if MARK in line and goes_on is not None and _is_list(line):
            yield from ((first + number, goes_on) for number in range(line.count(MARK)))
            first += line.count(MARK)
        elif line.strip():
            for part in _SENTENCE.split(line):
                its = {number - first for number in mails}
                sentence = _Chinese(part) if UNSPACED.search(part) else kind(part, its)
                yield from ((first + number, what) for number, what in sentence.given())
                goes_on = sentence.goes_on()
                first += part.count(MARK)
            if _PASTES.search(line):
                return  # the rest is somebody's text


def _is_answer(text: str, beside: frozenset[str]) -> bool:
    """Whether a message is little else than addresses. `beside`: the words that may stand there."""
    found = re.findall(r"[\w'’-]+", text[: NEAR * 10].replace(MARK, " "))
    if (
        "?" in text
        or re.search(MARK + _TO_ANOTHER.pattern, text)
        or re.search(rf"{MARK}[^\n]*:\s*\n", text)  # what follows is sent there
        or len(found) > _LONGEST_ANSWER
        or _EXCEPTED.search(text)
        or _BAD.search(text)
        or len(text) > NEAR * 10
    ):
        return False
    return all(word.lower() in beside or _is_name(text, word) for word in found)


def _is_list(line: str) -> bool:
    """Whether a line holds addresses and names, and nothing else."""
    found = _WORD.findall(line)
    few = len(found) <= _LONGEST_NAME * line.count(MARK)
    return few and all(word[:1].isupper() for word in found) and not _BAD.search(line)


def _is_name(text: str, word: str) -> bool:
    """Whether a word is a name there: "Ann's is …", and not "Ignore …"."""
    if not word[:1].isupper() or word.lower() in _VERBS | lexicon.READS:
        return False
    return not text.startswith(word) or bool(re.search(rf"{re.escape(word)}(?:['’]s|,|\s?[(<])", text))


@dataclass
class _Said:
    """How far a sentence has said what to do: by which verb, and which address it gave last."""

    verb: str = ""
    end: int = 0  # where the verb ends
    served: bool = False  # it has whom to send to
    told: bool = False  # what follows is told to somebody, and not to be done


class _Sentence:
    """One sentence, its addresses as marks."""

    answer = _ANSWER

    def __init__(self, text: str, mails: Collection[int] = ()) -> None:
        self.text = text
        self.mails, self.mail = mails, False  # the marks of mail addresses, and whether the one at hand is
        asks = _REMINDERS.sub(spaces, _WHY_NOT.sub(spaces, text))
        self.question = bool(_QUESTION.search(asks) or _ASKS_BACK.match(text))
        self.tokens = list(_TOKEN.finditer(asks))
        self.closed = [*_forbidden(asks), *_dictated(asks)]
        found = _BAD.search(text)
        self.bad = found.start() if found else len(text)
        found = _NO.search(asks)
        self.no = found.start() if found else len(text)
        self.said = _Said()
        self.orders: list[int] = []  # where each verb that commands begins
        self.last, self.what = -1, ANYTHING  # where the address ends that was given last, and what for

    def given(self) -> Iterator[tuple[int, str]]:
        """The numbers of its marks that are given, and what for."""
        if self.question:
            return
        before: list[str] = []
        number = 0
        found: list[tuple[int, str, int]] = []
        for token in self.tokens:
            word = token[0].lower()
            if word == MARK:
                self.mail = number in self.mails
                what = self._gives(*token.span())
                if what is not None:
                    self.last, self.what = token.end(), what
                    found.append((number, what, token.start()))
                number += 1
            else:
                self._hear(word, before, *token.span())
            before.append(word)
        for number, what, place in found:
            self.what = what if what == ANYTHING else self._ordered(place)
            yield number, self.what

    def _ordered(self, place: int) -> str:
        """What an address that stands there is given for: the sentence without its orders that are about
        somebody else, "set up a filter for A and email Ann a summary".
        """
        bounds = [0, *self.orders, len(self.text)]
        parts = [self.text[start:end] for start, end in pairwise(bounds)]
        mine = bisect_right(self.orders, place)
        return "".join(
            part
            for number, part in enumerate(parts)
            if number in (0, mine) or not (MARK in part or _TO_SOMEBODY.search(part))
        )

    def goes_on(self) -> str | None:
        """What a list on the next line is given for, where it is one of those it speaks of."""
        if _ENDS_LABEL.search(self.text):
            return ANYTHING
        if not _OPENS_LIST.search(self.text) or self._is_closed(len(self.text)):
            return None
        if self.last >= 0:
            return self.what if _MORE.fullmatch(self.text, self.last) else None
        if self.question or self.said.told or not self.said.verb or self.said.verb in _OF_A_THING:
            return None
        return None if _NOT_A_LIST.search(self.text[self.said.end :]) else self.text

    def _is_closed(self, place: int) -> bool:
        return any(start <= place < end for start, end in self.closed)

    def _hear(self, word: str, before: list[str], start: int, end: int) -> None:
        """Take in a word: a verb that commands begins anew, one of somebody else's ends what was begun."""
        said = self.said
        if said.told:
            said.told, said.verb = (False, "") if word in ("then", ";") else (True, said.verb)
        elif _tells(said.verb, word, before):
            said.told = True
        elif word in lexicon.RECOUNTING:
            said.verb = ""
        elif before[-1:] and before[-1] in lexicon.BEFORE_NOUNS:
            return
        elif (_base(word) in _VERBS or word in lexicon.READS) and commands(before):
            self.orders.append(start)
            acts = _base(word) in _VERBS and word not in _TAKES_AWAY
            self.said = _Said(_base(word) if acts else "", end)

    def _gives(self, start: int, end: int) -> str | None:
        """What an address is given for, if it is."""
        before, after = self.text[max(0, start - NEAR) : start], self.text[end : end + NEAR]
        if _SUBJECT.match(after):
            return ANYTHING if self._is_theirs(start, after) else None
        verb = self.said.verb
        if verb in SENDS and _TO_ANOTHER.match(after):
            return None
        if not self._is_closed(start):
            if self.last >= 0 and _goes_with(self.text[self.last : start], after):
                return self.what
            found = bool(verb) and not self.said.told and self._is_sent_to(start)
            if found and (verb not in _AFTER or _AFTER[verb].match(after)):
                self.said.served = True
                return self.text if verb != "use" else ANYTHING
        return ANYTHING if self._is_named(start, before, after) else None

    def _is_sent_to(self, start: int) -> bool:
        """Whether the verb sends, pays or invites to what stands there."""
        verb, between = self.said.verb, self.text[self.said.end : start]
        found = _BEFORE.fullmatch(between, max(0, len(between) - NEAR))
        if self.said.served:
            return found is not None and found["by"] in ("cc", "bcc")
        if len(between) <= NEAR and verb not in _OF_A_THING and _DIRECT.fullmatch(between):
            return True
        if found is None or _DISPATCHED.search(found["rest"]):
            return False
        if found["by"] == "from":
            return verb in _GETS or (
                verb in lexicon.ANSWERS and _ANSWERED.fullmatch(found["rest"]) is not None
            )
        if found["by"] in ("with", "for"):
            return verb not in SENDS and not (verb in _MAKES and _OF.search(found["rest"]))
        if found["by"] != "to":
            copied = found["by"] in ("cc", "bcc") or not self.mail or verb in _OF_SOMETHING
            reached = copied or bool(_REACHED.search(found["rest"]))
            return reached and not _ANOTHER_TIME.search(found["rest"])
        if verb in SENDS and _THINGS_TO.fullmatch(found["rest"]):
            return False
        answers = verb in lexicon.ANSWERS and _ANOTHERS_MAIL.search(found["rest"])
        return not (answers or _SPOKEN_FOR.match(between) or _ALREADY_TO.match(between))

    def _is_named(self, start: int, before: str, after: str) -> bool:
        """Whether it is said whose address it is."""
        if min(self.bad, self.no) < start or _BAD.match(after.lstrip()):
            return False
        return bool(_NAMED.search(before) or (_CALLED.search(before) and _WANTS.match(after)))

    def _is_theirs(self, start: int, after: str) -> bool:
        """ "… is her address", or "Ann (…) wants …"."""
        before = self.text[:start][-NEAR:]
        if min(self.bad, self.no) < start:
            return False
        first = not before.strip(" '\"<([")
        return bool((first and _IS_THEIRS.match(after)) or (_CALLED.search(before) and _WANTS.match(after)))


class _Name(_Sentence):
    """One sentence, a name in it as marks. It is given in fewer places than an address: something that is
    sent, a day or a place may be called so.
    """

    def _gives(self, start: int, end: int) -> str | None:
        return super()._gives(start, end) if _ENDS_NAME.match(self.text[end : end + NEAR]) else None

    def _is_sent_to(self, start: int) -> bool:
        if not super()._is_sent_to(start):
            return False
        verb, between = self.said.verb, self.text[self.said.end : start]
        after = self.text[start + len(MARK) :][:NEAR]
        found = _BEFORE.fullmatch(between, max(0, len(between) - NEAR))
        if found is None or (len(between) <= NEAR and _DIRECT.fullmatch(between)):
            return verb not in _OF_SOMETHING and self._is_object(verb, between, after)
        by, phrase = found["by"], between[found.end("by") :]
        if by in ("to", "cc", "bcc"):
            return verb not in _OF_GUESTS and self._is_recipient(phrase)
        if by == "for" and verb in _OF_GUESTS:
            return False
        return by == "from" or (by in ("with", "for") and self._is_beside(phrase))

    def _is_object(self, verb: str, between: str, after: str) -> bool:
        """Whether it is whom the verb is about: "send Zoe the report", not "send Falcon by mail to Bob", nor
        "send her the Budget".
        """
        if _SPOKEN_FOR.match(between):
            return False
        return bool(_GETS_IT.match(after)) or verb in _OF_PEOPLE or not _GOES_TO.match(after)

    def _is_recipient(self, phrase: str) -> bool:
        """Whether it is whom "to" leads to, behind these words."""
        return True

    def _is_beside(self, phrase: str) -> bool:
        """The same of "with" and "for"."""
        return True


class _Word(_Name):
    """The same of a word with a small letter, which may be anything: "email zoe", not "email the summary"."""

    answer = _ANSWER - _ARTICLES - _set("second first third last other one new work private personal")

    def _is_object(self, verb: str, between: str, after: str) -> bool:
        if _SOMEBODY_ELSE.search(between):
            return False
        if verb in _OF_PEOPLE or (_GETS_IT.match(after) and not _GOES_TO.match(after)):
            return True
        bare = verb in _PAYS and not between.strip()
        return (bare or verb in _WRITES_TO) and not _GOES_TO.match(after)

    def _is_recipient(self, phrase: str) -> bool:
        return not _SOMEBODY_ELSE.search(phrase)

    def _is_beside(self, phrase: str) -> bool:
        return not phrase.strip() and self.text.islower()

    def _is_named(self, start: int, before: str, after: str) -> bool:
        return False


def _goes_with(beside: str, after: str) -> bool:
    """Whether an address stands in a list with the one before."""
    if len(beside) > NEAR or not _GOES_ON.match(after):
        return False
    return bool(_BETWEEN.fullmatch(beside) or (_AND_ANOTHER.fullmatch(beside) and _ARTICLE.match(after)))


def _forbidden(said: str) -> Iterator[tuple[int, int]]:
    """The spans that a no covers: to where the clause turns, or the sentence ends."""
    past = 0
    for found in _NO.finditer(said):
        if found.start() < past:
            continue
        turn = _AFTER_NO.search(said, found.end())
        past = turn.start() if turn else len(said) + 1
        comma = said.find(",", found.end())
        if comma >= 0 and _IF.search(said[max(0, found.start() - NEAR) : found.start()]):
            past = comma
        yield found.start(), past


def _dictated(said: str) -> Iterator[tuple[int, int]]:
    """The span behind "the text reads: …"."""
    found = _DICTATED.search(said)
    if found:
        yield found.end(), len(said) + 1


def _base(word: str) -> str:
    """`rebuy` as `buy`."""
    return word[2:] if word[:2] == "re" and word not in _VERBS and word[2:] in _VERBS else word


def _tells(verb: str, word: str, before: list[str]) -> bool:
    """Whether what follows is told to somebody: "ask Ann to send it to …", "tell her that …"."""
    if verb not in _TELLS or verb not in before:
        return False
    since = before[len(before) - before[::-1].index(verb) :]
    if since[-1:] == ["to"] and len(since) > 1 and word in _VERBS and _ASKED.fullmatch(since[-2]):
        return True
    if _ARTICLES.intersection(since):
        return False
    return word in _CONTENT or (since[-1:] == ["to"] and len(since) > 1 and word in _VERBS)


def commands(before: list[str]) -> bool:
    """Whether a verb behind these words is an order."""
    while before and before[-1] in _SOFTENS:
        before = before[:-1]
    last = before[-1] if before else ""
    if last == "to":
        return _is_wish(before[-6:-1])
    if last == "you":
        return not _YOU.isdisjoint(before[-4:-1])
    return last in _LEADS_IN or last in ("", MARK, *".,;:!?") or last.endswith("ly")


def _is_wish(governing: list[str]) -> bool:
    """Whether "… to send" is what the person wants: "remember to", and not "he asked me to", "get Bob to"."""
    if governing[-1:] == ["you"]:
        return not _WISHES.isdisjoint(governing) and not _MINE.isdisjoint(governing)
    if not _IS.isdisjoint(governing[-1:]):  # "your task is to", and not "Bob is to"
        return not _TASKS.isdisjoint(governing[-4:])
    return _GOVERNS.issuperset(governing[-1:]) and _OF_OTHERS.isdisjoint(governing[-3:])


class _Chinese:
    """A sentence without blanks: it says whom by what stands directly before the address."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.continues: str | None = None

    def goes_on(self) -> str | None:
        return self.continues

    def given(self) -> Iterator[tuple[int, str]]:
        number = 0
        for clause in _CHINESE_CLAUSE.split(self.text):
            bad = bool(_CHINESE_BAD.search(clause) or _NO.search(normalise(clause)))
            asks = bool(_CHINESE_ORDER.match(clause)) and any(
                form in clause for deeds in lexicon.CHINESE.values() for form in deeds
            )
            last = -1
            for found in re.finditer(MARK, clause):
                near = clause[max(0, found.start() - NEAR) : found.start()]
                to = (
                    asks
                    and _CHINESE_TO.search(near)
                    and clause[found.end() :].lstrip()[:1] not in ("的", "是")
                )
                listed = last >= 0 and _CHINESE_AND.fullmatch(clause[last : found.start()][:NEAR])
                named = _CHINESE_IS.search(near)
                if not bad and (listed or to or named):
                    last = found.end()
                    yield number, ANYTHING if named else self.text
                number += 1
            opens = last >= 0 or (asks and not bad and clause.rstrip().endswith(("：", ":")))
            self.continues = self.text if opens else None
