from django.db import models


class Station(models.Model):
    organization = models.ForeignKey("groups.Organization", on_delete=models.CASCADE)
    city = models.CharField(max_length=80)

    def __str__(self) -> str:
        return self.city
