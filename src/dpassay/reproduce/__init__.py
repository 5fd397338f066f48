"""Every figure and table of the documents, reproduced: its name, its origin, and the function that makes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpassay.errors import InputError, did_you_mean
from dpassay.reproduce import adept, budgets, dpnr_accuracy, dptext, lecture, perplexity, sanity, tables, uedp
from dpassay.reproduce.result import FigureResult, ReproductionOptions


@dataclass(frozen=True)
class Reproduction:
    """One figure or table: what is shown, where it was published, and the function that makes it."""

    name: str
    shows: str
    source: str
    make: Callable[[ReproductionOptions], FigureResult]
    long: bool = False  # takes minutes: made only by name, not by `all`
    given: Mapping[str, Any] = field(default_factory=dict)  # what was given to be checked, if it is not published


EMNLP, ACL, LAI, LECTURE = "Habernal 2021", "Habernal 2022", "Lai et al. 2022", "lecture"
FIGURES: dict[str, Reproduction] = {
    figure.name: figure
    for figure in (
        Reproduction("adept-violations", "pairs beyond ADePT's bound", f"{EMNLP}, Figure 1", adept.violations),
        Reproduction("adept-sensitivity", "the balls and the worst pair", f"{EMNLP}, sections 4-5", adept.sensitivity),
        Reproduction("inverse-cdf", "right and wrong inverse", f"{ACL}, Figure 1", dptext.inverse_cdf),
        Reproduction("sampled-laplace", "what each reading draws", f"{ACL}, Figure 3", dptext.sampled_laplace),
        Reproduction("sanity-check", "the vote, sampled and exact", f"{ACL}, Figure 2", sanity.sanity_check),
        Reproduction("dpnr-budgets", "claimed and true budgets", f"{LAI}, appendix", budgets.dpnr_budgets),
        Reproduction(
            dpnr_accuracy.NAME, "accuracy by kind of noise", f"{LAI}, appendix", dpnr_accuracy.dpnr_accuracy, True
        ),
        Reproduction("binary-encoding", "per-bit losses, OME over λ", f"{LAI}, appendix", budgets.binary_encoding),
        Reproduction("uedp-budgets", "claimed and true budgets", f"{LAI}, Figure 4", uedp.uedp_budgets),
        Reproduction(
            perplexity.NAME, "perplexity at equal true ε", f"{LAI}, Figure 2", perplexity.uedp_perplexity, True
        ),
        Reproduction("likelihood-ratio", "two densities and their ratio", LECTURE, lecture.likelihood_ratio),
        Reproduction("loss-variable", "atoms, density, tail and δ", LECTURE, lecture.loss_variable),
        Reproduction("delta-extremes", "the chance that somebody leaks", LECTURE, lecture.delta_extremes),
        Reproduction("lecture-tables", "two algorithms run on a table", LECTURE, tables.lecture_tables),
        Reproduction("gaussian", "classic against exact σ", LECTURE, lecture.gaussian_noise),
        Reproduction("bayes", "prior against posterior", f"{EMNLP}, section 2; {ACL}, section 2", lecture.bayes),
    )
}


def find_figure(name: str) -> Reproduction:
    """A figure by its name.

    >>> find_figure("bayes").shows
    'prior against posterior'
    """
    if name in FIGURES:
        return FIGURES[name]
    hint = did_you_mean(name, FIGURES) or "."
    raise InputError(f"unknown figure {name[:60]!r}{hint} Known: {', '.join(FIGURES)}, or all")
