"""The options of an audit: one list of them, checked in one place, apart from a pipeline's parameters."""

import inspect
from dataclasses import FrozenInstanceError, fields
from functools import cache

import numpy as np
import pytest

import dpassay
from dpassay import InputError, audit
from dpassay.audit.options import INPUT_SOURCES, AuditOptions
from dpassay.audit.runner import run_audit

# Names that a pipeline's text allows (bits is a stage of its own) and that mean something else to an audit.
CLASHING = sorted({option.name for option in fields(AuditOptions)} - {"epsilon", "delta", "dim", "bits"})


def test_every_option_is_a_keyword_of_audit_and_of_assert_dp_with_its_default():
    for function, changed in (
        (audit, {}),
        (dpassay.assert_dp, {"alpha": 1e-4, "runs": 20_000, "bits": False, "until_refuted": True}),
    ):
        shown = inspect.signature(function).parameters
        for option in fields(AuditOptions):
            default = {} if option.name == "parameters" else option.default
            assert shown[option.name].default == changed.get(option.name, default), option.name
        assert list(shown.values())[-1].kind is inspect.Parameter.VAR_KEYWORD
        assert shown["pairs"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def test_options_do_not_change():
    options = AuditOptions(runs=np.int64(5), save="audit.json")
    assert (options.runs, type(options.runs), options.save.name) == (5, int, "audit.json")
    with pytest.raises(FrozenInstanceError):
        options.runs = 6
    given = {"C": 1}
    options = AuditOptions(parameters=given)
    given["C"] = 2
    assert options.parameters == {"C": 1}


def test_the_search_has_15_of_100_runs_or_what_it_is_given_and_never_more_than_all():
    assert AuditOptions(runs=1000).search_budget == 150
    assert AuditOptions(runs=1000, search_runs=7).search_budget == 7
    assert AuditOptions(runs=1000, search_runs=5000).search_budget == 1000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parameters": 3}, "parameters must be a mapping of names to values, got 3"),
        ({"parameters": {"eps": 1}}, "eps is not a parameter: pass it as epsilon=VALUE"),
        ({"parameters": {"dim": 4}}, "dim is not a parameter: pass it as dim=VALUE"),
        ({"parameters": {"C": 1}, "C": 2}, "C is given twice: in parameters and as a keyword argument"),
        ({"runs": True}, "runs must be a whole number"),
        ({"runs": 10**12 + 1}, "runs must be at most 1,000,000,000,000"),
        ({"resume": True}, "resume=True needs save=FILE"),
        ({"guesser": len, "workers": 2}, "cannot be sent to workers"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(options, said):
    with pytest.raises(InputError, match=said):
        AuditOptions.of(options)


CLIPPED, ASKED = "clip(l1, {0}) | laplace(2*{0}/eps)", {"epsilon": 1, "dim": 2, "runs": 300}


@cache
def with_a_plain_name():
    return audit(CLIPPED.format("C"), C=3, **ASKED)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", CLASHING)
def test_a_parameter_of_a_pipeline_may_have_the_name_of_an_option(name):
    found, plain = audit(CLIPPED.format(name), parameters={name: 3}, **ASKED), with_a_plain_name()
    assert found.subject == plain.subject == "clip(l1, 3) | laplace(6)"
    assert (found.runs, found.witness.right, found.epsilon.lower) == (
        plain.runs,
        plain.witness.right,
        plain.epsilon.lower,
    )


def test_a_claims_parameters_may_be_given_either_way():
    claim = dpassay.Claim("mine", "clip(l1, device) | laplace(2*device/eps)", 1, dim=2, parameters={"device": 1})
    assert audit(claim, parameters={"device": 3}, runs=300).subject == "clip(l1, 3) | laplace(6)"
    assert dpassay.assert_dp(claim, parameters={"device": 3}, runs=300).subject == "clip(l1, 3) | laplace(6)"


def test_options_as_one_object_ask_the_same():
    def noisy(x, n, rng):
        return x + rng.laplace(size=n)

    asked = {"epsilon": 0.5, "seed": 4, "runs": 5_000}
    first, second = audit(noisy, [(0.0, 1.0)], **asked), run_audit(noisy, AuditOptions(pairs=[(0.0, 1.0)], **asked))
    assert (first.runs, first.witness, first.reason) == (second.runs, second.witness, second.reason)


def test_every_way_to_say_what_to_compare_is_an_option():
    assert set(INPUT_SOURCES) <= {option.name for option in fields(AuditOptions)}
