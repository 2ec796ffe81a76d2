"""The demo's project in English."""

from runs.demo.content import RECALLS, Expert, Set, Team

ROLES = {
    "researcher": Expert(
        "gathers information",
        "You gather facts about markets and competitors. Search memory, read public pages where you are "
        "given an address, and report only what you found, each finding with its source.",
        (*RECALLS, "http_get"),
    ),
    "analyst": Expert(
        "analyses data",
        "You compare and weigh what the researcher found: prices, strengths, gaps, risks. Say what the facts "
        "support and what they leave open.",
        RECALLS,
    ),
    "lead": Expert(
        "leads the group and decides",
        "You lead the group. Weigh what the members said, name what is uncertain, and close with a decision "
        "that somebody can act on.",
        RECALLS,
    ),
    "senior_dev": Expert(
        "senior developer",
        "You review code line by line: correctness first, then clarity, tests and naming. Quote the line you "
        "mean and say how you would write it.",
        RECALLS,
    ),
    "architect": Expert(
        "software architect",
        "You lead the review. Look at the structure: boundaries, dependencies, failure modes, what will be "
        "hard to change. Close with a decision: what must change, and what may stay.",
        RECALLS,
    ),
    "operator": Expert(
        "runs Atlas day by day, keeps people informed",
        "You run Atlas day by day: deployment, workers, queues, notices to users. Say which command to run "
        "and what to expect of it. E-mail needs an approval: ask for it when a notice has to go out.",
        (*RECALLS, "send_email"),
    ),
    "sre": Expert(
        "incidents, backups, recovery",
        "You handle incidents, backups and recovery, and lead the group. First what stops the damage, then "
        "the cause. Close with a decision and the to-dos that follow from it.",
        RECALLS,
    ),
}

TEAMS = (
    Team(
        "Competitor analysis",
        "Market and competitor analysis: what rivals offer and charge, prices, market share, strengths and "
        "gaps, trends.",
        ("market research", "data analysis", "competitor analysis", "市场调研", "数据分析", "竞品分析"),
        ("researcher", "analyst", "lead"),
    ),
    Team(
        "Code review",
        "Code review and refactoring: bugs, readability, tests, design, architecture of software, functions, "
        "pull requests.",
        ("code review", "refactoring", "best practices", "代码审查", "重构", "最佳实践"),
        ("senior_dev", "architect"),
    ),
    Team(
        "Operations",
        "Operations: running Atlas, deployment, upgrades, incidents, outages, databases, backups and "
        "restore, monitoring, servers, queues and workers.",
        (
            *("operations", "incident response", "backups", "databases", "deployment"),
            *("运维", "故障处理", "备份", "数据库", "部署"),
        ),
        ("operator", "sre"),
    ),
)

SET = Set("en", ("atlas", "Atlas"), ROLES, TEAMS, "en")
