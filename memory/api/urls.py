from rest_framework.routers import SimpleRouter

from memory.api.views import MemoryView

router = SimpleRouter()
router.register("memories", MemoryView, basename="api-memory")
urlpatterns = router.urls
