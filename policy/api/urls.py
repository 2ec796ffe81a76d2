from rest_framework.routers import SimpleRouter

from policy.api.views import RuleView

router = SimpleRouter()
router.register("policy/rules", RuleView, basename="api-rule")
urlpatterns = router.urls
