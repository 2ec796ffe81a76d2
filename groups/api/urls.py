from rest_framework.routers import SimpleRouter

from groups.api.views import GroupView, ProjectView, RoleView

router = SimpleRouter()
router.register("groups", GroupView, basename="api-group")
router.register("roles", RoleView, basename="api-role")
router.register("projects", ProjectView, basename="api-project")
urlpatterns = router.urls
