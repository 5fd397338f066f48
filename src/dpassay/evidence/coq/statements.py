"""Which theorem of `proofs` decides a claim, and the statement and proof for Coq."""

from collections.abc import Callable
from dataclasses import replace

from dpassay.evidence.coq.bits import binary, bloom, category, hashed, one_hot
from dpassay.evidence.coq.claim import CertifiedClaim, Proof, finite_verdict, theorem, verdict_theorem
from dpassay.evidence.coq.gaussian import gaussian
from dpassay.evidence.coq.scores import scores
from dpassay.evidence.coq.terms import CoqNumber, CoqStage, Unsupported


def statement(claim: CertifiedClaim) -> list[str]:
    """The lines that state and prove the verdict."""
    if claim.verdict not in ("proven", "refuted"):
        raise Unsupported("an open verdict states nothing that Coq could check")
    stages, steps = _one_step(_without_coding(claim))
    kind = tuple(stage.name for stage in stages)
    if claim.delta != 0 and kind not in _WITH_DELTA and kind[-1:] != ("leak",):
        raise _undecided(claim, kind)
    if kind and (kind[0] in _OWN_VALUES or kind[-1] == "onesided") and claim.neighbours not in ("any", "word"):
        raise Unsupported(f"neighbours {claim.neighbours} before {kind[-1]} cannot be written for Coq yet")
    if kind[:-1] in _SCORES and kind[-1:] in _CHOICES:
        return scores(claim, stages, steps)
    if kind in _FINITE:
        one = claim if steps is None else replace(claim, epsilon=claim.epsilon / steps)
        return finite_verdict(claim, _FINITE[kind](one, stages), steps)
    if kind not in _WRITERS or steps is not None:
        raise _undecided(claim, kind if steps is None else (*kind, "times"))
    return _WRITERS[kind](claim, stages)


def _undecided(claim: CertifiedClaim, kind: tuple[str, ...]) -> Unsupported:
    text = " | ".join(kind) or "nothing"
    return Unsupported(f"no theorem in proofs decides {text} at delta {float(claim.delta):g} yet")


def _one_step(stages: list[CoqStage]) -> tuple[list[CoqStage], int | None]:
    """What one step does, and how many steps there are if the pipeline says so."""
    if not stages or stages[-1].name != "times":
        return stages, None
    return stages[:-1], stages[-1].numbers[0].whole("the number of steps")


def _without_coding(claim: CertifiedClaim) -> list[CoqStage]:
    """The stages between the encoder, which may give any vector, and the decoder, which may preserve all it gets."""
    stages = list(claim.stages)
    last = stages.pop() if stages and stages[-1].name == "times" else None
    while stages and stages[-1].name == "decode":
        stages.pop()
    if len(stages) > 1 and stages[-1].name == "round" and stages[-2].name in _WHOLE_OUTPUTS:
        stages.pop()
    first = 1 if stages and stages[0].name == "dropout" else 0
    if len(stages) > first and stages[first].name == "encode":
        del stages[first]
    elif claim.neighbours == "word":
        raise Unsupported("neighbors that differ in one word need a pipeline with encode")
    return stages if last is None else [*stages, last]


# ── Laplace noise on a region or after a query ──────────────────────────────────────────────────


def _laplace(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    rounded = stages[-1].name == "round"
    noise = -2 if rounded else -1
    scale = stages[noise].numbers[0].text
    near, exact = _near(claim, stages[:noise])
    index = f"(I := {claim.index})"
    if stages[noise - 1].name == "repeat":
        copies = stages[noise - 1].numbers[0].whole("the number of copies")
        index = f"(I := [finType of index {copies} * {claim.index}])"
        near, exact = f"(copies (T := Z.to_nat {copies}) {near})", f"apply: exact_copies; [number | count | by {exact}]"
    proof = f"eapply {claim.verdict}_by; [by {exact} | number]"
    if rounded:
        says = f"rounded_private {index} {scale} {claim.eps} {near}"
        return verdict_theorem(claim, says, f"rewrite rounded_same; [{proof} | number].")
    lines = verdict_theorem(claim, f"laplace_private {index} {scale} {claim.eps} {near}", f"{proof}.")
    if claim.between is not None:
        low, high = (CoqNumber.of(end).text for end in claim.between)
        says = f"true_epsilon {index} {scale} {near}\n  {low}\n  {high}"
        lines += ["", *theorem("epsilon", says, f"eexists; split; [by {exact} | split; number].")]
    return lines


def _near(claim: CertifiedClaim, stages: list[CoqStage]) -> tuple[str, str]:
    """Which vectors are neighbors before the noise, and the proof of the exact epsilon."""
    first, dim = stages[0], claim.dim
    if first.name in ("query", "counts"):
        return _answers(claim, first)
    if first.name == "rows":
        low, high = (n.text for n in stages[1].numbers)
        return f"(rows {low} {high})", "apply: exact_rows; side"
    if first.name == "clip":
        region, exact = _ball(first)
    elif first.name == "clamp":
        region, exact = f"(in_cube {first.numbers[0].text} {first.numbers[1].text})", "exact_on_cube"
    else:
        region, exact = f"(@minmax ({claim.index}))", "exact_on_minmax"
    if first.name == "minmax" and dim < 2:
        raise Unsupported("min-max scaling of one coordinate has no pair of vectors")
    if claim.neighbours in ("any", "word"):
        return f"(both {region})", f"apply: {exact}; side"
    if claim.neighbours == "replace-record" and first.name in ("clip", "clamp"):
        return f"(record_replaced {region})", f"apply: exact_replaced; [number | by apply: {exact}; side]"
    raise Unsupported(f"neighbours {claim.neighbours} after {first.name} cannot be written for Coq yet")


def _answers(claim: CertifiedClaim, query: CoqStage) -> tuple[str, str]:
    """Answers to a query, or counts, whose distance counts as the largest whole number up to it."""
    if query.words[:1] != ("l1",):
        raise Unsupported(f"only {query.name}(l1, …) can be written for Coq")
    distance = query.numbers[0]
    near = f"(l1_near {distance.text})"
    if query.name == "query" and claim.single_step:
        return near, "apply: exact_for_l1_query; side"
    if query.name == "query" and claim.neighbours.startswith("group("):
        return f"(steps {near} (Z.to_nat {claim.neighbours[6:-1]}))", "apply: exact_for_group; side"
    if distance.exact is None or not claim.single_step:
        raise Unsupported("counts are written for Coq only at a rational distance, and only for one record")
    sides = "[number | count | lia | split; number]"
    return f"(counts_near {distance.text})", f"apply: (@exact_for_counts _ _ _ {int(distance.exact)}); {sides}"


def _ball(clip: CoqStage) -> tuple[str, str]:
    norm, radius = clip.words[0], clip.numbers[0].text
    if norm == "linf":
        return f"(in_cube (- {radius}) {radius})", "exact_on_cube"
    return f"(in_{norm} {radius})", f"exact_on_{norm}"


def _dropout(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    mu, scale = stages[0].numbers[0], stages[-1].numbers[0].text
    if mu.exact is None or claim.neighbours != "word" or claim.dim < 2:
        raise Unsupported("dropout can be written for Coq for neighbors that differ in one word, with a rational rate")
    kept = CoqNumber.of(1 - mu.exact).text
    amplified = "rewrite amplified_all" if mu.exact == 0 else "rewrite /amplified"
    says = f"dropped_private (I := {claim.index}) {scale} {kept} {claim.eps} (@minmax ({claim.index}))"
    exact = "rewrite dropped_on_minmax; [| number | split; number | count]"
    close = f"{amplified}; sizes; apply: Rlt_not_le; number." if claim.refuted else f"{amplified}; number."
    return verdict_theorem(claim, says, f"{exact}.", close)


def _one_sided(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    if claim.dim != 1 or not claim.refuted:
        raise Unsupported("one-sided noise can be written for Coq for one number, and only as refuted")
    low, high = (n.text for n in stages[0].numbers)
    scale, zero, lost = (*stages[1].numbers, *[CoqNumber.of(0)] * 2)[:3]
    says = f"one_sided_private {scale.text} {zero.text} {lost.text} {claim.eps} {low} {high}"
    return verdict_theorem(claim, says, "apply: one_sided_no_dp; number.")


# ── No noise, or none most of the time ──────────────────────────────────────────────────────────


def _leak(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    chance = stages[1].numbers[0].text
    lines = [f"Lemma p01 : 0 <= {chance} <= 1. Proof. split; number. Qed.", ""]
    if stages[0].name == "rows":
        if claim.refuted or claim.neighbours != "replace-record":
            raise Unsupported("rows that leak can be written for Coq only as proven, for a record replaced")
        says = f"@rows_private R _ p01 (Z.to_nat {claim.dim}) {claim.eps} {claim.allowed}"
        return lines + verdict_theorem(claim, says, "apply: rows_proven; number.")
    if stages[0].name == "category":
        values = stages[0].numbers[0].whole("the number of categories")
        kind, near, refuted = f"index {values}", "any_two", "apply: leak_refuted_names; [count | exact: p01 |"
    elif claim.dim == 1:
        kind, near = "R", f"(between {' '.join(n.text for n in stages[0].numbers)})"
        refuted = "apply: leak_refuted; [exact: p01 | number |"
    else:
        raise Unsupported("a leak can be written for Coq for one number, a category, or rows")
    if claim.neighbours != "any":
        raise Unsupported(f"neighbours {claim.neighbours} of a leak cannot be written for Coq yet")
    says = f"leak_private (X := {kind}) {chance} {claim.eps} {claim.allowed} {near}"
    proof = f"{refuted} number | number]." if claim.refuted else "apply: leak_upper; [exact: p01 | number | number]."
    return lines + verdict_theorem(claim, says, proof)


def _no_noise(claim: CertifiedClaim, stages: list[CoqStage]) -> list[str]:
    if not claim.refuted:
        raise Unsupported("a mechanism without noise can be written for Coq only as refuted")
    if claim.neighbours not in ("any", "replace-record"):
        raise Unsupported(f"neighbours {claim.neighbours} without noise cannot be written for Coq yet")
    low, high = (n.text for n in stages[0].numbers) if stages else ("0", "1")
    region = f"(in_cube (I := {claim.index}) {low} {high})" if stages else "(fun _ => True)"
    near = f"(record_replaced {region})" if claim.neighbours == "replace-record" else f"(both {region})"
    inside = "by move=> i; lra" if stages else "by []"
    pair = f"[split; {inside}"
    if claim.neighbours == "replace-record":
        pair = f"[exists (fun _ => 0), (fun _ => {high}), (fun _ => {low}); do 2!(split; first {inside})"
        pair += "; by split=> i; lra"
    says = f"fixed_private (fun x : {claim.index} -> R => x) {claim.eps} {claim.allowed} {near}"
    first = f"Definition first : {claim.index} := Ordinal (ltac:(apply/ltP; lia) : (0 < Z.to_nat {claim.dim})%nat)."
    proof = f"apply: (no_noise_refuted (x := fun _ => {high}) (y := fun _ => {low})); {pair} | | number]."
    return [first, "", *verdict_theorem(claim, says, proof, "by move=> /(congr1 (fun v => v first)) /=; lra.")]


# ── Which kind is written how ───────────────────────────────────────────────────────────────────

_Writer = Callable[[CertifiedClaim, list[CoqStage]], list[str]]
_WRITERS: dict[tuple[str, ...], _Writer] = {
    ("rows", "clamp", "laplace"): _laplace,
    ("dropout", "minmax", "laplace"): _dropout,
    ("clamp", "onesided"): _one_sided,
    ("hash", "flip"): hashed,
    ("bloom", "flip"): bloom,
    ("query", "gaussian"): gaussian,
    ("category", "leak"): _leak,
    ("rows", "leak"): _leak,
    ("clamp", "leak"): _leak,
    ("clamp",): _no_noise,
    (): _no_noise,
}
for _region in ("query", "counts", "clip", "clamp", "minmax"):
    for _copies in ((), ("repeat",)):
        _WRITERS[(_region, *_copies, "laplace")] = _laplace
        _WRITERS[(_region, *_copies, "laplace", "round")] = _laplace
# Mechanisms with finitely many outputs, which may be followed by times(n).
_FINITE: dict[tuple[str, ...], Callable[[CertifiedClaim, list[CoqStage]], Proof]] = {
    ("category", "flip"): category,
    ("onehot", "flip"): one_hot,
    ("onehot", "bits"): one_hot,
    ("binary", "flip"): binary,
    ("binary", "bits"): binary,
}
_SCORES = ((), ("clamp",), ("query",), ("clamp", "topk"))
_CHOICES = (("exponential",), ("softmax",))
_OWN_VALUES = ("category", "hash", "onehot", "bloom", "binary")  # of one input, not sums of records
_WITH_DELTA = (("category", "flip"), ("hash", "flip"), ("query", "gaussian"), ("clamp",), ())
_WHOLE_OUTPUTS = ("flip", "bits", "exponential", "softmax")  # which rounding leaves as they are
