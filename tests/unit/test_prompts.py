"""What a speaker is sent of a conversation that grows."""

from types import SimpleNamespace

from common.canonical import digest
from runs.context.prompts import Prompt, conversation, digests
from runs.context.working_memory import Results, results
from runs.log.state import ENDED, USER, Call, Member, Said, State
from runs.providers.base import Message, ToolRequest, ToolSchema

MIA, BEN = Member("mia", "r1", "Mia", 0), Member("ben", "r2", "Ben", 1)


def looked_up(seq, word, author="mia"):
    call = Call(f"{seq}.0", "look_up", {"word": word}, author, phase=ENDED, result={"found": word})
    return Said(seq, author, author.title(), "One moment.", "", 1, (call.call_id,)), call


def session_of(state):
    return SimpleNamespace(state=state, cache={}, run_id="run_1", organization_id="org_1", view_id=None)


def say(state, *pairs):
    for said, call in pairs:
        state.messages.append(said)
        state.calls[call.call_id] = call


def heard(session, member=MIA):
    found, its_digests = conversation(session, member, results(session, member))
    assert its_digests == digests(found)
    return found


def test_what_is_added_to_is_what_is_made_at_once():
    state = State(messages=[Said(2, USER, "", "Which is cheapest?", "", 1)])
    session = session_of(state)
    first = heard(session)
    say(state, looked_up(3, "a"), looked_up(5, "b", "ben"), looked_up(7, "c"))
    state.messages.append(Said(9, "ben", "Ben", "The second.", "OPINION", 1))

    grown = heard(session)

    assert grown == heard(session_of(state))
    assert [message.role for message in first] == ["user"]
    assert [m.role for m in grown] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert [m.content for m in grown if m.role == "tool"] == ['{"found":"a"}', '{"found":"c"}']
    assert [m.role for m in heard(session, BEN)] == ["user", "assistant", "tool", "assistant"]


def test_a_state_that_was_folded_anew_is_gone_through_anew():
    session = session_of(State())
    say(session.state, looked_up(3, "lost"))
    assert "lost" in heard(session)[1].content

    session.state = State()
    say(session.state, looked_up(3, "kept"))

    assert heard(session)[1].content == '{"found":"kept"}'


def test_a_call_that_has_not_ended_is_told_when_it_has():
    session = session_of(State())
    (said, call), later = looked_up(3, "slow"), looked_up(5, "quick")
    call.phase = "waiting"
    say(session.state, (said, call), later)
    assert list(results(session, MIA).told) == ["5.0"]

    call.phase = ENDED

    assert results(session, MIA).told == {"3.0": '{"found":"slow"}', "5.0": '{"found":"quick"}'}


def test_a_result_on_a_page_is_told_as_the_page_stands_each_time():
    session = session_of(State())
    say(session.state, looked_up(3, "a"), looked_up(5, "b"))

    def told(text):
        found = Results({"3.0": text, "5.0": "b"}, {"3.0": "all of it"})
        said, its_digests = conversation(session, MIA, found)
        assert its_digests == digests(said)
        return [message.content for message in said]

    assert told("on page 1") == ["One moment.", "on page 1", "One moment.", "b"]
    assert told("on page 2") == ["One moment.", "on page 2", "One moment.", "b"]


def test_the_digest_of_a_prompt_is_that_of_its_canonical_json():
    messages = (
        Message("system", "Sei höflich"),
        Message("assistant", "“Ja”", tool_calls=(ToolRequest("x"),)),
    )
    tools = (ToolSchema("look_up", "", {}), ToolSchema("查", "", {}))
    prompt = Prompt(messages, tools, 'a"model', MIA, 1, (), "", digests(messages))

    assert prompt.digest == digest([m.digest for m in messages], ["look_up", "查"], 'a"model')
