"""Three-tier search and deposits among a million memories.

    python -m benchmarks.memory_search [--rows 1000000] [--sets FOLDER] [--queries 400] [--keep] [--again]

Writes into a database of its own, beside the configured one, and drops it at the end (unless --keep; --again
measures what was kept). Half the memories are English, half Chinese, of words drawn by Zipf's law; with
--sets (folders of corpus.jsonl and queries.jsonl) real texts stand among them and real questions are asked.
Nine tenths of all are in the three scopes one person's search covers. Prints p50 and p95 of the search as
its caller sees it, by the clock and by the processor's time of PostgreSQL and Python together (which says
more where the machine has other work), and each one's mean; the same of the peers, over the same terms in
the same scopes (OR with ts_rank over a GIN index, tantivy); nDCG@10 against the same search with every
matching memory weighed (full OR); and a deposit's time before and after.
"""

import argparse
import itertools
import json
import math
import os
import random
import re
import statistics as numbers
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import django

from benchmarks import peers

Search = Callable[[str], int]


def main() -> None:
    options = arguments()
    if options.peers and find_spec("tantivy") is None and (interpreter := peers.python()):
        os.execv(interpreter, [interpreter, "-m", "benchmarks.memory_search", *sys.argv[1:]])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from launch import postgres

    postgres.ensure()
    django.setup()
    from django.db import connection

    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False, keepdb=options.again)
    try:
        measure(options)
    finally:
        if not options.keep:
            connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sets", type=Path, default=None)
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--full", type=int, default=100, help="queries asked of the full OR as well")
    parser.add_argument("--peers", type=int, default=60, help="queries asked of each peer")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--again", action="store_true")
    return parser.parse_args()


def measure(options: argparse.Namespace) -> None:
    from tests.memory_world import known_place, place

    planted, questions = real_texts(options.sets)
    planted = planted[: options.rows]
    if options.again:
        here = known_place("here")
    else:
        here, there = place("here"), place("there")
        say(deposits_when_empty=deposits(here))
        started = time.monotonic()
        load(here, there, options.rows, planted)
        say(rows=options.rows, planted=len(planted), load_seconds=round(time.monotonic() - started))
    say(deposits_now=deposits(here))
    random.Random(1).shuffle(questions)
    questions = questions[: options.queries] or synthetic_questions(options.queries)
    for name, which in by_language(questions).items():
        timed(name, ours(here), which)
    if options.peers:
        beside_the_peers(here, questions[: options.peers])
    if options.full:
        compare(here, questions[: options.full])


def say(**values: object) -> None:
    print(json.dumps(values), flush=True)


# The texts


def real_texts(folder: Path | None) -> tuple[list[tuple[str, str]], list[tuple[str, dict]]]:
    """(id, text) of every corpus and (question, relevant ids) of every set below `folder`."""
    texts, questions = [], []
    for corpus in sorted(folder.glob("*/corpus.jsonl")) if folder else []:
        name = corpus.parent.name
        if name == "cmrc_paragraphs":
            continue  # the same texts as its sentences
        texts += [(f"{name}/{row['id']}", row["text"]) for row in rows(corpus)]
        questions += [
            (row["text"], {f"{name}/{id}": grade for id, grade in row["relevant"].items()})
            for row in rows(corpus.with_name("queries.jsonl"))
        ]
    return texts, questions


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Zipf:
    """Words in the proportions of a language: the n-th commonest has a share of 1/n."""

    def __init__(self, words: list[str], seed: int) -> None:
        self.random = random.Random(seed)
        self.words = words
        self.weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(len(words))))

    def draw(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)


@cache
def vocabularies() -> tuple[Zipf, Zipf]:
    """200,000 English-looking words, 60,000 pairs of Chinese characters."""
    source = random.Random(7)
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "ist")]
    common = re.findall(
        r"\w+",
        "the of and to in a is that for it as was with be by on not he his but at are this have from",
    )
    made = {"".join(source.choices(syllables, k=source.choice((2, 2, 3, 4)))) for _ in range(220_000)}
    characters = [chr(0x4E00 + n) for n in range(3_000)]
    weights = [1 / (n + 5) for n in range(3_000)]
    pairs = {"".join(source.choices(characters, weights, k=2)) for _ in range(200_000)}
    return Zipf([*common, *sorted(made, key=lambda _: source.random())], 8), Zipf(
        sorted(pairs, key=lambda _: source.random())[:60_000], 9
    )


def synthetic_questions(count: int) -> list[tuple[str, dict]]:
    english, chinese = vocabularies()
    return [
        (" ".join(english.draw(9)), {}) if n % 2 else ("".join(chinese.draw(8)), {}) for n in range(count)
    ]


# Loading: COPY without indexes and triggers, as a restore does it


def load(here, there, count: int, planted: list[tuple[str, str]]) -> None:
    from django.db import connection

    from common.ids import memory_id
    from common.text import terms
    from memory.models.columns import as_tsvector

    places = [
        (here.organization_wide, "archival", 0.30),
        (here.project_wide, "archival", 0.40),
        (here.history, "episodic", 0.20),
        (there.project_wide, "archival", 0.10),
    ]
    english, chinese = vocabularies()
    chooser = random.Random(3)
    kinds = chooser.choices(range(4), [share for _, _, share in places], k=count)
    known: dict[object, Counter] = defaultdict(Counter)
    sizes: dict[object, list[int]] = defaultdict(lambda: [0, 0])
    planted_at = dict(zip(chooser.sample(range(count), len(planted)), planted, strict=True))
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET maintenance_work_mem = '1GB'")
        indexes = droppable(cursor)
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        copy = (
            "COPY memory_memory (id, organization_id, user_id, project_id, type, content, metadata,"
            " importance, status, search_vector, length) FROM STDIN"
        )
        with cursor.copy(copy) as out:
            for number in range(count):
                scope, type, _ = places[kinds[number]]
                row = None
                if number in planted_at:
                    scope, type, _ = places[1]
                    row, text = planted_at[number]
                elif number % 2:
                    text = " ".join(english.draw(chooser.randint(8, 32)))
                else:
                    text = "".join(chinese.draw(chooser.randint(6, 30)))
                found = terms(text)
                counts = Counter(found)
                key = scope.key(type)
                known[key].update(counts.keys())
                sizes[key][0] += 1
                sizes[key][1] += len(found)
                out.write_row(
                    (
                        memory_id(),
                        scope.organization_id,
                        scope.user_id,
                        scope.project_id,
                        type,
                        text,
                        json.dumps({"row": row} if row else {}),
                        0.5,
                        "active",
                        as_tsvector(counts),
                        len(found),
                    )
                )
        say(copied=count)
        for _, definition in indexes:
            cursor.execute(definition)
        cursor.execute("DELETE FROM memory_termcount")
        with cursor.copy("COPY memory_termcount (scope_key, term, memories) FROM STDIN") as out:
            for key, terms_of in known.items():
                for term, memories in terms_of.items():
                    out.write_row((key, term, memories))
        for key, (memories, length) in sizes.items():
            cursor.execute(
                "INSERT INTO memory_scopesize VALUES (%s, %s, %s) ON CONFLICT (scope_key) DO UPDATE SET"
                " memories = memory_scopesize.memories + excluded.memories",
                [key, memories, length],
            )
        cursor.execute("SET session_replication_role = origin")
        cursor.execute("VACUUM ANALYZE memory_memory")
        cursor.execute("ANALYZE")
        cursor.execute("SELECT pg_total_relation_size('memory_memory'), pg_relation_size('memory_search')")
        total, index = cursor.fetchone()
        say(megabytes=total >> 20, search_index_megabytes=index >> 20)


def droppable(cursor) -> list[tuple[str, str]]:
    cursor.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'memory_memory'"
        " AND indexname LIKE 'memory\\_%%' AND indexdef NOT LIKE 'CREATE UNIQUE%%'"
    )
    return cursor.fetchall()


# Measuring


def by_language(questions: list[tuple[str, dict]]) -> dict[str, list[tuple[str, dict]]]:
    chinese = [question for question in questions if any("\u4e00" <= c <= "\u9fff" for c in question[0])]
    english = [question for question in questions if question not in chinese]
    return {"chinese": chinese, "english": english, "all": questions}


def ours(here) -> Search:
    from memory.search import memory_search_pa

    return lambda question: len(memory_search_pa(question, here.personal))


def timed(name: str, search: Search, questions: list[tuple[str, dict]], who: str = "ours") -> None:
    if not questions:
        return
    times, spent, found = [], [], []
    for question, _ in questions:  # the first round fills the caches
        search(question)
    for question, _ in questions:
        before, started = processor_seconds(), time.perf_counter()
        found.append(search(question))
        times.append((time.perf_counter() - started) * 1000)
        spent.append([(now - then) * 1000 for now, then in zip(processor_seconds(), before, strict=True)])
    postgres, python = (numbers.mean(column) for column in zip(*spent, strict=True))
    say(
        who=who,
        questions=name,
        n=len(times),
        p50_ms=at(times, 0.5),
        p95_ms=at(times, 0.95),
        p99_ms=at(times, 0.99),
        cpu_p50_ms=at(map(sum, spent), 0.5),
        cpu_p95_ms=at(map(sum, spent), 0.95),
        postgres_cpu_ms=round(postgres, 2),
        python_cpu_ms=round(python, 2),
        mean_hits=round(numbers.mean(found), 2),
        load=round(os.getloadavg()[0], 1),
    )


def at(times: Iterable[float], share: float) -> float:
    """The time that this share of all stay within."""
    ordered = sorted(times)
    return round(ordered[max(math.ceil(len(ordered) * share) - 1, 0)], 2)


def processor_seconds() -> tuple[float, float]:
    """Of this connection's server process, where it runs on this machine, and of this one."""
    from django.db import connection

    connection.ensure_connection()
    try:
        running = Path(f"/proc/{connection.connection.info.backend_pid}/schedstat").read_text().split()[0]
    except OSError:
        running = "0"
    return int(running) / 1e9, time.process_time()


# The peers: the same terms in the same three scopes, quotas 3, 4 and 3


def beside_the_peers(here, questions: list[tuple[str, dict]]) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("CREATE EXTENSION IF NOT EXISTS btree_gin")
        cursor.execute(
            "CREATE INDEX IF NOT EXISTS peer ON memory_memory USING gin (scope_key, search_vector)"
        )
        cursor.execute("ANALYZE memory_memory")
    for name, which in by_language(questions).items():
        timed(name, or_with_ts_rank(here), which, "OR, ts_rank")
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX peer")
    try:
        search = tantivy_search(here)
    except ImportError:
        print("tantivy is left out: not installed", file=sys.stderr)
        return
    for name, which in by_language(questions).items():
        timed(name, search, which, "tantivy")


def tiers_of(here) -> list[tuple[list, int]]:
    knowledge = [here.organization_wide.key("archival"), here.project_wide.key("archival")]
    return [([here.preferences.key("preference")], 3), (knowledge, 4), ([here.history.key("episodic")], 3)]


def or_with_ts_rank(here) -> Search:
    from common.db import rows as fetched
    from common.text import terms
    from memory.models.columns import quoted

    one = (
        "(SELECT id, content FROM memory_memory, (SELECT %s::tsquery AS query) AS asked"
        " WHERE status = 'active' AND scope_key = %s AND search_vector @@ query"
        " ORDER BY ts_rank(search_vector, query) DESC LIMIT %s)"
    )

    def search(question: str) -> int:
        query = " | ".join(map(quoted, dict.fromkeys(terms(question))))
        asked = [(query, key, quota) for keys, quota in tiers_of(here) for key in keys]
        return len(fetched(" UNION ALL ".join([one] * len(asked)), [part for each in asked for part in each]))

    return search


def tantivy_search(here) -> Search:
    """An index in memory of all that is searched; the terms are those of the database, divided by blanks."""
    import tantivy
    from django.db import connection, transaction

    from common.text import terms

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("scope", tokenizer_name="raw")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field("id", stored=True, tokenizer_name="raw")
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(200_000_000, 1)
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(
            "SELECT id, scope_key, (SELECT string_agg(repeat(lexeme || ' ', cardinality(positions)), '')"
            " FROM unnest(search_vector)) FROM memory_memory WHERE status = 'active'"
        )
        for id, scope, said in cursor:
            writer.add_document(tantivy.Document(id=id, scope=str(scope), terms=said or ""))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    query = tantivy.Query

    def search(question: str) -> int:
        words = [query.term_query(schema, "terms", term) for term in dict.fromkeys(terms(question))]
        any_word = query.boolean_query([(tantivy.Occur.Should, word) for word in words])
        found = 0
        for keys, quota in tiers_of(here):
            scopes = query.boolean_query(
                [(tantivy.Occur.Should, query.term_query(schema, "scope", str(key))) for key in keys]
            )
            inside = query.boolean_query(
                [(tantivy.Occur.Must, query.const_score_query(scopes, 0.0)), (tantivy.Occur.Must, any_word)]
            )
            found += len(searcher.search(inside, quota).hits)
        return found

    return search


def compare(here, questions: list[tuple[str, dict]]) -> None:
    """nDCG@10 of the project's knowledge, as searched and with every matching memory weighed."""
    from memory import search
    from memory.measure import score

    def ndcg() -> tuple[float, float, float]:
        scores, times = [], []
        for question, relevant in questions:
            started = time.perf_counter()
            hits = search.memory_search(question, here.project_wide, type="archival")
            times.append((time.perf_counter() - started) * 1000)
            scores.append(score([hit.metadata.get("row", "") for hit in hits], relevant)[:2])
        recall, gain = (numbers.mean(column) for column in zip(*scores, strict=True))
        return round(recall, 4), round(gain, 4), round(numbers.median(times), 1)

    recall, gain, median = ndcg()
    say(weighed="candidates", **{"recall@10": recall, "nDCG@10": gain}, p50_ms=median)
    usual = search.REACH, search.CANDIDATES
    search.REACH = search.CANDIDATES = 10**9
    recall, gain, median = ndcg()
    search.REACH, search.CANDIDATES = usual
    say(weighed="full OR", **{"recall@10": recall, "nDCG@10": gain}, p50_ms=median)


def deposits(here) -> dict[str, float]:
    """200 deposits of an output and a decision, each its own transaction, in milliseconds."""
    from django.db import transaction

    from common.ids import run_id
    from memory.deposit import GroupResult, deposit

    english, chinese = vocabularies()
    times = []
    before, _ = processor_seconds()
    for _ in range(200):
        result = GroupResult(
            run_id(),
            here.organization.id,
            here.project.id,
            here.group.id,
            output="".join(chinese.draw(30)),
            decisions=(" ".join(english.draw(20)),),
        )
        started = time.perf_counter()
        with transaction.atomic():
            deposit(result)
        times.append((time.perf_counter() - started) * 1000)
    after, _ = processor_seconds()
    return {"p50_ms": round(numbers.median(times), 2), "postgres_cpu_ms": round((after - before) * 5, 2)}


if __name__ == "__main__":
    sys.exit(main())
