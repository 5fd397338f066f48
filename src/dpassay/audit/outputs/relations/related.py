"""Relations between the numbers of an output that differ between two inputs although no single number does.

Residues of integers, of their sums and differences, and of all integers together; parities of three; bits of the
exclusive or of two; how far numbers are from multiples of a power of ten; correlations of all pairs; repeated words or
entries. Texts are read as the numbers in them, as how often each word occurs and, if all are equally long, as the codes
of their characters. Only training runs are used here, and only some of them. Whatever is chosen, the verdict is valid.

All pairs of n columns take one product of matrices: the mean of e^(2πi(a + b)/m) shows whether a + b has other
residues modulo m, since it is 0 if all are equally frequent.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpassay.audit.outputs.leaf_screening import distances
from dpassay.audit.outputs.leaf_views import MOST_STEPS, Look, View, exclusive_or
from dpassay.audit.outputs.outputs import Array, Outputs, part
from dpassay.audit.outputs.relations.row_relations import (
    characters_apart,
    clear_distance,
    deviation,
    digit_sums,
    rows_apart,
    sign_of_product,
    sorts_apart,
    waves,
)
from dpassay.audit.outputs.texts.ngrams import code_points, count_path, each_once, how_often, words_in, words_of
from dpassay.audit.outputs.texts.text_views import (
    CHARACTERS,
    CODES,
    HEXADECIMAL,
    IN_TEXT,
    WORDS,
    repeats,
    rows_of_text,
    same_ends,
    text_rows,
)

EXAMINED = 512  # outputs of each input
FEW = 16  # columns: of one, this many times as many outputs are examined in the same time
MODULI = tuple(range(2, 11))
POWERS = tuple(float(1 << k) for k in range(4, 30))  # of two, for single integers
GRAINS = tuple(10.0**-k for k in range(7))
DIGITS = tuple(range(2, 10))  # multiples of the last digit of rounded numbers, whose residues are compared
NEARLY_WHOLE = 1e-6
MOST_PAIRED, MOST_IN_THREES, MOST_CORRELATED = 32, 32, 128  # columns
RARE = 0.05  # share of texts that have a word whose count is used
MOST_NUMBERS, MOST_BITS = 8, 30  # in a text, and of an integer
BEST = 2  # relations of each sort
SURE = 5.0  # by what factor a squared deviation must exceed the largest one due to chance
CLEARLY = 1.5  # how many times farther from chance a sum or difference must be than the numbers themselves
FEWEST_CORRELATED, NEARLY_ONE = 16, 1 - 1e-9
ENOUGH = 8  # exact multiples of a grain in the outputs of an input
AS_FAR = 0.6  # share of the largest deviation that is enough to prefer a coarser grain
EXACT, LARGEST = 2.0**53, 1e100  # integers that doubles represent, and numbers whose squares they do


def related_numbers(sides: Sequence[Array], paths: Sequence[str]) -> list[View]:
    """Relations of columns of numbers, one matrix for each of two inputs."""
    most = EXAMINED * max(1, FEW // max(1, sides[0].shape[1]))
    sides = [rows[:most, :MOST_CORRELATED] for rows in sides]
    both = np.concatenate(sides)
    if not len(sides[0]) or not len(sides[1]) or not both.shape[1]:
        return []
    with np.errstate(invalid="ignore", over="ignore"):
        known = (np.abs(both) < LARGEST).all(axis=0)
        span = np.where(known, both.max(axis=0) - both.min(axis=0), 0.0)
        whole = known & (both == np.rint(both)).all(axis=0) & (np.abs(both) < EXACT).all(axis=0)
    integers = np.flatnonzero(whole & (span > 0))
    fractions = np.flatnonzero(known & ~whole & (span > 0))
    found = []
    varied = np.flatnonzero(known & (span > 0))
    if len(varied):
        found += rows_apart([rows[:, varied] for rows in sides], [paths[j] for j in varied.tolist()])
    if len(integers):
        names = [paths[j] for j in integers.tolist()]
        found += _residues([rows[:, integers] for rows in sides], names, span[integers])
        found += digit_sums([rows[:, integers] for rows in sides], names)
    if len(fractions):
        names = [paths[j] for j in fractions.tolist()]
        found += _grains([rows[:, fractions] for rows in sides], names, span[fractions])
    if len(varied) > 1:
        found += _correlations([rows[:, varied] for rows in sides], [paths[j] for j in varied.tolist()])
    return found


def related_outputs(outputs: Sequence[Outputs]) -> list[View]:
    """Relations of whole outputs: repeated words or entries, equal ends, and the characters of a text."""
    some, found = [part(side, 0, EXAMINED) for side in outputs], []
    if min(map(len, some)) == 0:
        return []
    counted = [repeats(side) for side in some]
    if distances([column[:, None] for column in counted])[0] > clear_distance(counted):
        found.append(View("repeats", ("output",)))
    for what in (WORDS, CHARACTERS):
        ends = [same_ends(side, what) for side in some]
        if float(deviation([column.mean() for column in ends], ends)) > SURE:
            found.append(View("ends", (what,)))
    if any(side.numbers is None for side in some):
        found += [*sorts_apart(some), *_in_texts(some)]
        sums = [code_points(side)[:, None] for side in some]
        if all(np.ptp(column) > 0 for column in sums):
            deviations = {m: float(deviation([waves(column, m).mean() for column in sums], sums)) for m in MODULI}
            found += [
                View("code points", ("output",), modulus=float(m)) for m in _clear(deviations, len(deviations))[:1]
            ]
    return found


def _in_texts(outputs: Sequence[Outputs]) -> list[View]:
    """Relations of the first numbers in texts, of words' counts, and of the characters of texts equally long."""
    found = _of_words(outputs)
    for base, fewest, most in ((IN_TEXT, 1, MOST_NUMBERS), (HEXADECIMAL, 1, MOST_NUMBERS), (CODES, 3, MOST_PAIRED)):
        lengths = [rows_of_text(side, base) for side in outputs]
        each = np.concatenate(lengths)
        least = int(each[each > 0].min(initial=most + 1))
        if all(some.any() for some in lengths) and fewest <= least <= most and (base != CODES or each.max() == least):
            rows = [np.stack([row[:least] for row in text_rows(side, base) if len(row)]) for side in outputs]
            found += characters_apart(rows) if base == CODES else ()
            found += related_numbers(rows, [f"{base}[{j}]" for j in range(least)])
    return found


def _of_words(outputs: Sequence[Outputs]) -> list[View]:
    """Relations between the counts of common words that do not distinguish the inputs by themselves."""
    texts = [words_in(side) for side in outputs]
    if any(some.of is not texts[0].of for some in texts):
        texts = [words_of(side.texts()) for side in outputs]
    known, all_of_them = texts[0].of, sum(map(len, outputs))
    there = np.sum([np.bincount(each_once(some)[1], minlength=len(known)) for some in texts], axis=0)
    common = np.flatnonzero(there > RARE * all_of_them).tolist()
    nearest = sorted((abs(2 * int(there[number]) - all_of_them), known.words[number]) for number in common)
    words = sorted(word for _, word in nearest[:MOST_PAIRED])
    if not words:
        return []
    counts = [np.nan_to_num(how_often(some, words)) for some in texts]
    clear = np.sqrt((SURE + np.log(len(words))) * sum(1 / len(side) for side in outputs) / 2)
    alike = np.flatnonzero(distances(counts) <= clear)
    return related_numbers([rows[:, alike] for rows in counts], [count_path(words[j]) for j in alike.tolist()])


def _clear(deviations: dict[int, float], tried: int) -> list[int]:
    """The keys of deviations beyond those of chance, largest first."""
    limit = np.log(max(1, tried)) + SURE
    clear = [key for key, deviation in deviations.items() if deviation > limit]
    return sorted(clear, key=lambda key: -deviations[key])


def _residues(sides: Sequence[Array], paths: Sequence[str], span: Array) -> list[View]:
    """Residues of integers, of sums and differences of two, of the sum of all, and parities of three."""
    scored: dict[View, float] = {}
    width = len(paths)
    pairs = np.triu_indices(min(width, MOST_PAIRED), 1)
    tried = len(MODULI) * (width + 2 * len(pairs[0]) + 1)
    for modulus in MODULI:
        turned = [waves(rows, modulus) for rows in sides]
        for j in np.flatnonzero(span >= modulus).tolist():  # else the residue is the number itself
            scored[View("numbers", (paths[j],), modulus=modulus)] = float(
                deviation([side[:, j].mean() for side in turned], sides)
            )
        if width < 2:
            continue
        few = [side[:, :MOST_PAIRED] for side in turned]
        far = span[pairs[0]] + span[pairs[1]] >= modulus  # else the residue is the sum or the difference itself
        looks: tuple[tuple[Look, Any], ...] = (("sum", few), ("difference", [side.conj() for side in few]))
        for look, other in looks if far.any() else ():
            means = [(a.T @ b)[pairs] / len(a) for a, b in zip(few, other, strict=True)]
            gaps = np.where(far, deviation(means, sides), 0.0)
            best = int(gaps.argmax())
            names = paths[pairs[0][best]], paths[pairs[1][best]]
            scored[View(look, names, modulus=modulus)] = float(gaps[best])
        if width > 2:
            total = [side.prod(axis=1).mean() for side in turned]
            scored[View("sum", tuple(paths), modulus=modulus)] = float(deviation(total, sides))
    scored |= _low_bits(sides, paths, span) | _exclusive_or(sides, paths, span)
    limit = np.log(tried + len(scored)) + SURE
    found = sorted((view for view in scored if scored[view] > limit), key=lambda view: -scored[view])[:BEST]
    return found + (list(_parities(sides, paths)) if width > 2 else [])


def _low_bits(sides: Sequence[Array], paths: Sequence[str], span: Array) -> dict[View, float]:
    """Residues of single integers modulo larger powers of two: the information in one of their bits."""
    scored: dict[View, float] = {}
    for modulus in POWERS:
        wide = np.flatnonzero(span >= modulus)[:MOST_PAIRED]
        means = [np.exp(2j * np.pi / modulus * np.mod(rows[:, wide], modulus)).mean(axis=0) for rows in sides]
        for j, score in zip(wide.tolist(), deviation(means, sides).tolist(), strict=True):
            scored[View("numbers", (paths[j],), modulus=modulus)] = score
    return scored


def _exclusive_or(sides: Sequence[Array], paths: Sequence[str], span: Array) -> dict[View, float]:
    """Bits of the exclusive or of two integers, for each bit the best pair; and the parity of all bits of one."""
    scored: dict[View, float] = {}
    integers = [rows[:, :MOST_PAIRED].astype(np.int64) for rows in sides]
    for j in np.flatnonzero(span[:MOST_PAIRED] > 2).tolist():
        signs = [np.asarray(1.0 - 2.0 * exclusive_or(rows[:, [j]], 0.0)) for rows in sides]
        # Twice the mean of ±1 moves as much as that of numbers of any phase.
        scored[View("xor", (paths[j],))] = float(deviation([side.mean() for side in signs], signs)) / 2
    one, two = np.triu_indices(integers[0].shape[1], 1)
    highest = int(span[:MOST_PAIRED].max()).bit_length() if len(one) else 0
    for bit in range(1, min(highest, MOST_BITS)):
        signs = [np.asarray(1.0 - 2.0 * (rows >> bit & 1), dtype=float) for rows in integers]
        gaps = deviation([(side.T @ side)[one, two] / len(side) for side in signs], signs) / 2
        alone = deviation([side.mean(axis=0) for side in signs], signs) / 2
        best = int(gaps.argmax())
        if gaps[best] > CLEARLY * max(alone[one[best]], alone[two[best]]):
            scored[View("xor", (paths[one[best]], paths[two[best]]), modulus=float(1 << bit))] = float(gaps[best])
    return scored


def _parities(sides: Sequence[Array], paths: Sequence[str]) -> Iterator[View]:
    """The parity of three integers that differs most."""
    signs = [1.0 - 2.0 * np.mod(rows[:, :MOST_IN_THREES], 2) for rows in sides]
    width = signs[0].shape[1]
    one, two = np.triu_indices(width, 1)
    means = [(side[:, one] * side[:, two]).T @ side / len(side) for side in signs]
    gaps = deviation(means, sides)
    gaps[two[:, None] >= np.arange(width)[None, :]] = 0.0
    pair, third = divmod(int(gaps.argmax()), width)
    # Twice the mean of ±1 moves as much as that of numbers of any phase.
    if gaps[pair, third] > 2 * np.log(gaps.size) + SURE:
        yield View("sum", (paths[one[pair]], paths[two[pair]], paths[third]), modulus=2.0)


def _grains(sides: Sequence[Array], paths: Sequence[str], span: Array) -> list[View]:
    """Distances from multiples of powers of ten and, for numbers with few digits, of multiples of their last digit."""
    both = np.concatenate(sides)
    largest = np.abs(both).max(axis=0)
    scored: dict[View, float] = {}
    rounded: dict[int, float] = {}  # columns of multiples of a power of ten, the largest there is
    for grain in GRAINS:
        usable = np.flatnonzero((span > 4 * grain) & (largest < MOST_STEPS * grain))[:MOST_PAIRED]
        steps = both[:, usable] / grain
        whole = (np.abs(steps - np.rint(steps)) < NEARLY_WHOLE).all(axis=0)
        for j in usable[whole].tolist():
            rounded.setdefault(j, grain)
        _score(scored, sides, paths, usable, grain)
    for digit in DIGITS:
        for grain in set(rounded.values()):
            _score(scored, sides, paths, np.array([j for j in rounded if rounded[j] == grain]), digit * grain)
    limit = max(np.log(max(1, len(scored))) + SURE, AS_FAR * max(scored.values(), default=0.0))
    return [view for view in scored if scored[view] > limit][:1]  # the coarsest power of ten, if there is one


def _score(
    scored: dict[View, float], sides: Sequence[Array], paths: Sequence[str], usable: NDArray[Any], grain: float
) -> None:
    """Add how far the mean phases between two multiples of the grain are apart, or the shares of exact multiples, for
    some columns."""
    if not len(usable):
        return
    steps = [rows[:, usable] / grain for rows in sides]
    phases = deviation([np.exp(2j * np.pi * some).mean(axis=0) for some in steps], sides)
    multiples = [(np.abs(some - np.rint(some)) < NEARLY_WHOLE).mean(axis=0) for some in steps]
    share = sum(multiples) / 2
    often = share * min(map(len, sides)) >= ENOUGH
    # Twice its square, because that of a mean of phases has two parts.
    exact = np.where(often, deviation(multiples, sides) / np.maximum(2 * share * (1 - share), 1e-300), 0.0)
    for j, score in zip(usable.tolist(), np.maximum(phases, exact).tolist(), strict=True):
        scored[View("numbers", (paths[j],), modulus=grain)] = score


def _correlations(sides: Sequence[Array], paths: Sequence[str]) -> list[View]:
    """Pairs whose correlation, or the mean of whose sum or difference, differs between the inputs."""
    if min(map(len, sides)) < FEWEST_CORRELATED:
        return []
    one, two = np.triu_indices(len(paths), 1)
    sizes = sum(1 / (len(rows) - 3) for rows in sides)
    scale = np.concatenate(sides).std(axis=0).max() or 1.0
    centred = [(rows - rows.mean(axis=0)) / scale for rows in sides]
    covariances = [rows.T @ rows / len(rows) for rows in centred]
    together = (covariances[0] + covariances[1]) / 2
    variance, product = np.maximum(together.diagonal(), 1e-300), together[one, two]
    angles = [np.arctanh(np.clip(_correlation(some)[one, two], -NEARLY_ONE, NEARLY_ONE)) for some in covariances]
    apart = (angles[1] - angles[0]) ** 2 / sizes  # Fisher's transformation
    best = int(apart.argmax())
    scored = {View("numbers", (paths[one[best]], paths[two[best]])): float(apart[best])}
    pair = [rows[:EXAMINED, [one[best], two[best]]] for rows in sides]
    shift = (sides[1].mean(axis=0) - sides[0].mean(axis=0)) / scale
    alone = float((shift**2 / variance).max()) / sizes
    both = variance[one] + variance[two]
    for look, sign in (("difference", -1.0), ("sum", 1.0)):
        moved = (shift[one] + sign * shift[two]) ** 2 / np.maximum(both + 2 * sign * product, 1e-12 * both) / sizes
        best = int(moved.argmax())
        if moved[best] > CLEARLY * alone:
            scored[View(look, (paths[one[best]], paths[two[best]]))] = float(moved[best])
    limit = 2 * np.log(3 * len(one)) + 2 * SURE
    found = sorted((view for view in scored if scored[view] > limit), key=lambda view: -scored[view])[:BEST]
    return [*(sign_of_product(pair, next(iter(scored)).paths) if found else ()), *found]


def _correlation(covariance: Array) -> Array:
    spread = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    return np.asarray(covariance / spread[:, None] / spread)
