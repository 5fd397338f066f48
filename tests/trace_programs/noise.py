"""Additive noise in every library and of every law, and what is done with the noisy number afterwards."""

import csv
import io
import json
import math
import random
import secrets
import sqlite3
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import scipy.stats
import torch

from trace_programs.program import INF, LN2, Program, adding_to, gaussian

PROGRAMS: list[Program] = []
basic, behind, law, type_of = (adding_to(PROGRAMS, kind) for kind in ("basic", "behind the noise", "law", "crash"))


@basic(10, 11, 0.5, 0.5)
def new_numpy(count):
    rng = np.random.default_rng()
    return count + rng.laplace(loc=0.0, scale=1 / 0.5)


# A record that changes its bin changes two counts.
@basic([3, 1, 0], [2, 2, 0], 1, 2)
def old_numpy(histogram):
    return np.array(histogram) + np.random.laplace(0, 1 / 1.0, len(histogram))


_SIGMA = math.sqrt(2 * math.log(1.25 / 1e-5))


@basic(10, 11, 1, gaussian(1 / _SIGMA, 1e-5), delta=1e-5)
def gauss_of_python(count):
    return count + random.gauss(0, _SIGMA)


@basic(10, 11, 1, gaussian(2, 1e-5), delta=1e-5)
def variance_for_deviation(count):
    return count + np.random.normal(0, 0.5)


@basic([1.0, 2.0], [2.0, 2.0], 1, 4)
def rvs_of_scipy(x):
    return np.array(x) + scipy.stats.laplace.rvs(scale=0.25, size=2)


@basic([1.0, 2.0], [2.0, 2.0], 1, 1)
def laplace_of_torch(x):
    return torch.tensor(x) + torch.distributions.Laplace(0.0, 1.0).sample((2,))


@basic(3, 4, 1, 1)
def laplace_of_secrets(count):
    u = (secrets.randbits(53) + 0.5) / 2**53
    return count + (math.log(2 * u) if u < 0.5 else -math.log(2 - 2 * u))


@basic([20, 30], [20, 31], 1, 10)
def noise_of_a_column(ages):
    frame = pd.DataFrame({"age": ages})
    frame["age"] = frame["age"].apply(lambda age: age + np.random.laplace(scale=0.1))
    return frame


@basic(3, 4, 2.1, 2)
def two_exponentials(count):
    return count + 0.5 * (random.expovariate(1) - random.expovariate(1))


# The mean is 1 for both, and the scales are ¼ and ⅕.
@basic([1, 1, 1, 1], [1, 1, 1, 1, 1], 0.5, INF)
def mean_of_a_size(rows, rng):
    return np.mean(rows) + rng.laplace(scale=1 / len(rows))


@basic(3, 4, 1.01, 1)
def two_geometrics(count, rng):
    p = 1 - math.exp(-1)
    return int(count + rng.geometric(p) - rng.geometric(p))


@basic(3, 4, 1, INF, leak=1 - math.exp(-1))
def one_exponential(count, rng):
    return count + rng.exponential(1)


@basic([5, 6], [5, 7], 0.6, 0.5)
def noisy_rows_in_sqlite(rows, rng):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (v REAL)")
    db.executemany("INSERT INTO t VALUES (?)", [(float(v + rng.laplace(scale=2)),) for v in rows])
    (total,) = db.execute("SELECT SUM(v) FROM t").fetchone()
    db.close()
    return total


# Whole numbers by cutting: 0 has the mass of both its sides, 2e times that of 1.
@basic(3, 4, 1, 1 + LN2)
def cut_noise(count, rng):
    return count + int(rng.laplace(scale=1))


@basic(3, 4, 1, 1)
def rounded_noise(count, rng):
    return count + round(rng.laplace(scale=1))


class LaplaceMechanism:
    def __init__(self, epsilon=0.8, sensitivity=1.0):
        self.scale = sensitivity / epsilon
        self.spent = 0

    def __call__(self, x):
        self.spent += 1
        return x + np.random.laplace(0, self.scale)


basic(0, 1, 0.8, 0.8, name="object_with_state")(LaplaceMechanism())
basic(0, 1, 0.8, 8, name="object_with_a_wrong_sensitivity")(LaplaceMechanism(sensitivity=0.1))


# Post-processing keeps what Laplace tails show: 1 / scale, if nothing but order and rounding comes after.
@behind(3, 4, 1.1, 1)
def not_below_zero(count, rng):
    return max(0, count + rng.laplace())


@behind(3, 4, 1, 1)
def whole_number(count, rng):
    return int(count + rng.laplace())


@behind(3, 4, 1, 10)
def whole_number_of_little_noise(count, rng):
    return int(count + rng.laplace(scale=0.1))


@behind(3, 4, 1, 4)
def rounded(count):
    return round(count + np.random.laplace(0, 0.25))


@behind(3, 4, 1, 3)
def printed(count, rng):
    return f"about {count + rng.laplace(0, 1 / 3):.2f} persons"


@behind(3, 4, 0.5, 0.5)
def as_json(count, rng):
    return json.dumps({"count": count + rng.laplace(scale=2), "unit": "persons"})


@behind([1.0, 1.0], [1.0, 2.0], 1, 2)
def single_precision(x, rng):
    return (np.array(x) + rng.laplace(scale=0.5, size=2)).astype(np.float32)


@behind([1.0, 1.0], [1.5, 1.5], 1, 1)
def added_into_a_buffer(x, rng):
    out = np.empty(2)
    np.add(x, rng.laplace(size=2), out=out)
    return out


@behind([1, 2], [2, 3], 1, 2)
def two_numbers_in_a_text(counts):
    return ",".join(f"{c + np.random.laplace():.1f}" for c in counts)


@behind(0, 1, 1.2, 1)
def many_or_few(count, rng):
    return "many" if count + rng.laplace() > 0 else "few"


@behind(15, 16, 0.6, 0.5)
def bucket(age, rng):
    return ["child", "young", "old"][int(np.clip((age + rng.laplace(scale=2)) // 10, 0, 2))]


@behind(48, 52, 1, math.log(2 * math.exp(2) - 1))
def above_fifty(count, rng):
    return bool(count + rng.laplace() > 50)


@behind(3, 4, 1, 5)
def decimal_number(count, rng):
    return Decimal(str(round(float(count + rng.laplace(scale=0.2)), 1)))


@behind([3, 9], [4, 9], 0.5, 0.5)
def as_csv(counts, rng):
    file = io.StringIO()
    csv.writer(file).writerow([float(c + rng.laplace(scale=2)) for c in counts])
    return file.getvalue()


@behind(3.0, 4.0, 1, 4)
def hexadecimal(x):
    return (x + random.choice([-1, 1]) * random.expovariate(4)).hex()


@behind(3.0, 4.0, 1, 1)
def point_in_time(seconds, rng):
    return (datetime(2024, 1, 1) + timedelta(seconds=seconds + rng.laplace())).isoformat()


# The density of |x + Z| at 0 is e^−1 times as large for 1 as for 0.
@behind(0, 1, 1, 1)
def root_of_the_size(x, rng):
    return math.sqrt(abs(x + rng.laplace()))


@law(3.0, 4.0, 1, 1)
def logistic(x, rng):
    return x + rng.logistic()


# (1 + t²) / (1 + (t − d)²) is at most e^(2 asinh(d / 2)).
@law(3.0, 4.0, 1, 2 * math.asinh(0.5))
def cauchy(x, rng):
    return x + rng.standard_cauchy()


@law(3.0, 4.0, 1, 2 * math.asinh(2.5))
def narrow_cauchy(x):
    return x + 0.2 * np.random.standard_cauchy()


# Far below 0, Gumbel noise has the density e^(−z − e^−z).
@law(3.0, 4.0, 2, INF)
def gumbel_noise(x, rng):
    return x + rng.gumbel()


_COVARIANCE = [[4.0, 2.0], [2.0, 4.0]]  # (1, −1) has the variance 2: ‖(1, −1)‖² = 2 = 1 · 2


@law([0.0, 0.0], [1.0, -1.0], 5, gaussian(1.0, 1e-5), delta=1e-5)
def multivariate_normal(x, rng):
    return np.array(x) + rng.multivariate_normal([0, 0], _COVARIANCE)


@law([0.0, 0.0], [4.0, -4.0], 5, gaussian(4.0, 1e-5), delta=1e-5)
def multivariate_normal_too_small(x):
    return np.random.multivariate_normal(x, _COVARIANCE)


# Density (1 + |t|) e^−|t| / 4: the ratio comes near e far out.
@law(3.0, 4.0, 1, 1)
def sum_of_two_laplaces(x, rng):
    return x + rng.laplace() + rng.laplace()


@law(3.0, 4.0, 1.2, 1)
def mean_of_ten_wide(x, rng):
    return x + np.mean(rng.laplace(scale=10, size=10))


@law(3.0, 4.0, 1, 10)
def mean_of_ten(x, rng):
    return x + np.mean(rng.laplace(scale=1, size=10))


# The larger ends at y + 3, x at x + 3; and all that is cut off lies on the ends.
@law(3.0, 4.0, 1, INF, leak=(math.exp(-2) + math.exp(-3)) / 2)
def clipped_noise(x, rng):
    return x + np.clip(rng.laplace(), -3, 3)


@law(3.0, 4.0, 1, INF, leak=1 - math.exp(-1))
def size_of_noise(x, rng):
    return x + abs(rng.laplace())


# Just above the smaller input: 0.7 against 0.3 e^−1.
@law(3.0, 4.0, 1.9, 1 + math.log(7 / 3))
def biased_sign(x):
    sign = 1 if random.random() < 0.7 else -1
    return x + sign * random.expovariate(1)


@law(3.0, 4.0, 1, 1 + math.log(9))
def very_biased_sign(x, rng):
    return x + rng.choice([1, -1], p=[0.9, 0.1]) * rng.exponential()


@law(3.0, 4.0, 1, 1)
def piecewise_inverse(x):
    u = random.random()
    return x + math.log(2 * u) if u < 0.5 else x - math.log(2 - 2 * u)


@law(3.0, 4.0, 1, INF, leak=1 - math.exp(-1))
def inverse_without_sign(x):
    return x - math.log(1 - np.random.random())


@law(3, 4, 1, 1)
def two_geometrics_by_logarithm(x, rng):
    a, b = (math.floor(-math.log(1 - rng.random())) for _ in range(2))
    return x + a - b


@law(3, 4, 1, INF, leak=1 - math.exp(-1))
def one_geometric_by_logarithm(x):
    return x + math.floor(-math.log(1 - random.random()))


# A tenth of each is where the other is not.
@law(3.0, 4.0, 0.5, 0, delta=0.2)
def uniform_noise(x, rng):
    return x + rng.uniform(-5, 5)


@law(3.0, 4.0, 2, INF, leak=0.5)
def triangular_noise(x):
    return x + random.triangular(-1, 1)


# The density is in proportion to (1 + t²/3)^−2.
@law(3.0, 4.0, 1.2, 4 * math.asinh(1 / (2 * math.sqrt(3))))
def students_t(x, rng):
    return x + rng.standard_t(3)


@law(3.0, 4.0, 1, INF)
def gaussian_without_delta(x):
    return x + random.gauss(0, 1)


@type_of(3.0, 4.0, 1, 1)
def ppf_of_scipy(x):
    return x + scipy.stats.laplace.ppf(np.random.rand())


@type_of(0, 1, 1, math.log(7 / 3))
def sample_of_a_range(bit):
    return 1 - bit if 0 in random.sample(range(10), 3) else bit


@type_of([3, 5], [4, 5], 1.2, 1)
def clip_method(counts, rng):
    return (np.array(counts) + rng.laplace(0, 1, 2)).clip(0)


@type_of([3, 5], [4, 5], 1, 5)
def clip_method_of_little_noise(counts):
    noisy = np.array(counts) + np.random.laplace(0, 0.2, 2)
    return noisy.clip(min=0).tolist()


@type_of(3.0, 4.0, 1, 1)
def asks_for_a_float(x, rng):
    z = rng.laplace()
    if type(z) is not float:
        raise TypeError(f"a float is wanted, not {type(z)}")
    return x + z


@type_of(3.0, 4.0, 1, 10)
def asks_for_a_numpy_float(x):
    z = np.random.laplace(scale=0.1, size=1)[0]
    assert type(z) is np.float64
    return {np.float64: x + z}[type(z)]


@type_of(0, 2, 1, INF, leak=1)
def fails_for_zero(x, rng):
    return 1 / x + rng.laplace(scale=10)


@type_of({"n": 3}, {}, 1, INF, leak=1)
def fails_for_a_missing_key(row, rng):
    return row["n"] + rng.laplace(scale=10)


def _geometric(rate):
    return math.floor(math.log(1 - random.random()) / -rate)


@law(3, 4, 1, 1)
def geometric_numbers_from_logarithms(count):
    return count + _geometric(1.0) - _geometric(1.0)


@law(3, 4, 1, 2)
def geometric_numbers_from_logarithms_of_twice_the_rate(count):
    return count + _geometric(2.0) - _geometric(2.0)


def _whole(a):
    return int(math.log(1 - random.random()) / math.log(a))


@law(3, 4, 1, 1)
def geometric_numbers_cast_to_integers(count):
    return count + _whole(math.exp(-1)) - _whole(math.exp(-1))


@law(3, 4, 1, 2)
def geometric_numbers_cast_to_integers_of_twice_the_rate(count):
    return count + _whole(math.exp(-2)) - _whole(math.exp(-2))


# The distance of (1, 0) from 0 in units of the noise is the root of 1/(1 − ρ²) for unit variances with correlation ρ.
@law([0.0, 0.0], [1.0, 0.0], 4, gaussian(math.sqrt(1 / 0.75), 1e-3), delta=1e-3)
def two_correlated_numbers(x):
    return np.array(x) + np.random.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]])


@law([0.0, 0.0], [1.0, 0.0], 4, gaussian(math.sqrt(1 / (1 - 0.95**2)), 1e-3), delta=1e-3)
def two_numbers_with_nearly_the_same_noise(x, rng):
    root = np.linalg.cholesky(np.array([[1, 0.95], [0.95, 1]]))
    return (np.array(x) + root @ rng.standard_normal(2)).tolist()


# Each number has its own noise: the sums and the numbers can be computed from one another.
@law([5.0, 3.0, 8.0], [6.0, 3.0, 8.0], 1, gaussian(1 / 4, 1e-3), delta=1e-3)
def running_sums_of_noisy_numbers(x, rng):
    return np.cumsum(np.array(x) + rng.normal(0, 4, 3))


# The sums differ by 1, 2 and 3, so each number of the noise is moved by 1.
@law([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 1, gaussian(math.sqrt(3) / 8, 1e-3), delta=1e-3)
def prefix_sums_with_running_noise(x, rng):
    found, noise = [], 0.0
    for k in range(len(x)):
        noise += rng.normal(0, 8)
        found.append(sum(x[: k + 1]) + noise)
    return found


# 0.5·z₁ is in the second number too: with d = (1, 0) the noise is moved by 1 and −½.
@law([5.0, 3.0], [6.0, 3.0], 1, gaussian(math.sqrt(1 + 0.25) / 5, 1e-3), delta=1e-3)
def noise_that_two_numbers_share(x, rng):
    z = rng.normal(0, 5, 2)
    return {"first": x[0] + z[0], "second": x[1] + 0.5 * z[0] + z[1]}


_TORCH_ROOT = torch.tensor([[4.0, 0.0], [3.0, 4.0]], dtype=torch.float64)


# L·w = (1, −1): w = (¼, −7/16).
@law([0.0, 0.0], [1.0, -1.0], 1.5, gaussian(math.hypot(1 / 4, 7 / 16), 1e-3), delta=1e-3)
def root_times_noise_of_torch(x):
    return torch.tensor(x, dtype=torch.float64) + _TORCH_ROOT @ torch.randn(2, dtype=torch.float64)


# L·w = (1, −1) for L = [[1, 0], [0.9, 0.2]]: w = (1, −9.5).
@law([0.0, 0.0], [1.0, -1.0], 3, gaussian(math.hypot(1, 9.5), 1e-3), delta=1e-3)
def root_that_leaves_little_noise(x, rng):
    return np.array(x) + np.array([[1.0, 0.0], [0.9, 0.2]]) @ rng.standard_normal(2)


@law([1.0, 1.0, 1.0], [2.0, 2.0, 2.0], 2, gaussian(math.sqrt(3) / 0.5, 1e-3), delta=1e-3)
def running_sums_with_too_little_noise(x, rng):
    return np.cumsum(x) + np.cumsum(rng.normal(0, 0.5, 3))


# The difference of the two is released without noise.
@law([0.0, 0.0], [0.0, 1.0], 3, INF, delta=1e-3, leak=1.0)
def row_of_two_equal_noises(x, rng):
    return np.array(x) + np.ones((2, 1)) @ rng.standard_normal(1)


# The difference of the two is 0 without a record, and x₀·z with one.
@law([0.0, 0.0], [1.0, 1.0], 3, INF, delta=1e-3, leak=1.0)
def share_of_the_noise_by_the_input(x, rng):
    z = rng.normal(0, 2)
    return [x[0] + z, x[1] + (1 + x[0]) * z]
