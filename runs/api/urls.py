from django.urls import re_path
from rest_framework.routers import SimpleRouter

from runs.api.account_views import AccountView
from runs.api.approval_views import ApprovalView
from runs.api.audit_views import AuditView
from runs.api.channel_views import ChannelView
from runs.api.decided_views import DecidedView
from runs.api.external_views import OutsideView
from runs.api.patience import patient
from runs.api.policy_views import PolicyView
from runs.api.proposal_views import ProposalView
from runs.api.run_views import RunView
from runs.api.schedule_views import ScheduleView
from runs.api.tool_views import ToolView
from runs.api.webhook_views import DeliveryView, WebhookView

router = SimpleRouter()
router.register("accounts", AccountView, basename="api-account")
router.register("runs", RunView, basename="api-run")
router.register("schedules", ScheduleView, basename="api-schedule")
router.register("approvals/decisions", DecidedView, basename="api-decided")
router.register("approvals", ApprovalView, basename="api-approval")
router.register("tools", ToolView, basename="api-tool")
router.register("policy", PolicyView, basename="api-policy")
router.register("audit/proposed", ProposalView, basename="api-proposal")
router.register("audit", AuditView, basename="api-audit")
router.register("channels", ChannelView, basename="api-channel")
router.register("webhooks/deliveries", DeliveryView, basename="api-delivery")
router.register("webhooks", WebhookView, basename="api-webhook")

RUN = r"^runs/(?P<pk>run_[0-9a-z]{26})"
CALL = RUN + r"/tool-calls/(?P<call_id>[!-~]{1,64}?)"
# The second half of a long poll; its first has been counted.
ANSWERED = OutsideView.as_view({"post": "answered"}, throttle_classes=())
SEEN = OutsideView.as_view({"get": "seen"}, throttle_classes=())
outside = [
    re_path(rf"{RUN}/complete/$", OutsideView.as_view({"post": "complete"}), name="api-run-complete"),
    re_path(rf"{RUN}/fail/$", OutsideView.as_view({"post": "fail"}), name="api-run-fail"),
    re_path(
        rf"{RUN}/tool-calls/$",
        patient(OutsideView.as_view({"get": "list", "post": "create"}), ANSWERED),
        name="api-run-calls",
    ),
    re_path(
        rf"{CALL}/resolve/$",
        OutsideView.as_view({"post": "resolve"}, scope="approvals:decide"),
        name="api-call-resolve",
    ),
    re_path(rf"{CALL}/$", patient(OutsideView.as_view({"get": "retrieve"}), SEEN), name="api-call-detail"),
]
# Seed 004 calls a run a job.
JOB = r"^jobs/(?P<pk>run_[0-9a-z]{26})"
jobs = [re_path(rf"{JOB}/signal/$", RunView.as_view({"post": "signal"}), name="api-job-signal")]
urlpatterns = [*router.urls, *outside, *jobs]
