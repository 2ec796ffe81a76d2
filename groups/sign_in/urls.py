"""The pages of one's account: allauth's, except those on which strangers could make one."""

from allauth.account import views
from allauth.account.decorators import reauthentication_required
from django.urls import include, path, re_path

from groups.sign_in import factor_views, openid_views, session_views
from groups.sign_in.email_views import Addresses, Confirmed

confirmed = reauthentication_required  # allauth asks for a password here, where there is one, and at no pace

urlpatterns = [
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", views.signup, name="account_signup"),  # says that it is closed
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("email/", Addresses.as_view(), name="account_email"),
    path("confirm-email/", views.email_verification_sent, name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", Confirmed.as_view(), name="account_confirm_email"),
    path("password/change/", confirmed(views.password_change), name="account_change_password"),
    path("password/set/", confirmed(views.password_set), name="account_set_password"),
    path("password/reset/", views.password_reset, name="account_reset_password"),
    path("password/reset/done/", views.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "password/reset/key/done/",
        views.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("sessions/", session_views.listed, name="account_sessions"),
    path("code/", views.request_login_code, name="account_request_login_code"),
    path("code/confirm/", views.confirm_login_code, name="account_confirm_login_code"),
    path("provider/<str:provider_id>/", openid_views.begin, name="oidc_begin"),
    path("provider/<str:provider_id>/confirm/", openid_views.begin, {"purpose": "confirm"}, "oidc_confirm"),
    path("provider/<str:provider_id>/connect/", openid_views.begin, {"purpose": "connect"}, "oidc_connect"),
    path("provider/<str:provider_id>/connected/", openid_views.connected, name="oidc_connected"),
    path("provider/<str:provider_id>/callback/", openid_views.callback, name="oidc_callback"),
    path("provider/<str:provider_id>/logout/", openid_views.logout, name="oidc_logout"),
    path("factors/authenticate/", factor_views.authenticate, name="mfa_authenticate"),
    path("factors/", include("allauth.mfa.urls")),
]
