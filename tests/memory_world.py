"""A small world for the tests of memory: two organizations, their projects, groups, people and agents."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model

from groups.models import AgentInstance, Group, Organization, Project, Role
from memory.scope import Scope


@dataclass
class Place:
    organization: Organization
    project: Project
    other_project: Project
    group: Group
    other_group: Group
    agent: AgentInstance
    expert: AgentInstance

    @property
    def personal(self) -> Scope:
        """The scope a PA run searches with."""
        return Scope(
            self.organization.id,
            user_id=self.agent.user_id,
            project_id=self.project.id,
            agent_instance_id=self.agent.id,
        )

    @property
    def preferences(self) -> Scope:
        return Scope(self.organization.id, user_id=self.agent.user_id, agent_instance_id=self.agent.id)

    @property
    def history(self) -> Scope:
        return Scope(self.organization.id, user_id=self.agent.user_id, project_id=self.project.id)

    @property
    def board(self) -> Scope:
        return Scope(self.organization.id, project_id=self.project.id, group_id=self.group.id)

    @property
    def in_group(self) -> Scope:
        """The scope a member of the group searches with."""
        return Scope(
            self.organization.id,
            project_id=self.project.id,
            group_id=self.group.id,
            agent_instance_id=self.expert.id,
        )

    @property
    def expert_own(self) -> Scope:
        return Scope(self.organization.id, project_id=self.project.id, agent_instance_id=self.expert.id)

    @property
    def project_wide(self) -> Scope:
        return Scope(self.organization.id, project_id=self.project.id)

    @property
    def organization_wide(self) -> Scope:
        return Scope(self.organization.id)


def place(name: str) -> Place:
    organization = Organization.objects.create(slug=name, name=name)
    project = Project.objects.create(organization=organization, slug="atlas", name="Atlas")
    other = Project.objects.create(organization=organization, slug="borealis", name="Borealis")
    role = Role.objects.create(organization=organization, name="Analyst")
    user = get_user_model().objects.create(username=f"person-of-{name}")
    return Place(
        organization,
        project,
        other,
        Group.objects.create(organization=organization, project=project, name="Research"),
        Group.objects.create(organization=organization, project=project, name="Design"),
        AgentInstance.objects.create(organization=organization, role=role, user=user),
        AgentInstance.objects.create(organization=organization, role=role, name="Expert"),
    )


def known_place(name: str) -> Place:
    """The place that was made under this name before."""
    organization = Organization.objects.get(slug=name)
    projects = Project.objects.filter(organization=organization)
    groups = Group.objects.filter(organization=organization)
    agents = AgentInstance.objects.filter(organization=organization)
    return Place(
        organization,
        projects.get(slug="atlas"),
        projects.get(slug="borealis"),
        groups.get(name="Research"),
        groups.get(name="Design"),
        agents.get(user__isnull=False),
        agents.get(name="Expert"),
    )
