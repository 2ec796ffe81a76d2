from rest_framework.routers import SimpleRouter

from runs.api.approval_views import ApprovalView
from runs.api.policy_views import PolicyView
from runs.api.run_views import RunView
from runs.api.tool_views import ToolView

router = SimpleRouter()
router.register("runs", RunView, basename="api-run")
router.register("approvals", ApprovalView, basename="api-approval")
router.register("tools", ToolView, basename="api-tool")
router.register("policy", PolicyView, basename="api-policy")
urlpatterns = router.urls
