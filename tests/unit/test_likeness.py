"""Which texts say the same, and which only nearly."""

import pytest

from memory.likeness import alike, contradict, may_be_alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The launch is in May", "The launch will be in May."),
        ("Ann leads the team; Bob reviews the code.", "Bob reviews the code. Ann leads the team."),
        ("怎样更换绑定手机号？", "如何更换绑定的手机号"),
        ("怎么申请退款", "退款如何申请呢"),
        ("為什麼沒有額度", "为何没有额度啊"),
        (
            "The export of Atlas contains all invoices of the last three years, signed, in one file.",
            "The export of Atlas contains all invoices of the last three years, signed, in one large file.",
        ),
    ],
)
def test_the_same_is_said(one, other):
    assert alike(one, other) and alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann leads the team", "Bob leads the team"),
        ("Ann pays Bob", "Bob pays Ann"),
        ("安妮领导团队", "鲍勃领导团队"),
        ("布拉杜河是胡达萨河的支流", "胡达萨河是布拉杜河的支流"),
        ("从深圳到广州怎么走", "从广州到深圳怎么走"),
        ("Restart the queue before the upgrade", "Restart the queue after the upgrade"),
        ("The feature is on", "The feature is off"),
        ("Send it to Ann", "Send it from Ann"),
        ("The release is May 3", "The release is May 4"),
        ("可以上线", "不可以上线"),
        ("Managers approve refunds", "Only managers approve refunds"),
        ("茶色是什么色", "深茶色是什么色"),
        ("我要退款", "我要付款"),
        ("the", "a"),
    ],
)
def test_another_fact_is_said_whatever_the_words_share(one, other):
    assert not alike(one, other) and not alike(other, one)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Each car is washed weekly", "Each company car is washed weekly", True),
        ("谁喜欢这首歌？", "这首歌谁喜欢", True),
        ("Ann leads the team", "Bob leads the team", False),
        ("Ann pays Bob", "Bob pays Ann", False),
        ("Managers approve refunds", "Only managers approve refunds", False),
        ("It holds 3 items", "It holds 4 items", False),
    ],
)
def test_near_vectors_decide_what_words_leave_open_and_nothing_else(one, other, same):
    assert alike(one, other, near=0.99) is same
    assert may_be_alike(one, other) is same
    assert not alike(one, other, near=0.9)


@pytest.mark.parametrize(
    ("one", "other", "denied"),
    [
        ("The export contains invoices", "The export does not contain invoices", True),
        ("可以上线", "不可以上线", True),
        ("The export contains invoices", "The export contains no customers", False),
        ("We keep 3 copies", "We do not keep 4 copies", False),
        ("The export contains invoices", "The export contains invoices", False),
    ],
)
def test_a_denial_differs_by_a_negation_alone(one, other, denied):
    assert contradict(one, other) is denied
