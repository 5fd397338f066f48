"""DP-Prompt, DP-Paraphrase and DP-MLM: tokens drawn from the softmax of clipped logits."""

from functools import partial

from dpassay.claims.claim import Claim, System, Trial

DPPROMPT = (
    "Utpala, Hooker and Chen, Locally differentially private document generation using zero shot prompting, "
    "Findings of EMNLP 2023"
)
DPPARAPHRASE = (
    "Mattern, Weggenmann and Kerschbaum, The limits of word level differential privacy, Findings of NAACL 2022"
)
DPMLM = (
    "Meisenbacher, Chevli, Vladika and Matthes, DP-MLM: Differentially private text rewriting using masked language "
    "models, Findings of ACL 2024"
)
TOKENS = {"b1": -5, "b2": 5, "T": 1, "n": 100}
SMALL = {"dim": 3, "b1": -1, "b2": 1, "T": 2, "n": 1}
OPPOSITE = [([1.0, -1.0, -1.0], [-1.0, 1.0, 1.0])]
Variant = partial(
    Claim,
    pipeline="encode | clamp(b1, b2) | softmax(T) | times(n)",
    epsilon="2*n*(b2 - b1)/T",
    dim=32_128,
    parameters=TOKENS,
)

SYSTEM = System(
    name="dp-prompt",
    title="DP-Prompt, DP-Paraphrase and DP-MLM",
    what="A language model rewrites a text token by token. Each token is drawn from the softmax of its logits, clipped "
    "to [b1, b2], at temperature T.",
    reasoning=(
        "The softmax of clipped logits is the exponential mechanism with rate 1/T. The loss is at most 2*(b2 - b1)/T "
        "per token, whatever came before it, and n times that for n tokens: the claim holds, with little to spare "
        "for a large vocabulary. Without clipping, nothing bounds the loss of a token. With top-k sampling, on by "
        "default in common libraries, a token that one text can give is impossible for another."
    ),
    claims=(
        Variant(
            name="dp-prompt",
            title="DP-Prompt",
            source=DPPROMPT,
            brief="clipped logits",
            why="The loss of a token is at most 2*(b2 - b1)/T, and the losses of n tokens add up.",
            expected="proven",
            grid={"T": ("0.75", 1, "1.75"), "n": (1, 100)},
            trial=Trial(SMALL, pairs=OPPOSITE),
        ),
        Variant(
            name="dp-prompt-unclipped",
            title="DP-Prompt, as released",
            pipeline="encode | softmax(T) | times(n)",
            source=f"{DPPROMPT}; opensource_paraphrase_generation.py of its repository, where generate gets a "
            "temperature, top_k=0 and no limits of logits",
            brief="logits not clipped",
            why=(
                "The code draws from the softmax of the unclipped logits; nothing bounds how far apart the logits of "
                "two texts are."
            ),
            expected="refuted",
            remedies=("dp-prompt",),
            trial=Trial(SMALL, pairs=[([9.0, 0.0, 0.0], [0.0, 9.0, 0.0])]),
        ),
        Variant(
            name="dp-paraphrase",
            title="DP-Paraphrase",
            dim=50_257,
            source=DPPARAPHRASE,
            brief="clipped logits",
            why=(
                "The same, with GPT-2: the loss of a token is at most 2*(b2 - b1)/T, and the losses of n tokens add up."
            ),
            expected="proven",
            trial=Trial(SMALL, pairs=OPPOSITE),
        ),
        Variant(
            name="dp-paraphrase-top-k",
            title="DP-Paraphrase, top-k left on",
            pipeline="encode | clamp(b1, b2) | topk(k) | softmax(T) | times(n)",
            dim=50_257,
            parameters={**TOKENS, "k": 50},
            source=f"{DPPARAPHRASE}; its re-implementation in LLMDP.py of the DP-MLM repository samples by a "
            "text-generation pipeline without top_k, whose default is 50",
            brief="50 tokens possible",
            why="Only the 50 likeliest tokens can be drawn. Two texts can have none of them in common.",
            expected="refuted",
            remedies=("dp-paraphrase",),
            trial=Trial({**SMALL, "dim": 6, "k": 2}, pairs=[([1.0] * 2 + [-1.0] * 4, [-1.0] * 4 + [1.0] * 2)]),
        ),
        Variant(
            name="dp-mlm",
            title="DP-MLM",
            pipeline="encode | clamp(b1, b2) | softmax(2*(b2 - b1)/eps)",
            epsilon=100,
            dim=50_265,
            parameters={"b1": "-3.2093127", "b2": "16.304797887802124"},
            source=f"{DPMLM}; the limits of DPMLM.py in its repository, for RoBERTa",
            brief="per token",
            why="Each masked token is drawn from clipped logits at temperature 2*(b2 - b1)/eps: eps per token.",
            expected="proven",
            grid={"epsilon": (10, 25, 100, 250)},
            trial=Trial({"dim": 3, "epsilon": 2}, pairs=[([16.0, -3.0, -3.0], [-3.0, 16.0, 16.0])]),
        ),
    ),
)
