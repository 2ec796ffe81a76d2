"""Deputy's settings with the scripted model, for the workers of benchmarks.approval."""

from config.settings import *  # noqa: F403

DEPUTY_PROVIDERS = {"scripted": "benchmarks.plays.Scripted"}
DEPUTY_MODEL = "scripted:approve"
