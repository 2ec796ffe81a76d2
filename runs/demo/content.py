"""What the demo consists of, besides its two sets: a project in English and one in Chinese."""

from dataclasses import dataclass

from groups.models import MemberRole
from groups.models.organizations import MembershipKind


@dataclass(frozen=True)
class Person:
    """An account, and its role in the demo's organization."""

    role: MemberRole
    kind: MembershipKind = MembershipKind.HUMAN
    staff: bool = False
    superuser: bool = False


@dataclass(frozen=True)
class Expert:
    """A role. `tools` are the only ones it may use; null restricts nothing."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None


@dataclass(frozen=True)
class Team:
    """A group: who sits in it, in speaking order; the last one leads."""

    name: str
    description: str
    capabilities: tuple[str, ...]
    seats: tuple[str, ...]


@dataclass(frozen=True)
class Set:
    """A project in one language: its experts, groups and knowledge. `knowledge`: a folder beside this file.

    Groups' capabilities are in both languages, so that a goal in either finds its group.
    """

    language: str
    project: tuple[str, str]
    roles: dict[str, Expert]
    teams: tuple[Team, ...]
    knowledge: str


ORGANIZATION = ("demo", "Demo")

PEOPLE = {
    "admin": Person(MemberRole.ADMINISTRATOR, staff=True, superuser=True),
    "approver": Person(MemberRole.DECIDER, staff=True),
    "member": Person(MemberRole.MEMBER),
    "robot": Person(MemberRole.DECIDER, MembershipKind.SERVICE),
}

RECALLS = ("memory_search", "memory_write", "blackboard_write", "ask_user")

PERSONAL = Expert(
    "A person's own agent. 个人助理。",
    "Help your person with whatever they ask. Look into memory first, and answer in their language. For "
    "market and competitor questions, code reviews and operations there are groups: pass such "
    "work on to them and report what they decided. Never claim that something was sent before it was.\n"
    "帮助你的使用者完成任务。先查阅记忆，并用对方的语言回答。市场与竞品、代码审查、系统运维各有专家组：把这类工作交给他们，"
    "并转述他们的结论。没有真正发送的东西，不要说已经发送。",
    None,
)

CAPABILITIES = {
    "send_email": "Sends e-mail to people, in the name of the one who asked. 以提问者的名义发送邮件。",
    "read_web": "Reads public pages of the web. 读取公开网页。",
}
MAIL_RULE = "E-mail needs an approval"

SESSION = "welcome"  # of the demo's own run
FIRST_GOAL = "Email team@example.com that the Atlas 2.0 release moves to Friday"
