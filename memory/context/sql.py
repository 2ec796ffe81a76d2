"""The raw SQL of working memory: walks through the tree, which the ORM cannot say.

Each is one statement whose cost follows what it returns or changes, never what the view holds: a
lateral subquery that cannot be flattened (OFFSET 0) keeps every step an index scan on `parent_id`,
whatever the planner believes about the table's size.
"""

from collections.abc import Sequence
from typing import Any

from django.db import connection

# Roots, and the children of what is expanded. A folded page's text stays where it is stored.
VISIBLE = """
WITH RECURSIVE visible AS (
    SELECT page.id, page.index, page.kind, NULL::varchar AS parent, page.position, page.name,
           page.description, ''::text AS detail, page.visibility, page.opened_at,
           page.child_count, page.source
      FROM memory_page page
      JOIN memory_segment segment ON segment.id = page.segment_id
     WHERE segment.view_id = %(view)s AND segment.organization_id = %(organization)s
       AND page.parent_id IS NULL
  UNION ALL
    SELECT child.id, child.index, child.kind, parent.index, child.position, child.name,
           child.description, child.detail, child.visibility, child.opened_at,
           child.child_count, child.source
      FROM visible parent
     CROSS JOIN LATERAL (
            SELECT page.id, page.index, page.kind, page.position, page.name, page.description,
                   CASE WHEN page.visibility = 'expanded' THEN page.detail ELSE '' END AS detail,
                   page.visibility, page.opened_at, page.child_count, page.source
              FROM memory_page page
             WHERE page.parent_id = parent.id
            OFFSET 0) child
     WHERE parent.visibility = 'expanded' AND parent.child_count > 0
)
SELECT index, kind, parent, position, name, description, detail, visibility, opened_at, child_count, source
  FROM visible
"""

SUBTREE = """
WITH RECURSIVE subtree AS (
    SELECT page.id, page.index FROM memory_page page WHERE page.id = %(page)s
  UNION ALL
    SELECT child.id, child.index
      FROM subtree parent
     CROSS JOIN LATERAL (
            SELECT page.id, page.index FROM memory_page page WHERE page.parent_id = parent.id OFFSET 0) child
)
"""

COUNT_SUBTREE = SUBTREE + "SELECT count(*) FROM subtree"  # noqa: S608 - of constants, as below

DELETE_SUBTREE = SUBTREE + "DELETE FROM memory_page page USING subtree WHERE page.id = subtree.id"  # noqa: S608

# The moved page first, then its descendants in the order of their old numbers.
NUMBERED = "SELECT id, row_number() OVER (ORDER BY id <> %(page)s, split_part(index, '-', 2)::int) - 1 AS n"
REINDEX_SUBTREE = f"""{SUBTREE}
UPDATE memory_page page
   SET index = %(segment_id)s || '-' || (%(first)s + numbered.n), segment_id = %(segment)s
  FROM ({NUMBERED} FROM subtree) numbered
 WHERE page.id = numbered.id
"""  # noqa: S608

# One statement for the page, the siblings it leaves, those it comes among, and both parents' counts: the
# ORM needs five. Only siblings whose place changes are touched (`..._from` to `..._to`). A root's parent
# is null: IS TRUE keeps it out of the sums.
LEAVES = "((parent_id = %(before)s AND position > %(at)s) IS TRUE)::int"
MOVE = f"""
UPDATE memory_page
   SET parent_id = CASE WHEN id = %(page)s THEN %(above)s ELSE parent_id END,
       position = CASE WHEN id = %(page)s THEN %(to)s
                  ELSE position - {LEAVES}
                     + ((parent_id = %(above)s AND position - {LEAVES} >= %(to)s) IS TRUE)::int
                  END,
       child_count = child_count - (id = %(before)s)::int + (id = %(above)s)::int
 WHERE id IN (%(page)s, %(before)s, %(above)s)
    OR (parent_id = %(before)s AND position BETWEEN %(left_from)s AND %(left_to)s)
    OR (parent_id = %(above)s AND position BETWEEN %(right_from)s AND %(right_to)s)
"""  # noqa: S608
LAST = 2**31 - 1  # no position is higher

# The nearest first; the page itself is not among them.
ANCESTORS = """
WITH RECURSIVE chain AS (
    SELECT page.parent_id, 0 AS distance FROM memory_page page WHERE page.id = %(page)s
  UNION ALL
    SELECT above.parent_id, chain.distance + 1
      FROM chain
     CROSS JOIN LATERAL (
            SELECT page.parent_id FROM memory_page page WHERE page.id = chain.parent_id OFFSET 0) above
)
SELECT parent_id FROM chain WHERE parent_id IS NOT NULL ORDER BY distance
"""


def rows(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


def column(statement: str, **values: Any) -> Sequence[Any]:
    return [row[0] for row in rows(statement, **values)]


def change(statement: str, **values: Any) -> int:
    """How many rows were changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
