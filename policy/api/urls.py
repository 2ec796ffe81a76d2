from rest_framework.routers import SimpleRouter

from policy.api.views import BindingView, CapabilityView, GrantView, RuleView

router = SimpleRouter()
router.register("policy/rules", RuleView, basename="api-rule")
router.register("policy/capabilities", CapabilityView, basename="api-capability")
router.register("policy/bindings", BindingView, basename="api-binding")
router.register("policy/grants", GrantView, basename="api-grant")
urlpatterns = router.urls
