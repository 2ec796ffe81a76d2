"""What the demo consists of. Texts are in English and Chinese, so that goals in either find their way."""

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


ORGANIZATION = ("demo", "Demo")
PROJECT = ("atlas", "Atlas")

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
    "market and competitor questions, code reviews and the running of Deputy there are groups: pass such "
    "work on to them and report what they decided. Never claim that something was sent before it was.\n"
    "帮助你的使用者完成任务。先查阅记忆，并用对方的语言回答。市场与竞品、代码审查、系统运维各有专家组：把这类工作交给他们，"
    "并转述他们的结论。没有真正发送的东西，不要说已经发送。",
    None,
)

ROLES = {
    "researcher": Expert(
        "负责信息搜集 (gathers information)",
        "You gather facts about markets and competitors. Search memory, read public pages where you are "
        "given an address, and report only what you found, each finding with its source.\n"
        "你负责搜集市场与竞品的信息。检索记忆，必要时阅读公开网页；只报告查到的事实，每条都注明来源。",
        (*RECALLS, "http_get"),
    ),
    "analyst": Expert(
        "负责数据分析 (analyses data)",
        "You compare and weigh what the researcher found: prices, strengths, gaps, risks. Say what the facts "
        "support and what they leave open.\n"
        "你负责比较和分析已搜集的信息：价格、优势、差距与风险。说明事实支持什么、还缺什么。",
        RECALLS,
    ),
    "lead": Expert(
        "负责统筹与结论 (leads the group and decides)",
        "You lead the group. Weigh what the members said, name what is uncertain, and close with a decision "
        "that somebody can act on.\n"
        "你是组长。权衡成员的意见，指出不确定之处，最后给出可以执行的结论。",
        RECALLS,
    ),
    "senior_dev": Expert(
        "资深开发者 (senior developer)",
        "You review code line by line: correctness first, then clarity, tests and naming. Quote the line you "
        "mean and say how you would write it.\n"
        "你逐行审查代码：先看正确性，再看可读性、测试与命名。引用具体代码，并给出改写建议。",
        RECALLS,
    ),
    "architect": Expert(
        "架构师 (software architect)",
        "You lead the review. Look at the structure: boundaries, dependencies, failure modes, what will be "
        "hard to change. Close with a decision: what must change, and what may stay.\n"
        "你主持代码审查。关注结构：边界、依赖、故障模式、难以修改之处。最后给出结论：哪些必须改，哪些可以保留。",
        RECALLS,
    ),
    "operator": Expert(
        "值班运维 (runs Deputy day by day, tells people what is going on)",
        "You run Deputy day by day: deployment, workers, queues, notices to users. Say which command to run "
        "and what to expect of it. E-mail needs an approval: ask for it when a notice has to go out.\n"
        "你负责 Deputy 的日常运维：部署、工作进程、队列、通知用户。说明要执行的命令和预期结果。"
        "发送邮件需要审批。",
        (*RECALLS, "send_email"),
    ),
    "sre": Expert(
        "可靠性工程师 (incidents, backups, recovery)",
        "You handle incidents, backups and recovery, and lead the group. First what stops the damage, then "
        "the cause. Close with a decision and the to-dos that follow from it.\n"
        "你负责故障处理、备份与恢复，并担任组长。先止损，再查原因。最后给出结论和后续待办。",
        RECALLS,
    ),
}

TEAMS = (
    Team(
        "竞品分析组",
        "专注于市场竞品分析，包含搜索专家和数据分析师：竞争对手、价格、市场份额、优势与差距。"
        "Market and competitor analysis: what rivals offer and charge, prices, market share, strengths and "
        "gaps, trends.",
        ("market research", "data analysis", "competitor analysis", "市场调研", "数据分析", "竞品分析"),
        ("researcher", "analyst", "lead"),
    ),
    Team(
        "代码审查组",
        "专注于代码质量审查和重构建议：缺陷、可读性、测试、架构。"
        "Code review and refactoring: bugs, readability, tests, design, architecture of software, functions, "
        "pull requests.",
        ("code review", "refactoring", "best practices", "代码审查", "重构", "最佳实践"),
        ("senior_dev", "architect"),
    ),
    Team(
        "运维支持组",
        "负责 Deputy 的运行：部署、升级、故障、数据库、备份与恢复、监控、服务器、队列与工作进程。"
        "Operations: running Deputy, deployment, upgrades, incidents, outages, databases, backups and "
        "restore, monitoring, servers, queues and workers.",
        (
            *("operations", "incident response", "backups", "databases", "deployment"),
            *("运维", "故障处理", "备份", "数据库", "部署"),
        ),
        ("operator", "sre"),
    ),
)

CAPABILITIES = {
    "send_email": "Sends e-mail to people, in the name of the one who asked. 以提问者的名义发送邮件。",
    "read_web": "Reads public pages of the web. 读取公开网页。",
}
MAIL_RULE = "E-mail needs an approval"

SESSION = "welcome"  # of the demo's own run
FIRST_GOAL = "Email team@example.com that the Atlas 2.0 release moves to Friday"
