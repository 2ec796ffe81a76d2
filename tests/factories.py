"""The world of a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import factory
import pytest
from django.contrib.auth import get_user_model
from factory.django import DjangoModelFactory

from groups import changes, models
from groups.member_permissions import every


@contextmanager
def unrecorded() -> Iterator[None]:
    """What is made inside leaves no record of changes, which takes three statements for each row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_stored", lambda instance: None)
        patch.setattr(changes, "_note", lambda *about: None)
        yield


class Factory(DjangoModelFactory):
    """Of the world that a test finds; what the test itself changes is recorded."""

    class Meta:
        abstract = True

    @classmethod
    def _create(cls, model_class: Any, *args: Any, **kwargs: Any) -> Any:
        with unrecorded():
            return super()._create(model_class, *args, **kwargs)


class UserFactory(Factory):
    class Meta:
        model = get_user_model()

    username = factory.Sequence(lambda n: f"user{n}")


class OrganizationFactory(Factory):
    class Meta:
        model = models.Organization

    slug = factory.Sequence(lambda n: f"org{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())


class ProjectFactory(Factory):
    class Meta:
        model = models.Project

    organization = factory.SubFactory(OrganizationFactory)
    slug = factory.Sequence(lambda n: f"project{n}")
    name = factory.LazyAttribute(lambda o: o.slug.title())


class MembershipFactory(Factory):
    class Meta:
        model = models.Membership

    organization = factory.SubFactory(OrganizationFactory)
    user = factory.SubFactory(UserFactory)


class RoleFactory(Factory):
    class Meta:
        model = models.Role

    organization = factory.SubFactory(OrganizationFactory)
    name = factory.Sequence(lambda n: f"role{n}")


class AgentFactory(Factory):
    class Meta:
        model = models.AgentInstance

    role = factory.SubFactory(RoleFactory)
    organization = factory.SelfAttribute("role.organization")


class GroupFactory(Factory):
    class Meta:
        model = models.Group

    project = factory.SubFactory(ProjectFactory)
    organization = factory.SelfAttribute("project.organization")
    name = factory.Sequence(lambda n: f"group{n}")
    max_rounds = 3


class MemberFactory(Factory):
    """A seat with a role of its own: MemberFactory(group=g, role__name="analyst", ordinal=1)."""

    class Meta:
        model = models.GroupMember

    group = factory.SubFactory(GroupFactory)
    organization = factory.SelfAttribute("group.organization")
    role = factory.SubFactory(RoleFactory, organization=factory.SelfAttribute("..organization"))
    agent_instance = factory.SubFactory(
        AgentFactory, role=factory.SelfAttribute("..role"), name=factory.SelfAttribute("role.name")
    )
    ordinal = factory.Sequence(lambda n: 100 + n)  # tests that name one stay below


def permit(user: Any, *names: str) -> Any:
    """The user with exactly these permissions (`runs.decide_approval`, or without the app) in each of their
    organizations, freshly loaded.
    """
    held = sorted(name for name in every() if {name, name.partition(".")[2]} & set(names))
    assert {name.rpartition(".")[2] for name in names} <= {name.partition(".")[2] for name in held}, names
    with unrecorded():
        _give(user, held)
    return type(user).objects.get(pk=user.pk)


def _give(user: Any, held: list[str]) -> None:
    for membership in models.Membership.objects.filter(user=user):
        membership.custom_role, _ = models.CustomRole.objects.update_or_create(
            organization_id=membership.organization_id, name=f"of {user}", defaults={"permissions": held}
        )
        membership.save()


def permit_all(user: Any) -> Any:
    """The user as an administrator of each of their organizations, freshly loaded."""
    models.Membership.objects.filter(user=user).update(role="administrator", custom_role=None)
    return type(user).objects.get(pk=user.pk)
