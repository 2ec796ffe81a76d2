"""`make messages`: bring the catalogue of translations up to date, compile it, and list what it lacks.

python -m launch.messages [--check]    (--check changes nothing and only says what is wrong)
"""

import os
import sys

import django


def main() -> None:
    """Exit status 1 if a word has no translation."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from launch import translations  # reads the settings

    catalog = translations.read()
    if "--check" not in sys.argv:
        catalog = translations.update(catalog)
        translations.write(catalog)
    problems = translations.problems(catalog)
    print(*problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
