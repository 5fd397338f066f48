"""Certificates that Coq checks: the verdict on one claim, with its own numbers, from the theorems in `proofs`.

`coq_file` writes a file for `coqc`. What is stated comes from the certificate's claim alone: the pipeline's text, the
numbers in it, the neighbors and the claimed epsilon. The proof names a theorem and leaves all numbers to Coq. Nothing
that is written here has to be trusted: a reader compares the statement with the claim, and Coq checks the rest.
"""

from dpassay.evidence.coq.claim import CertifiedClaim
from dpassay.evidence.coq.statements import statement
from dpassay.evidence.coq.terms import Unsupported
from dpassay.evidence.coq.writing import coq_file, coq_modules

__all__ = ["CertifiedClaim", "Unsupported", "coq_file", "coq_modules", "statement"]
