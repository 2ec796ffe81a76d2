"""One seat an agent in a group.

Where an agent sat twice, the later seat gets an agent of its own, and keeps its role: found by its agent, it
would have spoken with the other seat's rights.
"""

from django.db import migrations, models


def part_seats(apps, schema_editor):
    agents = apps.get_model("groups", "AgentInstance").objects
    taken = set()
    seats = apps.get_model("groups", "GroupMember").objects.select_related("role")
    for seat in seats.order_by("group_id", "ordinal", "id"):
        if (seat.group_id, seat.agent_instance_id) in taken:
            seat.agent_instance = agents.create(
                id=new_id(), organization_id=seat.organization_id, role=seat.role, name=seat.role.name
            )
            seat.save(update_fields=["agent_instance"])
        taken.add((seat.group_id, seat.agent_instance_id))


def new_id():
    from common import ids

    return ids.agent_id()


class Migration(migrations.Migration):
    atomic = False  # a table with changed rows takes no constraint in the same transaction

    dependencies = [("groups", "0010_roles_of_members")]

    operations = [
        migrations.RunPython(part_seats, migrations.RunPython.noop, atomic=True),
        migrations.AddConstraint(
            model_name="groupmember",
            constraint=models.UniqueConstraint(
                fields=("group", "agent_instance"),
                name="group_member_agent",
                violation_error_message=("This agent sits in the group already: give the seat another one."),
            ),
        ),
    ]
