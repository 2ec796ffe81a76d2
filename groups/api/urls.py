from rest_framework.routers import SimpleRouter

from groups.api.changes import ChangeView
from groups.api.tokens import TokenView
from groups.api.views import ExampleView, GroupView, MemberView, ProjectView, RoleView

router = SimpleRouter()
router.register("groups/members", MemberView, basename="api-member")
router.register("groups/examples", ExampleView, basename="api-example")
router.register("groups", GroupView, basename="api-group")
router.register("roles", RoleView, basename="api-role")
router.register("projects", ProjectView, basename="api-project")
router.register("tokens", TokenView, basename="api-token")
router.register("audit/changes", ChangeView, basename="api-change")
urlpatterns = router.urls
