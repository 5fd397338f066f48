"""The exponential mechanism and softmax: one choice, or a sequence of choices each of which may depend on the past."""

from dpassay.evidence.coq.claim import CertifiedClaim, Proof, finite_verdict, verdict_theorem
from dpassay.evidence.coq.terms import CoqNumber, CoqStage, Unsupported


def scores(claim: CertifiedClaim, stages: list[CoqStage], steps: int | None) -> list[str]:
    """The verdict on a choice, or on a sequence of choices."""
    choice, before = stages[-1], stages[:-1]
    if claim.dim < 2:
        raise Unsupported("a choice of one output cannot be written for Coq")
    rate = choice.numbers[0]
    if choice.name == "softmax":
        rate = CoqNumber.of(1 / rate.exact) if rate.exact else CoqNumber(f"(1 / {rate.text})", None, 1 / rate.about)
    if before and before[-1].name == "topk":
        return _top(claim, before, rate, steps)
    mechanism = f"(exponential some {rate.text})"
    some = (f"Lemma some : (0 < #|{claim.index}|)%nat. Proof. count. Qed.",)
    if before and before[0].name == "query":
        if not claim.single_step:
            raise Unsupported("answers to a query for groups cannot be written for Coq yet")
        near, tactic = _query(claim, before[0])
    elif claim.neighbours != "any":
        raise Unsupported(f"neighbours {claim.neighbours} of scores cannot be written for Coq yet")
    elif before:
        near, tactic = _cube(claim, before[0])
    elif claim.refuted:
        near, tactic = "any_two", "apply: exponential_unbounded; side"
    else:
        raise Unsupported("scores without a bound can be written for Coq only as refuted")
    return finite_verdict(claim, Proof(near, mechanism, tactic, some), steps)


def _cube(claim: CertifiedClaim, clamp: CoqStage) -> tuple[str, str]:
    near = f"(cube_near {_interval(clamp)})"
    if claim.dim == 2:
        return near, f"apply: two_{claim.verdict}; [number | number | by rewrite card_ord | number]"
    return near, f"apply: cube_{claim.verdict}; number"


def _interval(clamp: CoqStage) -> str:
    """The lower limit of scores, and how far they can be above it."""
    low, high = clamp.numbers
    if low.about >= high.about:
        raise Unsupported("scores that are all equal cannot be written for Coq")
    if high.exact is None or low.exact is None:
        return f"{low.text} ({high.text} - {low.text})"
    return f"{low.text} {CoqNumber.of(high.exact - low.exact).text}"


def _query(claim: CertifiedClaim, query: CoqStage) -> tuple[str, str]:
    norm, distance = query.words[0], query.numbers[0].text
    if "monotone" in query.words:
        if norm != "linf":
            raise Unsupported("monotone scores can be written for Coq with query(linf, …, monotone) only")
        norm = "monotone"
    if norm == "l2" and claim.refuted:
        raise Unsupported("a refutation of scores whose changes are bounded in l2 cannot be written for Coq yet")
    near = {"linf": "linf_near", "monotone": "monotone_near", "l1": "l1_scores", "l2": "l2_scores"}[norm]
    by = f"{norm}_refuted" if claim.refuted else f"exponential_{norm}"
    return f"({near} {distance})", f"apply: {by}; side"


def _top(claim: CertifiedClaim, before: list[CoqStage], rate: CoqNumber, steps: int | None) -> list[str]:
    """Only the k best can be chosen: refuted, whatever the rule for ties."""
    top = before[-1].numbers[0].whole("the number of scores that are kept")
    if not claim.refuted or top >= claim.dim or len(before) != 2 or claim.neighbours != "any":
        raise Unsupported("topk can be written for Coq only after clamp, and only as refuted")
    lines = [f"Lemma some : (0 < Z.to_nat {top})%nat. Proof. count. Qed.", ""]
    near, mechanism = f"(cube_near {_interval(before[0])})", f"(top_choice {rate.text} some rule)"
    rule = f"forall (top : ({claim.index} -> R) -> {{set {claim.index}}}) (rule : top_rule (Z.to_nat {top}) top)"
    one = "apply: top_refuted; [by rewrite card_ord; apply/ltP; lia | number]"
    if steps is None:
        says, proof = f"dp {claim.eps} 0 {near} {mechanism}", [f"move=> top rule; {one}."]
    else:
        says = f"times_private {near} {mechanism} (Z.to_nat {steps}) {claim.eps} 0"
        each = CoqNumber.of(claim.epsilon / steps).text
        proof = [f"move=> top rule; apply: (times_refuted (e := {each})); [count | number | {one}]."]
    stated = verdict_theorem(claim, says, *proof)
    return [*lines, stated[0].replace("verdict : ~", f"verdict : {rule},\n  ~"), *stated[1:]]
