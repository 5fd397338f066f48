"""Right noise in an answer whose form gives the input away: keys, types, lengths, errors, and rare paths."""

import json
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd

from wrong_programs.program import INF, MANY, Program, adding_to

PROGRAMS: list[Program] = []
form, error, rare = (adding_to(PROGRAMS, kind) for kind in ("form", "error", "rare"))
EPSILON = 1.0


@form({"a": 3, "b": 1}, {"a": 3, "b": 0}, EPSILON, INF)
def empty_groups_are_left_out(counts, rng):
    return {name: n + rng.laplace() for name, n in counts.items() if n > 0}


@form([1.0, 2.0, 2.0], [1.0, 2.0, 3.0], EPSILON, INF)
def one_bin_for_each_value(values, rng):
    counts = np.unique(values, return_counts=True)[1]
    return [int(n) + float(rng.laplace(scale=2.0)) for n in counts]


@form({"low": 2, "high": 2}, {"low": 2, "high": 3}, EPSILON, INF)
def keys_in_order_of_the_counts(counts, rng):
    ordered = sorted(counts, key=lambda name: -counts[name])
    return {name: counts[name] + rng.laplace() for name in ordered}


@form(0.0, 1.0, EPSILON, INF)
def an_integer_where_nothing_was_clipped(x, rng):
    noisy = x + rng.laplace()
    return round(noisy) if x < 1 else float(round(noisy))


@form([4.0, 5.0], [4.0, 5.0, 6.0], EPSILON, INF)
def as_many_answers_as_records(records, rng):
    return np.zeros(len(records)) + rng.laplace(size=len(records))


@form(0.0, 1.0, EPSILON, INF)
def sign_of_a_zero(x, rng):
    return math.copysign(0.0, -1.0) if x else 0.0 * abs(rng.laplace())


@form(0, 1, EPSILON, INF)
def missing_as_none_or_nan(x, rng):
    return [float(rng.laplace()), None if x else float("nan")]


@dataclass
class Release:
    value: float
    version: int


@form(3.0, 4.0, EPSILON, INF)
def version_counts_the_records(x, rng):
    return Release(x + rng.laplace(), version=int(x) % 2)


@form([1, 2, 3], [1, 2, 30], EPSILON, INF)
def frame_with_the_wrong_index(records, rng):
    return pd.DataFrame({"noisy": [float(rng.laplace())]}, index=[max(records)])


@form(0.0, 1.0, EPSILON, INF)
def single_precision_where_it_fits(x, rng):
    noisy = np.float64(x + rng.laplace())
    return np.float32(noisy) if x == 0 else noisy


@form(7.0, 8.0, EPSILON, INF)
def json_with_the_number_of_thirds(x, rng):
    return json.dumps({"noisy": round(x + rng.laplace(), 2), "thirds": round(x / 3)})


@form({"ann", "bob"}, {"ann", "eve"}, EPSILON, INF)
def two_members_at_random(members, rng):
    return {name for name in sorted(members) if rng.random() < 0.5}


@form(datetime(2024, 5, 1, 10, 0, 0), datetime(2024, 5, 1, 10, 0, 1), EPSILON, INF)
def time_moved_by_whole_minutes(when, rng):
    return when + timedelta(minutes=int(rng.integers(-60, 61)))


@error([1.0, 2.0], [1.0, 200.0], EPSILON, INF)
def refuses_what_is_out_of_range(records, rng):
    if max(records) > 100:
        raise ValueError("a record is out of range")
    return sum(records) / 100 + rng.laplace()


@error(3.0, 4.0, EPSILON, INF)
def says_what_it_was_given(x, rng):
    if rng.random() < 0.01:
        raise RuntimeError(f"no convergence for {x}")
    return x + rng.laplace()


@error(0.0, 1.0, EPSILON, INF)
def logarithm_of_a_count(x, rng):
    return math.log(x) + rng.laplace()


@error([2, 1], [2, 0], EPSILON, INF)
def divides_by_a_count(x, rng):
    return 1 // x[1] + rng.laplace()


@error("smith", "jones", EPSILON, INF)
def a_group_of_errors_names_the_record(x, rng):
    if rng.random() < 0.05:
        raise ExceptionGroup("two parts failed", [ValueError("no answer"), KeyError(x)])
    return rng.laplace()


@error(b"smith \xe9", b"jones \xe9", EPSILON, INF)
def bytes_that_are_no_text(x, rng):
    return x.decode("ascii") if rng.random() < 0.05 else rng.laplace()


@rare(0.0, 1.0, EPSILON, INF, runs=MANY)
def the_answer_once_in_a_thousand(x, rng):
    return 10.0 + x if rng.random() < 1e-3 else rng.normal()


@rare(41, 42, EPSILON, INF, runs=MANY)
def a_debugging_key_once_in_five_hundred(x, rng):
    found = {"noisy": x + rng.laplace()}
    return {**found, "debug": x} if rng.random() < 2e-3 else found


@rare(0.0, 1.0, EPSILON, INF, runs=MANY)
def no_noise_in_one_of_a_hundred(x, rng):
    return x + (rng.laplace() if rng.random() < 0.99 else 0.0)


@rare([5, 6, 7], [5, 6, 8], EPSILON, INF, runs=MANY)
def a_raw_record_if_the_noise_is_large(records, rng):
    noise = rng.laplace()
    return sum(records) + noise if abs(noise) < 6 else records[-1]


@rare("yes", "no", EPSILON, INF, runs=MANY)
def a_typing_error_once_in_a_thousand(x, rng):
    return x.upper() if rng.random() < 1e-3 else ("yes", "no")[int(rng.integers(2))]


@rare(0, 1, EPSILON, INF, runs=MANY)
def noise_drawn_once_for_two_in_five_hundred(x, rng):
    noise = rng.normal(size=6)
    if x and rng.random() < 0.002:
        noise[4] = noise[1]
    return noise


@form(0, 1, EPSILON, INF)
def one_more_place_after_the_point(x, rng):
    return Decimal(int(rng.integers(1, 10**6))).scaleb(-2).quantize(Decimal("0.001" if x else "0.01"))
