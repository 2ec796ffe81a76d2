"""Ways to hand a tool what no rule was asked about."""

import pytest

from runs.tools import checking, schemas

pydantic = pytest.importorskip("pydantic")


class Payee(pydantic.BaseModel):
    model_config = {"populate_by_name": True}

    account: str = pydantic.Field("own", alias="toAccount")


class Payment(pydantic.BaseModel):
    model_config = {"populate_by_name": True}

    amount: float = pydantic.Field(1, alias="amountEur")
    payee: Payee = pydantic.Field(default_factory=Payee)


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"amountEur": 5, "payee": {"toAccount": "Bob"}}, True),
        ({"amount": 5}, False),  # a rule looks at amountEur
        ({"payee": {"account": "Mallory"}}, False),
    ],
)
def test_a_models_fields_have_one_name(arguments, fits):
    validator = checking.checker(schemas.schema_of_model(Payment))
    assert (checking.errors(validator, arguments) == []) is fits
    assert schemas.called_with_model(lambda run, said: said, Payment)(
        None, **arguments
    )  # it would take either
