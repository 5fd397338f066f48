"""How the gallery orders its verdicts, and what it calls guarantees that are not stated by epsilon."""

from dpassay import GDP, ZCDP, Claim, RenyiDP, check
from dpassay.claims.registry import SYSTEMS
from dpassay.report.claims.gallery import by_system, cells, claimed, latex, markdown
from dpassay.report.pages.page import gallery_page


def judged(*claims: Claim):  # type: ignore[no-untyped-def]
    return [(claim, check(claim)) for claim in claims]


def test_refuted_claims_come_first_and_systems_stay_together() -> None:
    laplace, adept = SYSTEMS["laplace"].claims, SYSTEMS["adept"].claims
    found = by_system(judged(*laplace, adept[2], adept[0]))
    assert [title for title, _ in found] == ["ADePT", SYSTEMS["laplace"].title]
    assert [claim.name for claim, _ in found[0][1]] == ["adept", "adept-l1"]
    # A claim of one's own is of no system, even if it has a published claim's name.
    own = Claim("adept", "clip(l1, 1) | laplace(2)", epsilon=1, dim=2)
    assert [title for title, _ in by_system(judged(own))] == [""]
    page = gallery_page(judged(adept[2], adept[0], own), "dpassay gallery")
    assert page.index("ADePT</b>") < page.index("ADePT, clipped in l1</b>")
    table = markdown(judged(adept[2], adept[0])).splitlines()
    assert [row.split(" | ")[0] for row in table[2:]] == ["| adept", "| adept-l1"]
    assert latex(judged(laplace[0], adept[0])).count(r"\addlinespace") == 1


def test_what_is_claimed_in_few_letters() -> None:
    def shown(guarantee) -> str:  # type: ignore[no-untyped-def]
        return claimed(check("query(l2, 1) | gaussian(2)", guarantee=guarantee))

    assert shown(ZCDP("0.125")) == "ρ 0.125"
    assert shown(GDP("0.5")) == "μ 0.5"
    assert shown(RenyiDP(8, 1)) == "1, order 8"
    (madlib,) = judged(SYSTEMS["madlib"].claims[0])
    assert cells(*madlib)[1:4] == ("10 per l2", "10", "✓ proven")
