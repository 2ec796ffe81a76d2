from deputy_weather.models import Station
from django.contrib import admin

from groups.admin.tenancy import TenantAdmin


@admin.register(Station)
class StationAdmin(TenantAdmin):
    list_display = ("city", "organization")
