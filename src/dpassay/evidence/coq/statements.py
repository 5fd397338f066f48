"""Which theorem of `proofs` decides a claim, and the statement and proof for Coq."""

from collections.abc import Callable

from dpassay.evidence.coq.claim import Claim, theorem, verdict_theorem
from dpassay.evidence.coq.gaussian import gaussian
from dpassay.evidence.coq.terms import Stage, Term, Unsupported


def statement(claim: Claim) -> list[str]:
    """The lines that state and prove the verdict."""
    if claim.verdict not in ("proven", "refuted"):
        raise Unsupported("an open verdict states nothing that Coq could check")
    stages = _without_coding(claim)
    kind = tuple(stage.name for stage in stages)
    writer = _WRITERS.get(kind)
    if writer is None or (claim.delta != 0) > (kind in _WITH_DELTA):
        text = " | ".join(kind) or "nothing"
        raise Unsupported(f"no theorem in proofs decides {text} at delta {float(claim.delta):g} yet")
    if kind and (kind[0] in _OWN_VALUES or kind[-1] == "onesided") and claim.neighbours not in ("any", "word"):
        raise Unsupported(f"neighbours {claim.neighbours} before {kind[-1]} cannot be written for Coq yet")
    return writer(claim, stages)


def _without_coding(claim: Claim) -> list[Stage]:
    """The stages between the encoder, which may give any vector, and the decoder, which may preserve all it gets."""
    stages = list(claim.stages)
    after = ("decode",) if claim.refuted else ("decode", "round")
    while stages and stages[-1].name in after:
        stages.pop()
    first = 1 if stages and stages[0].name == "dropout" else 0
    if len(stages) > first and stages[first].name == "encode":
        del stages[first]
    elif claim.neighbours == "word":
        raise Unsupported("neighbours that differ in one word need a pipeline with encode")
    return stages


def _no(claim: Claim, why: str) -> None:
    if claim.refuted:
        raise Unsupported(f"a refutation of {why} cannot be written for Coq yet")


# ── Laplace noise on a region or after a query ──────────────────────────────────────────────────


def _laplace(claim: Claim, stages: list[Stage]) -> list[str]:
    scale = stages[-1].numbers[0].text
    near, exact = _near(claim, stages[:-1])
    index = f"(I := {claim.index})"
    if stages[-2].name == "repeat":
        copies = stages[-2].numbers[0].whole("the number of copies")
        index = f"(I := [finType of index {copies} * {claim.index}])"
        near, exact = f"(copies (T := Z.to_nat {copies}) {near})", f"apply: exact_copies; [number | count | by {exact}]"
    says = f"laplace_private {index} {scale} {claim.eps} {near}"
    by = "refuted_by" if claim.refuted else "proven_by"
    lines = verdict_theorem(claim, says, f"eapply {by}; [by {exact} | number].")
    if claim.between is not None:
        low, high = (Term.of(end).text for end in claim.between)
        says = f"true_epsilon {index} {scale} {near}\n  {low}\n  {high}"
        lines += ["", *theorem("epsilon", says, f"eexists; split; [by {exact} | split; number].")]
    return lines


def _near(claim: Claim, stages: list[Stage]) -> tuple[str, str]:
    """Which vectors are neighbours before the noise, and the proof of the exact epsilon."""
    first, dim = stages[0], claim.dim
    if first.name == "query":
        if claim.neighbours != "query" or first.words[:1] != ("l1",):
            raise Unsupported("only query(l1, …) can be written for Coq, and not for groups")
        return f"(l1_near {first.numbers[0].text})", "apply: exact_for_l1_query; side"
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


def _ball(clip: Stage) -> tuple[str, str]:
    norm, radius = clip.words[0], clip.numbers[0].text
    if norm == "linf":
        return f"(in_cube (- {radius}) {radius})", "exact_on_cube"
    return f"(in_{norm} {radius})", f"exact_on_{norm}"


def _counts(claim: Claim, stages: list[Stage]) -> list[str]:
    _no(claim, "noise on counts")
    if "(" in claim.neighbours:  # one of several steps: the counts of a group differ by more than those of one
        raise Unsupported(f"counts with neighbours {claim.neighbours} cannot be written for Coq yet")
    if stages[0].words[:1] != ("l1",):
        raise Unsupported("only counts(l1, …) can be written for Coq")
    distance, scale = stages[0].numbers[0].text, stages[1].numbers[0].text
    says = f"forall near : ({claim.index} -> R) -> ({claim.index} -> R) -> Prop,"
    says += f"\n  (forall x y, near x y -> l1 x y <= {distance}) -> laplace_private {scale} {claim.eps} near"
    return verdict_theorem(
        claim, says, f"by move=> near within; apply: (proven_within (D := {distance})); [number | | number]."
    )


def _dropout(claim: Claim, stages: list[Stage]) -> list[str]:
    mu, scale = stages[0].numbers[0], stages[-1].numbers[0].text
    if mu.exact is None or claim.neighbours != "word" or claim.dim < 2:
        raise Unsupported("dropout can be written for Coq for neighbours that differ in one word, with a rational rate")
    kept = Term.of(1 - mu.exact).text
    says = f"dropped_private (I := {claim.index}) {scale} {kept} {claim.eps} (@minmax ({claim.index}))"
    exact = "rewrite dropped_on_minmax; [| number | split; number | count]"
    close = "rewrite /amplified; sizes; apply: Rlt_not_le; number." if claim.refuted else "rewrite /amplified; number."
    return verdict_theorem(claim, says, f"{exact}.", close)


def _one_sided(claim: Claim, stages: list[Stage]) -> list[str]:
    if claim.dim != 1 or not claim.refuted:
        raise Unsupported("one-sided noise can be written for Coq for one number, and only as refuted")
    low, high = (n.text for n in stages[0].numbers)
    scale, zero, lost = (*stages[1].numbers, *[Term.of(0)] * 2)[:3]
    says = f"one_sided_private {scale.text} {zero.text} {lost.text} {claim.eps} {low} {high}"
    return verdict_theorem(claim, says, "apply: one_sided_no_dp; number.")


# ── Categories, bits, scores ────────────────────────────────────────────────────────────────────


def _category(claim: Claim, stages: list[Stage]) -> list[str]:
    size, keep = stages[0].numbers[0].whole("the number of categories"), stages[1].numbers[0]
    lines = [
        f"Lemma two : (1 < #|index {size}|)%nat. Proof. count. Qed.",
        f"Lemma p01 : 0 <= {keep.text} <= 1. Proof. split; number. Qed.",
        "",
    ]
    if claim.refuted and stages[0].name == "hash":
        raise Unsupported("a refutation behind a hash depends on the hash, and cannot be written for Coq yet")
    if claim.refuted and keep.exact == 1:
        says = f"dp {claim.eps} 0 any_two (response two p01)"
        return lines + verdict_theorem(claim, says, "by apply: response_certain; [count |].")
    if keep.about * size < 1 - 1e-12:
        raise Unsupported("a response that is a lie most of the time cannot be written for Coq yet")
    if claim.delta != 0:
        says = f"dp {claim.eps} {Term.of(claim.delta).text} any_two (response two p01)"
        return lines + verdict_theorem(claim, says, f"apply: response_delta_{claim.verdict}; number.")
    if claim.refuted:
        return lines + verdict_theorem(
            claim, f"dp {claim.eps} 0 any_two (response two p01)", "apply: response_refuted; number."
        )
    says = f"forall (X : Type) (hash : X -> index {size}), dp {claim.eps} 0 any_two (after_hash two p01 hash)"
    return lines + verdict_theorem(claim, says, "apply: response_proven; number.")


def _probabilities(**given: Term) -> list[str]:
    return [f"Lemma {name}01 : 0 < {p.text} < 1. Proof. split; number. Qed." for name, p in given.items()] + [""]


def _one_hot(claim: Claim, stages: list[Stage]) -> list[str]:
    _no(claim, "one-hot strings")
    size, numbers = stages[0].numbers[0].whole("the number of categories"), stages[1].numbers
    p, q = _two_probabilities(stages[1].name, numbers)
    says = f"dp {claim.eps} 0 any_two (fun j => equal_bits p01 q01 (one_hot (n := Z.to_nat {size}) j))"
    if stages[1].name == "flip":  # both bits cost the same
        half = Term.of(claim.epsilon / 2).text
        proof = f"apply: (@one_hot_proven _ _ _ _ _ _ {half} {half}); side."
    else:
        proof = "apply: one_hot_odds; side."
    return _probabilities(p=p, q=q) + verdict_theorem(claim, says, proof)


def _two_probabilities(kind: str, numbers: tuple[Term, ...]) -> tuple[Term, Term]:
    if kind == "flip":
        keep = numbers[0]
        other = Term.of(1 - keep.exact) if keep.exact is not None else Term(f"(1 - {keep.text})", None, 1 - keep.about)
        return keep, other
    if numbers[0] != numbers[1]:
        raise Unsupported("one-hot strings with probabilities that depend on the position cannot be written for Coq")
    return numbers[0], numbers[2]


def _bloom(claim: Claim, stages: list[Stage]) -> list[str]:
    _no(claim, "Bloom filters")
    size, hashes = (n.whole("the size of a Bloom filter") for n in stages[0].numbers)
    p, q = _two_probabilities("flip", stages[1].numbers)
    says = f"dp {claim.eps} 0 (sparse {hashes}) (equal_bits (n := Z.to_nat {size}) p01 q01)"
    proof = ["apply: sparse_bits; rewrite mult_INR /=."]
    proof += [f"have -> : {q.text} = 1 - {p.text} by field.", "rewrite symmetric_cost; number."]
    return _probabilities(p=p, q=q) + verdict_theorem(claim, says, *proof)


def _binary(claim: Claim, stages: list[Stage]) -> list[str]:
    integer, fraction = (n.whole("the number of bits") for n in stages[0].numbers)
    size = claim.dim * (1 + integer + fraction)
    if stages[1].name == "flip":
        p, q = _two_probabilities("flip", stages[1].numbers)
        even, odd = p, p
    else:
        even, odd, q = stages[1].numbers
    lines = _probabilities(even=even, odd=odd, q=q)
    says = f"dp {claim.eps} 0 any_two (parity_bits even01 odd01 q01 (n := Z.to_nat {size}))"
    if not claim.refuted:
        each = Term.of(claim.epsilon / size).text
        proof = f"apply: (@parity_proven _ _ _ _ _ _ _ _ {each}); "
        proof += "[by apply: (cost_le even01 q01); number | by apply: (cost_le odd01 q01); number | number]."
        return lines + verdict_theorem(claim, says, proof)
    if size % 2:
        raise Unsupported("an odd number of bits cannot be refuted for Coq yet")
    proof = f"eapply (@parity_refuted _ _ _ _ _ _ _ _ (Z.to_nat {size // 2})); [exact: (@double_Z {size // 2}) | "
    proof += f"exact: {_largest_cost(even, q)} | exact: {_largest_cost(odd, q)} | number]."
    return lines + verdict_theorem(claim, says, proof)


def _largest_cost(p: Term, q: Term) -> str:
    ratios = {
        "cost_ge_fall1": p.about / q.about,
        "cost_ge_rise1": q.about / p.about,
        "cost_ge_fall0": (1 - p.about) / (1 - q.about),
        "cost_ge_rise0": (1 - q.about) / (1 - p.about),
    }
    return max(ratios, key=lambda name: ratios[name])


def _scores(claim: Claim, stages: list[Stage]) -> list[str]:
    steps = stages[-1].numbers[0].whole("the number of steps") if stages[-1].name == "times" else None
    choice = stages[-1] if steps is None else stages[-2]
    rate = choice.numbers[0]
    if choice.name == "softmax":
        rate = Term.of(1 / rate.exact) if rate.exact else Term(f"(1 / {rate.text})", None, 1 / rate.about)
    lines = [f"Lemma some : (0 < #|{claim.index}|)%nat. Proof. count. Qed.", ""]
    if stages[0] is choice:
        if not claim.refuted or claim.dim < 2:
            raise Unsupported("scores without a bound can be written for Coq only as refuted")
        says = f"dp {claim.eps} 0 any_two (exponential some {rate.text})"
        return lines + verdict_theorem(claim, says, "apply: exponential_unbounded; side.")
    _no(claim, "the exponential mechanism on bounded scores")
    if stages[0].name == "query":
        near, by = _score_query(claim, stages[0])
        if steps is not None:
            raise Unsupported("repeated answers to a query cannot be written for Coq yet")
        says = f"dp {claim.eps} 0 {near} (exponential some {rate.text})"
        return lines + verdict_theorem(claim, says, f"apply: {by}; number.")
    if claim.neighbours != "any":
        raise Unsupported(f"neighbours {claim.neighbours} of scores cannot be written for Coq yet")
    low, high = stages[0].numbers
    width = _difference(high, low)
    count = f"Z.to_nat {1 if steps is None else steps}"
    says = f"dp {claim.eps} 0 (all_in_cube {low.text} {width}) (tokens some {rate.text} (n := {count}))"
    return lines + verdict_theorem(claim, says, "apply: tokens_proven; number.")


def _score_query(claim: Claim, query: Stage) -> tuple[str, str]:
    if claim.neighbours != "query" or query.words[0] != "linf":
        raise Unsupported("only query(linf, …) before a choice can be written for Coq, and not for groups")
    distance = query.numbers[0].text
    if "monotone" in query.words:
        return f"(monotone_near {distance})", "exponential_monotone"
    return f"(linf_near {distance})", "exponential_linf"


def _difference(high: Term, low: Term) -> str:
    if high.exact is None or low.exact is None:
        return f"({high.text} - {low.text})"
    return Term.of(high.exact - low.exact).text


def _no_noise(claim: Claim, stages: list[Stage]) -> list[str]:
    if not claim.refuted:
        raise Unsupported("a mechanism without noise can be written for Coq only as refuted")
    low, high = (n.text for n in stages[0].numbers) if stages else ("0", "1")
    region = f"(in_cube (I := {claim.index}) {low} {high})"
    near = f"(record_replaced {region})" if claim.neighbours == "replace-record" else f"(both {region})"
    if claim.neighbours not in ("any", "replace-record"):
        raise Unsupported(f"neighbours {claim.neighbours} without noise cannot be written for Coq yet")
    says = f"fixed_private (fun x : {claim.index} -> R => x) {claim.eps} 0 {near}"
    ends = f"(x := fun _ => {high}) (y := fun _ => {low})"
    show = f"(A := fun v => if Rlt_dec {low} (v first) then true else false)"
    pair = "by split=> i; lra"
    if claim.neighbours == "replace-record":
        pair = f"exists (fun _ => 0), (fun _ => {high}), (fun _ => {low})"
        pair += "; split=> [i|]; [lra | split=> [i|]; [lra | by split=> i; lra]]"
    first = f"Definition first : {claim.index} := Ordinal (ltac:(apply/ltP; lia) : (0 < Z.to_nat {claim.dim})%nat)."
    proof = f"apply: (no_noise_refuted {show} {ends}); [{pair} | lra | |]; rewrite /=; case: Rlt_dec => // ?; lra."
    return [first, "", *verdict_theorem(claim, says, proof)]


_WRITERS: dict[tuple[str, ...], Callable[[Claim, list[Stage]], list[str]]] = {
    ("rows", "clamp", "laplace"): _laplace,
    ("counts", "laplace"): _counts,
    ("dropout", "minmax", "laplace"): _dropout,
    ("clamp", "onesided"): _one_sided,
    ("category", "flip"): _category,
    ("hash", "flip"): _category,
    ("onehot", "flip"): _one_hot,
    ("onehot", "bits"): _one_hot,
    ("bloom", "flip"): _bloom,
    ("binary", "flip"): _binary,
    ("binary", "bits"): _binary,
    ("query", "gaussian"): gaussian,
    ("clamp",): _no_noise,
    (): _no_noise,
}
_OWN_VALUES = ("category", "hash", "onehot", "bloom", "binary")  # of one input, not sums of records
_WITH_DELTA = (("category", "flip"), ("query", "gaussian"))
for _region in ("query", "clip", "clamp", "minmax"):
    _WRITERS[(_region, "laplace")] = _laplace
    _WRITERS[(_region, "repeat", "laplace")] = _laplace
for _choice in ("exponential", "softmax"):
    for _before in ((), ("clamp",), ("query",)):
        _WRITERS[(*_before, _choice)] = _scores
        _WRITERS[(*_before, _choice, "times")] = _scores
