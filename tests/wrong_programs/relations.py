"""What no number of an output shows by itself: residues, digits, bits, equalities and correlations."""

import math
import struct

import numpy as np

from wrong_programs.program import INF, Program, adding_to

PROGRAMS: list[Program] = []
residue, digits, joint = (adding_to(PROGRAMS, kind) for kind in ("residue", "digits", "joint"))
EPSILON = 1.0


@residue(0, 1, EPSILON, INF)
def parity_of_a_count(x, rng):
    return int(2 * rng.integers(-50, 50) + x)


@residue(3, 5, EPSILON, INF)
def residue_modulo_seven(x, rng):
    return int(7 * rng.integers(0, 100) + x)


@residue(0, 1, EPSILON, INF)
def parity_of_a_difference(x, rng):
    first = int(rng.integers(0, 100))
    return first, int(first + 2 * rng.integers(-20, 20) + x)


@residue(0, 1, EPSILON, INF)
def residue_of_a_sum_of_three(x, rng):
    a, b = (int(n) for n in rng.integers(0, 10, size=2))
    return [a, b, int((x - a - b) % 5 + 5 * rng.integers(0, 2))]


@residue(b"\x00", b"\x01", EPSILON, INF)
def a_checksum_in_the_last_byte(x, rng):
    body = bytes(rng.integers(0, 256, size=6).tolist())
    return body + bytes([(sum(body) + x[0]) % 4])


@residue(0, 1, EPSILON, INF)
def seconds_of_a_time(x, rng):
    return f"{rng.integers(0, 24):02d}:{rng.integers(0, 60):02d}:{2 * rng.integers(0, 30) + x:02d}"


@digits(0.0, 1.0, EPSILON, INF)
def the_third_decimal(x, rng):
    return round(rng.laplace(), 2) + 0.005 * x


@digits(0.25, 0.5, EPSILON, INF)
def noise_on_a_grid(x, rng):
    return x + round(rng.laplace(scale=0.25), 1)


@digits(0, 1, EPSILON, INF, bits=True)
def a_bit_of_the_mantissa(x, rng):
    raw = struct.unpack("<Q", struct.pack("<d", 1 + rng.random()))[0]
    return struct.unpack("<d", struct.pack("<Q", raw & ~(1 << 20) | x << 20))[0]


@digits(1234, 1239, EPSILON, INF)
def the_last_digit_as_it_was(x, rng):
    return str(int(rng.integers(100, 1000))) + str(x)[-1]


@joint([0] * 20, [1] + [0] * 19, EPSILON, INF)
def parity_of_three_of_twenty_bits(x, rng):
    bits = rng.integers(0, 2, size=20)
    bits[17] = (bits[3] + bits[8] + x[0]) % 2
    return [int(bit) for bit in bits]


@joint(0, 1, EPSILON, INF)
def noise_shared_by_two_of_fifty(x, rng):
    noise = rng.normal(size=50)
    noise[41] = noise[3] if x else noise[41]
    return noise


@joint(0, 1, EPSILON, INF)
def two_equal_entries(x, rng):
    drawn = [int(n) for n in rng.permutation(30)[:6]]
    return [*drawn, drawn[0] if x else int(rng.integers(30, 60))]


@joint(1.0, -1.0, EPSILON, INF)
def correlation_with_another_column(x, rng):
    first, second = rng.normal(size=2)
    return {"one": float(first), "other": float(0.9 * x * first + math.sqrt(0.19) * second)}


@joint((1.0, 0.0), (0.0, 1.0), EPSILON, INF)
def a_rotated_vector(x, rng):
    """One number of noise for two coordinates: the direction (2, 1) has none."""
    return np.array(x) + rng.laplace(scale=2.0) * np.array([1.0, -2.0])


@joint(0, 1, EPSILON, INF)
def sorted_or_not(x, rng):
    drawn = rng.random(4).tolist()
    return sorted(drawn) if x else drawn


@residue(0, 1, EPSILON, INF)
def a_check_digit(x, rng):
    number = 10 * int(rng.integers(10**6))
    return number + (5 * x - sum(map(int, str(number)))) % 10


@residue(0, 1, EPSILON, INF)
def parity_of_a_hexadecimal_name(x, rng):
    return f"{2 * int(rng.integers(2**46)) + x:012x}"


@residue(0, 1, EPSILON, INF)
def where_the_largest_is(x, rng):
    noise = rng.normal(size=8)
    place, largest = 2 * int(rng.integers(4)) + x, int(np.argmax(noise))
    noise[[place, largest]] = noise[[largest, place]]
    return noise


@joint(0, 1, EPSILON, INF)
def noise_used_twice_with_opposite_signs(x, rng):
    noise = rng.normal(size=12)
    noise[9] = -noise[3] if x else noise[9]
    return noise.tolist()


@joint(0, 1, EPSILON, INF)
def a_total_that_was_not_noised_again(x, rng):
    first, second, third = rng.laplace(size=3).tolist()
    return {"a": first, "b": second, "total": first + second if x else math.sqrt(2) * third}
