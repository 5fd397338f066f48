"""Re-checks certificates with its own arithmetic: it imports none of the modules that make them.

See docs/certificate.md for the format, what is checked, and what a check cannot show. The modules:

- reading.py, text.py: the fields of a step, and the text of a pipeline
- replay.py: the steps, one by one; premises.py: what each theorem needs, by theorem
- lowers.py, witness.py: how much of a pair's loss survives the stages after the noise, and events
- regions/: sets and pairs of vectors, what each stage makes of them, and sums of records
- noises/: what is known of each noise, listed by theorem in known_noises.py
- sampling/: records that are sampled, and repeated steps
- guarantees/: Rényi DP, zCDP and Gaussian DP of a loss, and losses per unit of distance
- words/: certificates about mechanisms that replace words
- arithmetic/: certified values of δ(ε), and how much work a certificate may take, whatever is in it

A new stage needs an entry in text.py and one in regions/rules.py, and in regions/pairs.py if pairs go through it; a new
noise one in text.py and one in noises/known_noises.py.
"""

from pathlib import Path
from typing import Any

from dpassay.errors import CertificateError
from dpassay.evidence.verifier.arithmetic.work import limited
from dpassay.evidence.verifier.reading import chained, load, read_step
from dpassay.evidence.verifier.replay import Model, replay
from dpassay.evidence.verifier.words.certificates import check_words, load_words
from dpassay.values import dataclass


@dataclass(frozen=True)
class Verification:
    """What was found in a certificate or a saved audit: a sentence for each step that holds or does not."""

    verdict: str
    claim: str
    established: tuple[str, ...]
    failures: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every step holds."""
        return not self.failures


class NotHolding(CertificateError):
    """A certificate that can be read but is not valid; `failures` has all reasons, the message the first."""

    def __init__(self, failures: tuple[str, ...]) -> None:
        super().__init__(failures[0])
        self.failures = failures


def examine(source: str | Path | dict[str, Any], vocabulary: str | Path | None = None) -> Verification:
    """Re-check a certificate and report, whether it holds or not. An unreadable one raises an InputError."""
    with limited():  # reading it is work too
        if (about_words := load_words(source)) is not None:
            return _examine_words(about_words, vocabulary)
        certificate = load(source)
        established, failures = replay(certificate)
    return Verification(certificate.verdict, certificate.steps[0].name, tuple(established), tuple(failures))


def _examine_words(data: dict[str, Any], vocabulary: str | Path | None) -> Verification:
    claim = data.get("claim")
    name = str(claim.get("mechanism", "")) if isinstance(claim, dict) else ""
    try:
        established = check_words(data, vocabulary)
    except CertificateError as error:
        return Verification(str(data.get("verdict")), name, (), (str(error),))
    return Verification(data["verdict"], name, tuple(established))


def verify(source: str | Path | dict[str, Any], vocabulary: str | Path | None = None) -> Verification:
    """Re-check a certificate, given as a file or as data. Raises CertificateError if it does not hold.

    A certificate about words also needs the vocabulary file.

    >>> from dpassay import certify, check
    >>> found = verify(certify(check("clip(l2, C) | laplace(2*C/eps)", epsilon=1, dim=32, C=1)))
    >>> found.verdict, found.ok, found.established[-1]
    ('refuted', True, 'step 11 (decision): the claim is refuted')
    """
    found = examine(source, vocabulary)
    if not found.ok:
        raise NotHolding(found.failures)
    return found


__all__ = ["Model", "NotHolding", "Verification", "chained", "examine", "read_step", "verify"]
