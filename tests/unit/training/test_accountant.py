"""The accountant states what `check` states, an independent library agrees, and the least noise is the least."""

import pytest
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant

import dpassay
from dpassay.errors import InputError
from dpassay.training.accountant import Account, least_noise


def by_google(rate, multiplier, rounds, delta):
    accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-3)
    event = dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(multiplier))
    return accountant.compose(event, rounds).get_epsilon(delta)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(("rate", "multiplier", "rounds"), [(0.05, 2.0, 200), (0.525, 6.0, 100), (0.1, 0.8, 30)])
def test_epsilon_is_that_of_check_and_of_an_independent_library(rate, multiplier, rounds):
    account = Account(rate, 0.5, 0.5 * multiplier, rounds, 1e-5)
    found = account.epsilon()
    told = dpassay.check(account.pipeline, epsilon=1, delta=1e-5, neighbours="user", dim=1).epsilon
    assert (found.lower, found.upper) == (told.lower, told.upper)
    theirs = by_google(rate, multiplier, rounds, 1e-5)
    assert found.lower <= theirs * (1 + 1e-9)  # theirs is rounded up, by at most its discretisation
    assert theirs <= found.upper + 0.02


def test_the_numbers_of_the_literature():
    assert Account(0.01, 1.0, 1.0, 1000, 1e-5).epsilon().upper == pytest.approx(1.8282, abs=2e-3)
    assert Account(0.5, 1.0, 2.0, 100, 1e-5).epsilon().upper == pytest.approx(14.28, abs=2e-2)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 30.0])
def test_the_least_noise_keeps_epsilon_and_a_little_less_does_not(epsilon):
    multiplier = least_noise(epsilon, 1e-5, 0.1, 50)
    assert Account(0.1, 1.0, multiplier, 50, 1e-5).epsilon().upper <= epsilon
    assert Account(0.1, 1.0, multiplier * 0.998, 50, 1e-5).epsilon().upper > epsilon


def test_what_is_spent_so_far_is_never_understated_and_ends_at_the_whole():
    account = Account(0.1, 1.0, 2.0, 37, 1e-5)
    assert account.spent(0) == 0
    spent = [account.spent(done) for done in range(1, 38)]
    exact = [Account(0.1, 1.0, 2.0, done, 1e-5).epsilon().upper for done in range(1, 38)]
    assert all(said >= true for said, true in zip(spent, exact, strict=True))
    assert spent == sorted(spent)
    assert spent[-1] == account.epsilon().upper


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((0.0, 1e-5, 0.1, 10), "epsilon must be a positive number"),
        ((-1.0, 1e-5, 0.1, 10), "epsilon must be a positive number"),
        ((1.0, 0.0, 0.1, 10), "delta must lie strictly between 0 and 1"),
        ((1.0, 1.0, 0.1, 10), "delta must lie strictly between 0 and 1"),
        ((1e-8, 1e-12, 1.0, 1), "no noise multiplier up to 10,000 gives epsilon 1e-08"),
    ],
)
def test_what_no_noise_reaches_is_refused(asked, message):
    with pytest.raises(InputError, match=message):
        least_noise(*asked)
