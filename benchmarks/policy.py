"""What one policy decision costs, beside plain Python, Cedar and Casbin deciding the same.

    make bench BENCH=policy

Everyone gets the same rules and requests and must come to the same answers: a rule denies or allows a
capability for an organization, perhaps a project, perhaps a role; a matching deny wins; no rule allows.
Peers get their policies parsed beforehand; those not installed are left out. The last line is JSON.
"""

import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

from benchmarks import peers
from policy.evaluate import AgentContext, Boundary, Context, Rule, RuleSet, ToolInfo, evaluate

SIZES = (50, 2000)
REPETITIONS = 3
REQUESTS = 5000
REQUESTS_OF_SLOW = 200
LISTS = {"denied": ("drop_table",), "allowed": None}
Request = tuple[str, str, str]  # capability, project, role
Decide = Callable[[Request], bool]


def make_rules(count: int) -> list[Rule]:
    """About ten rules a capability, from the whole organization down to one role in one project."""
    drawn = random.Random(count)
    return [
        Rule(
            id=f"rul_{number}",
            effect=drawn.choice(("allow", "allow", "deny")),
            capability=f"cap_{drawn.randrange(max(1, count // 10))}",
            organization="org_1",
            project=drawn.choice((None, f"prj_{drawn.randrange(20)}")),
            role=drawn.choice((None, f"rol_{drawn.randrange(20)}")),
        )
        for number in range(count)
    ]


def make_requests(count: int, rules: list[Rule]) -> list[Request]:
    drawn = random.Random(1)
    return [
        (drawn.choice(rules).capability or "", f"prj_{drawn.randrange(20)}", f"rol_{drawn.randrange(20)}")
        for _ in range(count)
    ]


def ours(rules: list[Rule], condition: str | None = None) -> Decide:
    if condition:
        rules = [replace(rule, condition=f"{condition} + {number}") for number, rule in enumerate(rules)]
    rule_set = RuleSet(rules)
    tools = {rule.capability: ToolInfo("send", "low", (rule.capability or "",)) for rule in rules}
    contexts = {
        (project, role): Context(
            AgentContext("agi_1", role, None, LISTS["denied"] or ()), Boundary(), rule_set, "org_1", project
        )
        for project in {f"prj_{n}" for n in range(20)}
        for role in {f"rol_{n}" for n in range(20)}
    }
    arguments = {"amount": 5}

    def decide(request: Request) -> bool:
        capability, project, role = request
        return evaluate(contexts[project, role], tools[capability], arguments).effect == "allow"

    return decide


def plain_python(rules: list[Rule]) -> Decide:
    """The floor: the layers as sets and one dictionary; no reasons, no specificity, no conditions."""
    by_capability: dict[str | None, list[tuple[str | None, str | None, str]]] = {}
    for rule in rules:
        by_capability.setdefault(rule.capability, []).append((rule.project, rule.role, rule.effect))
    denied = set(LISTS["denied"] or ())

    def decide(request: Request) -> bool:
        capability, project, role = request
        for _layer in ("delegated", "boundary", "role"):
            if "send" in denied:
                return False
        effects = {
            effect
            for its_project, its_role, effect in by_capability.get(capability, ())
            if its_project in (None, project) and its_role in (None, role)
        }
        return "deny" not in effects

    return decide


def cedar(rules: list[Rule]) -> Decide:
    import cedarpy

    lines = ["permit(principal, action, resource);"]
    for rule in rules:
        word = "forbid" if rule.effect == "deny" else "permit"
        principal = f'principal in Role::"{rule.role}"' if rule.role else "principal"
        resource = f'resource in Project::"{rule.project}"' if rule.project else "resource"
        lines.append(f'{word}({principal}, action == Action::"{rule.capability}", {resource});')
    policies = cedarpy.PolicySet.from_str("\n".join(lines))
    nodes = [("Role", f"rol_{n}", []) for n in range(20)] + [("Project", f"prj_{n}", []) for n in range(20)]
    nodes += [("Agent", f"agi_{n}", [{"type": "Role", "id": f"rol_{n}"}]) for n in range(20)]
    nodes += [("Tool", f"send_{n}", [{"type": "Project", "id": f"prj_{n}"}]) for n in range(20)]
    entities = cedarpy.Entities.from_json_str(
        json.dumps([{"uid": {"type": t, "id": i}, "attrs": {}, "parents": p} for t, i, p in nodes])
    )

    def decide(request: Request) -> bool:
        capability, project, role = request
        asked = {
            "principal": {"type": "Agent", "id": f"agi_{role[4:]}"},
            "action": {"type": "Action", "id": capability},
            "resource": {"type": "Tool", "id": f"send_{project[4:]}"},
            "context": {},
        }
        return bool(cedarpy.is_authorized(asked, policies, entities).allowed)

    return decide


def casbin(rules: list[Rule]) -> Decide:
    import casbin

    model = casbin.Model()
    model.load_model_from_text("""
[request_definition]
r = cap, prj, rol
[policy_definition]
p = cap, prj, rol, eft
[policy_effect]
e = !some(where (p.eft == deny))
[matchers]
m = r.cap == p.cap && (p.prj == "*" || r.prj == p.prj) && (p.rol == "*" || r.rol == p.rol)
""")
    enforcer = casbin.Enforcer(model)
    enforcer.add_policies(
        [[r.capability, r.project or "*", r.role or "*", r.effect, r.id][:4] for r in rules]
    )

    def decide(request: Request) -> bool:
        return bool(enforcer.enforce(*request))

    return decide


def measure(decide: Decide, requests: list[Request]) -> dict[str, float]:
    """The median of three repetitions, each timing every decision by itself."""
    runs = []
    for _ in range(REPETITIONS):
        taken = []
        for request in requests:
            start = time.perf_counter_ns()
            decide(request)
            taken.append(time.perf_counter_ns() - start)
        taken.sort()
        mean = statistics.fmean(taken) / 1e6
        runs.append((taken[len(taken) // 2] / 1e6, taken[int(len(taken) * 0.95)] / 1e6, mean))
    p50, p95, mean = (statistics.median(column) for column in zip(*runs, strict=True))
    return {"p50_ms": round(p50, 6), "p95_ms": round(p95, 6), "mean_us": round(mean * 1e3, 3),
            "per_second": round(1e3 / mean)}  # fmt: skip


def build_ms(rules: list[Rule]) -> float:
    taken = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        RuleSet(rules)
        taken.append((time.perf_counter() - start) * 1e3)
    return round(statistics.median(taken), 3)


def main() -> None:
    results: dict[int, dict[str, dict[str, float]]] = {}
    for size in SIZES:
        rules = make_rules(size)
        requests = make_requests(REQUESTS, rules)
        answers = [plain_python(rules)(request) for request in requests]
        contestants: dict[str, Callable[[], Decide]] = {
            "ours": lambda rules=rules: ours(rules),  # type: ignore[misc]
            "ours_with_conditions": lambda rules=rules: ours(rules, "amount <= 100"),  # type: ignore[misc]
            "plain_python": lambda rules=rules: plain_python(rules),  # type: ignore[misc]
            "cedarpy": lambda rules=rules: cedar(rules),  # type: ignore[misc]
            "casbin": lambda rules=rules: casbin(rules),  # type: ignore[misc]
        }
        results[size] = {}
        for name, build in contestants.items():
            try:
                decide = build()
            except ImportError:
                print(f"{size:>5} rules  {name:<22} not installed")
                continue
            few = requests[:REQUESTS_OF_SLOW] if name in ("cedarpy", "casbin") else requests
            wrong = sum(decide(r) != a for r, a in zip(few, answers, strict=False))
            assert wrong == 0, f"{name} differs from plain Python on {wrong} of {len(few)} requests"
            results[size][name] = measure(decide, few)
            shown = results[size][name]
            print(f"{size:>5} rules  {name:<22} p50 {shown['p50_ms'] * 1e3:>9.2f} µs   p95 "
                  f"{shown['p95_ms'] * 1e3:>9.2f} µs   {shown['per_second']:>9} /s")  # fmt: skip
    large = results[SIZES[-1]]
    print(
        json.dumps(
            {
                "bench": "policy",
                "rules": SIZES[-1],
                "ours": {**large["ours"], "build_ms": build_ms(make_rules(SIZES[-1]))},
                "ours_with_conditions": large["ours_with_conditions"],
                "floor": large["plain_python"],
                "peers": {name: large[name] for name in ("cedarpy", "casbin") if name in large},
                "small": {"rules": SIZES[0], **results[SIZES[0]]},
            }
        )
    )


def beside_the_peers() -> None:
    """Go on in the peers' own Python, which has Deputy's packages too, where it can be had."""
    if find_spec("cedarpy") is None and (interpreter := peers.python()):
        os.execv(interpreter, [interpreter, "-m", "benchmarks.policy", *sys.argv[1:]])


if __name__ == "__main__":
    beside_the_peers()
    main()
