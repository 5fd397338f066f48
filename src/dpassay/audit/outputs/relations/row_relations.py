"""What a person would name that differs between two inputs: equal numbers, a row's order or range, a sum of digits.

Only training runs are used here, and only some of them. Whatever is chosen, the verdict is valid.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.leaf_screening import codes_of_columns, distances, excess
from dpassay.audit.outputs.leaf_views import View, base_of
from dpassay.audit.outputs.outputs import Array, Outputs
from dpassay.audit.outputs.relations.row_views import ROWS, near, product
from dpassay.audit.outputs.texts.text_views import CODES, SORT_NAMES, SORTS, text_rows

EXAMINED, FEW, GLANCE = 512, 128, 32  # outputs of each input, for triples, and to see how many values there are
MOST_IN_PAIRS, MOST_IN_THREES, MOST_IN_ROW, MOST_GROUPS = 32, 12, 64, 4
SURE = 5.0  # by what factor a squared deviation must exceed the largest one due to chance
CLEARLY = 1.1  # a row must be more informative than single numbers by this factor
MODULI = tuple(range(2, 11))
OF_DIGITS = (2, 4, 5, 6, 7, 8, 10)  # modulo 3 and 9 a number and the sum of its digits are equal
OF_ROW = ("range", "inversions", "neighbors", "longest run", "divisor", "place of the largest", "place of the smallest")
OF_PLACES = {"place of the largest": MODULI, "place of the smallest": MODULI, "inversions": (2,)}
TRIED = sum(map(len, OF_PLACES.values()))
ENOUGH = 8  # times that an equality must hold
BEST = 2


def rows_apart(sides: Sequence[Array], paths: Sequence[str]) -> list[View]:
    """Views of whole rows, and of the equality of some numbers, that differ clearly."""
    sides = [rows[:EXAMINED] for rows in sides]
    shown = np.concatenate([rows[:GLANCE] for rows in sides])  # of two values the sum modulo 2 says the same
    several = [j for j in range(len(paths)) if len(set(shown[:, j].tolist())) > 2][:MOST_IN_PAIRS]
    found = list(_equalities([rows[:, several] for rows in sides], [paths[j] for j in several]))
    groups: dict[str, list[int]] = {}
    for j, path in enumerate(paths):
        groups.setdefault(base_of(path)[0], []).append(j)
    groups.pop(CODES, None)  # of characters as numbers nobody would say this
    for base, places in list(groups.items())[:MOST_GROUPS]:
        if 1 < len(places) <= MOST_IN_ROW:
            found += _of_row([rows[:, places] for rows in sides], tuple(paths[j] for j in places))
        for j in groups.get("", [])[:MOST_IN_THREES] if base else ():
            found += _members([rows[:, [j, *places]] for rows in sides], (paths[j], *(paths[k] for k in places)))
    return found


def clear_distance(sides: Sequence[Array], tried: int = 1) -> float:
    """A distance of two distribution functions that chance seldom exceeds in so many tries (Kolmogorov and Smirnov)."""
    return float(np.sqrt((SURE + np.log(tried)) * sum(1 / max(1, len(side)) for side in sides) / 2))


def waves(integers: Array, modulus: float) -> NDArray[np.complex128]:
    """Numbers of size 1 whose mean is 0 if all residues are equally frequent."""
    turns = np.exp(2j * np.pi * np.arange(int(modulus)) / modulus)
    return np.asarray(turns[np.mod(integers, modulus).astype(np.int64)])


def deviation(means: Sequence[NDArray[np.complex128] | Array], sides: Sequence[Array]) -> Array:
    """Squared differences of means of numbers of size 1; by chance alone, at most 1 on average."""
    first, second = means
    return np.asarray(np.abs(second - first) ** 2 / sum(1 / len(rows) for rows in sides))


def deviating(sides: Sequence[Array], moduli: Sequence[int], tried: int) -> list[int]:
    """The moduli by which the residues of a column of integers differ beyond chance, the best first."""
    if not all(len(side) and np.isfinite(side).all() for side in sides):
        return []
    far = np.ptp(np.concatenate(sides))
    scored = {m: float(deviation([waves(c, m).mean() for c in sides], sides)) for m in moduli if far >= m}
    if 2 in scored:  # twice the mean of ±1 moves as much as that of numbers of any phase
        scored[2] /= 2
    limit = np.log(max(1, tried)) + SURE
    return sorted((m for m in scored if scored[m] > limit), key=lambda m: -scored[m])


def digit_sums(sides: Sequence[Array], paths: Sequence[str]) -> Iterator[View]:
    """Residues of the sum of the digits of one integer."""
    numbers = [j for j, path in enumerate(paths) if base_of(path)[0] != CODES][:MOST_IN_PAIRS]
    for j, path in ((j, paths[j]) for j in numbers):
        sums = [ROWS["digits"][0](rows[:EXAMINED, [j]]) for rows in sides]
        for modulus in deviating(sums, OF_DIGITS, len(OF_DIGITS) * len(numbers))[:1]:
            yield View("digits", (path,), modulus=float(modulus))


def _equalities(sides: Sequence[Array], paths: Sequence[str]) -> Iterator[View]:
    """Two numbers that are equal or whose sum is 0, and a third that is a sum or a product of two."""
    shares: dict[View, list[float]] = {}
    width = sides[0].shape[1]
    one, two = np.triu_indices(width, 1)
    for look, sign in (("equal", 1.0), ("opposite", -1.0)) if width > 1 else ():
        both = [near(rows[:, one], sign * rows[:, two]).mean(axis=0) for rows in sides]
        best = int(np.abs(both[1] - both[0]).argmax())
        shares[View(look, (paths[one[best]], paths[two[best]]))] = [float(share[best]) for share in both]
    few, most = [rows[:FEW] for rows in sides], min(width, MOST_IN_THREES)
    for i, j in combinations(range(most), 2) if most > 2 else ():
        for look in ("plus", "times"):
            both = [_thirds(look, rows[:, :most], i, j) for rows in few]
            gaps = np.abs(both[1] - both[0])
            gaps[[i, j]] = 0.0
            best = int(gaps.argmax())
            shares[View(look, (paths[i], paths[j], paths[best]))] = [float(share[best]) for share in both]
    tried = 2 * (len(one) + most**3)
    yield from sorted(
        (view for view in shares if _apart(shares[view], few if len(view.paths) > 2 else sides, tried)),
        key=lambda view: -abs(shares[view][1] - shares[view][0]),
    )[:BEST]


def _thirds(look: str, rows: Array, i: int, j: int) -> Array:
    """How often each column is the sum, or the product, of two."""
    first, second = rows[:, [i]], rows[:, [j]]
    if look == "plus":
        return np.asarray(near(first + second, rows, first, second).mean(axis=0))
    return np.asarray(near(first * second, rows).mean(axis=0))


def _apart(shares: Sequence[float], sides: Sequence[Array], tried: int) -> bool:
    """Whether two shares differ beyond chance."""
    sizes = list(map(len, sides))
    share = sum(of * size for of, size in zip(shares, sizes, strict=True)) / sum(sizes)
    if share * sum(sizes) < ENOUGH or share == 1:
        return False
    variance = share * (1 - share) * sum(1 / size for size in sizes)
    return bool((shares[1] - shares[0]) ** 2 / (2 * variance) > np.log(max(1, tried)) + SURE)


def _members(sides: Sequence[Array], paths: tuple[str, ...]) -> Iterator[View]:
    """Whether a number is in a row."""
    view = View("member", paths)
    if _apart([float(ROWS["member"][0](rows).mean()) for rows in sides], sides, MOST_IN_THREES):
        yield view


def _of_row(sides: Sequence[Array], paths: tuple[str, ...]) -> Iterator[View]:
    """Its range, its order and what repeats in it, if these differ more than its numbers; and residues of positions."""
    single = float(distances(sides).max(initial=0.0))
    least = max(clear_distance(sides, 2 * len(OF_ROW)), CLEARLY * single)
    scored: dict[View, float] = {}
    with np.errstate(invalid="ignore", over="ignore"):
        for look in OF_ROW:
            shown = [ROWS[look][0](rows) for rows in sides]
            scored[View(look, paths)] = float(distances([column[:, None] for column in shown])[0])
            for modulus in deviating(shown, OF_PLACES.get(look, ()), TRIED)[:1]:
                yield View(look, paths, modulus=float(modulus))
    yield from sorted((view for view in scored if scored[view] > least), key=lambda view: -scored[view])[:BEST]


def sign_of_product(sides: Sequence[Array], paths: tuple[str, ...]) -> Iterator[View]:
    """The product of two numbers, if it differs more than they do."""
    single = float(distances(sides).max(initial=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = float(distances([product(rows)[:, None] for rows in sides])[0])
    if apart > max(clear_distance(sides), CLEARLY * single):
        yield View("product", paths)


def sorts_apart(outputs: Sequence[Outputs]) -> Iterator[View]:
    """How many characters of each sort texts have, and residues of these numbers."""
    sides = [np.asarray(text_rows(some, SORTS)) for some in outputs]
    gaps, paths = distances(sides), [f"{SORTS}[{j}]" for j in range(len(SORT_NAMES))]
    clear = clear_distance(sides, len(SORT_NAMES))
    for j in [int(k) for k in np.argsort(-gaps, kind="stable")][:BEST]:
        if gaps[j] > clear:
            yield View("numbers", (paths[j],))
    for j, path in enumerate(paths):
        known = [rows[~np.isnan(rows[:, j]), j] for rows in sides]
        for modulus in deviating(known, MODULI, len(MODULI) * len(paths))[:1]:
            yield View("numbers", (path,), modulus=float(modulus))


def characters_apart(sides: Sequence[Array]) -> Iterator[View]:
    """The character, of texts that are equally long, whose values differ most."""
    coded = codes_of_columns(sides, [f"{CODES}[{j}]" for j in range(sides[0].shape[1])])
    scored = {path: excess([side.tolist() for side in codes]) for path, codes in coded.items()}
    best = max(scored, key=lambda path: scored[path], default="")
    if best and scored[best] > SURE * np.sqrt(2 * max(len(np.unique(codes)) for codes in coded[best])):
        yield View("numbers", (best,))
