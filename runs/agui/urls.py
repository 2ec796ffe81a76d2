from django.urls import path

from runs.agui.views import AguiView

urlpatterns = [path("ag-ui/<str:project>/", AguiView.as_view({"post": "run"}), name="api-agui")]
