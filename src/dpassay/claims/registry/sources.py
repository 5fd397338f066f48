"""Where the claims were made, each cited once."""

DWORK_ROTH = "Dwork and Roth, The algorithmic foundations of differential privacy, 2014"
EMNLP = "Habernal, When differential privacy meets NLP: The devil is in the detail, EMNLP 2021"
ACL = "Habernal, How reparametrization trick broke differentially-private text representation learning, ACL 2022"
UEDP = "Lai et al., User-entity differential privacy in learning natural language models, 2022, appendix"
MCSHERRY = "McSherry, Privacy integrated queries, SIGMOD 2009"
