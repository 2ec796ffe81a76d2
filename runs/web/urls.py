"""The addresses of people's own pages."""

from django.urls import path

from runs.web import (
    approval_views,
    confirm,
    group_views,
    memory_views,
    schedule_views,
    settings_views,
    talk_views,
)

app_name = "web"

urlpatterns = [
    path("", talk_views.home, name="home"),
    path("confirm/", confirm.confirm, name="confirm"),
    path("ask/", talk_views.ask, name="ask"),
    path("conversations/", talk_views.search, name="conversations"),
    path("talk/<str:run_id>/", talk_views.conversation, name="conversation"),
    path("talk/<str:run_id>/send/", talk_views.send, name="send"),
    path("talk/<str:run_id>/turn/", talk_views.turn, name="turn"),
    path("talk/<str:run_id>/stream/", talk_views.follow, name="stream"),
    path("talk/<str:run_id>/answer/", talk_views.answer, name="answer"),
    path("talk/<str:run_id>/stop/", talk_views.stop, name="stop"),
    path("talk/<str:run_id>/again/", talk_views.again, name="again"),
    path("talk/<str:run_id>/go-on/", talk_views.go_on, name="go_on"),
    path("talk/<str:run_id>/rate/", talk_views.rate, name="rate"),
    path("talk/<str:run_id>/rename/", talk_views.rename, name="rename"),
    path("waiting/", approval_views.waiting, name="waiting"),
    path("waiting/count/", talk_views.count, name="count"),
    path("approvals/<str:approval_id>/", approval_views.approval, name="approval"),
    path("known/", memory_views.known, name="known"),
    path("known/export/", memory_views.export, name="export"),
    path("known/forget-all/", memory_views.forget_all, name="forget_all"),
    path("known/<str:memory_id>/correct/", memory_views.correct, name="correct"),
    path("known/<str:memory_id>/forget/", memory_views.forget, name="forget"),
    path("sources/<str:memory_id>/", memory_views.source, name="source"),
    path("groups/", group_views.groups, name="groups"),
    path("groups/new/", group_views.new, name="new_group"),
    path("schedules/", schedule_views.schedules, name="schedules"),
    path("schedules/new/", schedule_views.new, name="new_schedule"),
    path("schedules/times/", schedule_views.times, name="times"),
    path("schedules/<str:schedule_id>/", schedule_views.schedule, name="schedule"),
    path("schedules/<str:schedule_id>/edit/", schedule_views.edit, name="edit_schedule"),
    path("schedules/<str:schedule_id>/pause/", schedule_views.pause, name="pause"),
    path("schedules/<str:schedule_id>/resume/", schedule_views.resume, name="resume"),
    path("schedules/<str:schedule_id>/delete/", schedule_views.delete, name="delete_schedule"),
    path("settings/", settings_views.settings, name="settings"),
    path("settings/choose/", settings_views.choose, name="choose"),
    path("settings/tokens/", settings_views.issue, name="issue"),
    path("settings/tokens/<str:token_id>/revoke/", settings_views.revoke, name="revoke"),
]
