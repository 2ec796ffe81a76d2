"""The interface is whole in both languages."""

import pytest
from babel.messages.pofile import read_po
from django.utils import translation

from launch import translations
from runs.models import Run
from runs.models.choices import RunStatus


def test_every_word_of_the_interface_is_translated():
    """`make messages` finds new words and says which are missing."""
    assert translations.problems(translations.read()) == []


def test_what_django_reads_is_what_the_catalogue_says():
    assert translations.COMPILED.read_bytes() == translations.compiled(translations.read())


@pytest.mark.parametrize("path", translations.templates(), ids=lambda path: path.name)
def test_no_template_says_anything_that_is_not_looked_up(path):
    assert translations.bare(path) == []


def test_a_template_that_speaks_english_only_is_found(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        '{% translate "Fine" %}<p>{{ run }} has failed</p><input placeholder="Your words">'
        "{% blocktranslate %}Fine too{% endblocktranslate %}<code>send_email</code>"
    )

    assert translations.bare(page) == ["Your words", "has failed"]


def test_words_are_found_where_they_stand(tmp_path):
    page, code = tmp_path / "page.html", tmp_path / "code.py"
    page.write_text(
        '{% translate "One" %}{{ x|default:_("Two") }}{% translate "new" context "argument" %}'
        "{% blocktranslate count counter=n %}{{ counter }} run{% plural %}{{ counter }} runs"
        "{% endblocktranslate %}{% translate said %}"
    )
    code.write_text('_("Three")\nngettext("a {n}", "b {n}", n)\nraise CannotStart("CODE", "Four")\n_(x)\n')

    assert set(translations.of_template(page)) == {
        translations.Message("One"),
        translations.Message("Two"),
        translations.Message("new", context="argument"),
        translations.Message("%(counter)s run", "%(counter)s runs"),
    }
    assert set(translations.of_python(code)) == {
        translations.Message("Three"),
        translations.Message("a {n}", "b {n}"),
        translations.Message("Four"),
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda catalog: catalog.delete("Reject"), "not in the catalogue: 'Reject'"),
        (lambda catalog: setattr(catalog.get("Reject"), "string", ""), "not translated: 'Reject'"),
        (lambda catalog: catalog.get("Reject").flags.add("fuzzy"), "unsure: 'Reject'"),
        (lambda catalog: catalog.add("Nobody says this", "x"), "no longer used: 'Nobody says this'"),
        (
            lambda catalog: setattr(catalog.get("{span} ago"), "string", "{time}前"),
            "other places than in English: '{span} ago'",
        ),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_said(change, said):
    with translations.SOURCE.open("rb") as file:
        catalog = read_po(file, locale=translations.LANGUAGE)
    change(catalog)

    assert translations.problems(catalog) == [said]


def test_models_speak_the_readers_language_and_migrations_english():
    field = Run._meta.get_field("status")
    with translation.override("zh-hans"):
        assert str(field.verbose_name) == "状态"
        assert str(Run._meta.verbose_name) == "运行"
        assert Run(status=RunStatus.FAILED).get_status_display() == "失败"
    with translation.override("en"):
        assert str(field.verbose_name) == "status"
    assert field.deconstruct()[3].get("verbose_name") is None
