from rest_framework.routers import SimpleRouter

from policy.api.views import EvaluateView, RuleView

router = SimpleRouter()
router.register("policy/rules", RuleView, basename="api-rule")
router.register("policy/evaluate", EvaluateView, basename="api-evaluate")
urlpatterns = router.urls
