"""Where the claims were made, each cited once, and where to read it."""

import re
from urllib.parse import quote_plus

DWORK_ROTH = "Dwork and Roth, The algorithmic foundations of differential privacy, 2014"
EMNLP = "Habernal, When differential privacy meets NLP: The devil is in the detail, EMNLP 2021"
ACL = "Habernal, How reparametrization trick broke differentially-private text representation learning, ACL 2022"
UEDP = "Lai et al., User-entity differential privacy in learning natural language models, 2022, appendix"
MCSHERRY = "McSherry, Privacy integrated queries, SIGMOD 2009"

ADDRESSES = {
    "ADePT: Auto-encoder based": "https://aclanthology.org/2021.eacl-main.207/",
    EMNLP: "https://arxiv.org/abs/2109.03175",
    ACL: "https://arxiv.org/abs/2202.12138",
    "InferDPT": "https://arxiv.org/abs/2310.12214",
}
SEARCH = "https://scholar.google.com/scholar?q="
CITATION = re.compile(r"[A-Z].*?\b(?:19|20)\d\d\b")


def paper_address(source: str) -> str:
    """Where to read the first paper that a source cites: its address if that is known, else a search; empty if none.

    >>> paper_address(f"the example of {EMNLP}, section 2"), paper_address(MCSHERRY)[-20:], paper_address("ours")
    ('https://arxiv.org/abs/2109.03175', 'eries%2C+SIGMOD+2009', '')
    """
    cited = CITATION.search(source)
    if cited is None:
        return ""
    known = (address for name, address in ADDRESSES.items() if name in cited[0])
    return next(known, SEARCH + quote_plus(cited[0]))
