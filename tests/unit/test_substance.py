"""What is worth keeping as knowledge."""

import pytest

from memory.substance import says_something
from runs.providers.local_words import WORDS

GOAL = "What do our competitors charge?"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n--- … ",
        "DECISION:",
        "DECISION: n/a",
        "None.",
        "What do our competitors charge?",
        "DECISION: what our competitors charge",
        "Nothing is known about this.",
        "We found no information about our competitors.",
        "There is no conclusion. It could not be determined what they charge.",
        "I don't know what the competitors charge.",
        "未知",
        "没有找到相关信息。",
        "目前无法确定竞争对手的定价。",
        *(words["undecided"] for words in WORDS.values()),
        *(words["no_evidence"].removeprefix("STATUS: ") for words in WORDS.values()),
    ],
)
def test_no_answer_is_nothing_said(text):
    assert not says_something(text, GOAL)


@pytest.mark.parametrize(
    "text",
    [
        "5 euro",
        "DECISION: Yes",
        "是",
        "Enter in May",
        "Competitors",  # of the question's words, chosen
        "There is no evidence of a data breach.",
        "No decision before the third of May",
        "We have no results from May, so we launch in June.",
        "What A charges is unknown, but B charges less.",
        "Unable to determine A's price; B charges 5 euro.",
        "Projects with no results are stopped.",
        "Nothing changes: we keep our prices.",
        "停止没有结果的项目。",
        "没有证据表明数据泄露。",
        "我们决定不进入市场。",
        "无法确定A的价格，但是B更便宜。",
        "暂无风险，可以上线。",
        "Nothing was found in the logs that shows a breach.",
        "The root cause is still unknown; restart the queue nightly.",
        "Nothing is known about Alpha. Beta charges more than we do.",
    ],
)
def test_what_is_doubtful_is_something_said(text):
    assert says_something(text, GOAL)


def test_what_is_to_be_left_out_says_nothing():
    assert not says_something("DECISION: unknown\nTODO: ask Ann", GOAL, leaving_out=["ask Ann"])
    assert says_something("DECISION: unknown\nTODO: ask Ann", GOAL)
