"""Words that say how a thing is said or asked, not what about: of English and of Chinese.

"May" is none here: it is a month, too.
"""

from common.text import terms

_WORDS = frozenset(
    terms(
        "a about after again all also am an and any are as at be because been before being but by can "
        "could did do does doing don't for from further had has have having he her here hers him his "
        "how i i'd i'll i'm i've if in into is isn't it its just let like me might mine more most "
        "my need no nor not now of off on once one only or other our ours out over own please shall she "
        "should so some such than thank thanks that the their theirs them then there these they this "
        "those through to too under until up us very want was we were what when where whether which "
        "while who whom whose why will with within without would yes you your yours"
    )
)
_CHARACTERS = frozenset(
    "的了在是我你您他她它们有和就不也很到说要去会着没这那哪吗呢吧啊呀嘛么什怎请帮给能可以想下再还被把对与及或等让从为个些一如何"
)


def is_function_word(term: str) -> bool:
    """Whether a term of common.text.terms is one, or is made of nothing but function characters."""
    return term in _WORDS or _CHARACTERS.issuperset(term)
