"""Local privacy by hashing and unary encoding: RAPPOR, one bit, local hashing, SUE, OUE."""

from dpassay.claims.claim import Claim, System, Trial

WANG = "Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation, USENIX Sec. 2017"
EPSILONS = {"epsilon": ("0.1", 1, 5)}

SYSTEM = System(
    name="hashing",
    title="Hash-based local privacy",
    what="A value is hashed to a bit, to one of g cells or to a Bloom filter, or is written as one bit per category; "
    "then each bit or the cell is redrawn at random.",
    reasoning=(
        "Two values differ in few bits (two in a unary code, two for each hash of a Bloom filter) or in one cell, "
        "and the loss of each is that of randomized response. The hash function is public; two values that collide "
        "are only harder to distinguish."
    ),
    claims=(
        Claim(
            name="rappor",
            title="RAPPOR, permanent response",
            pipeline="bloom(k, h) | flip(1-f/2)",
            epsilon="2*h*ln((1-f/2)/(f/2))",
            parameters={"k": 128, "h": 2, "f": "0.5"},
            source="Erlingsson, Pihur and Korolova, RAPPOR, CCS 2014, Theorem 1",
            brief="2h bits can differ",
            why="h hashes set at most h bits, so two values differ in at most 2h bits, each kept with probability "
            "1-f/2.",
            expected="proven",
            grid={"f": ("0.25", "0.5", "0.75"), "h": (1, 2, 4)},
            trial=Trial({"k": 16}, [((0,), (1,)), ((0,), (3,)), ((1,), (2,))]),
        ),
        Claim(
            name="one-bit",
            title="One bit (Bassily and Smith)",
            pipeline="hash(2) | flip(exp(eps)/(1 + exp(eps)))",
            epsilon=1,
            source="Bassily and Smith, Local, private, efficient protocols for succinct histograms, STOC 2015",
            brief="randomized response",
            why="A public random function assigns a bit to each value; randomized response hides that bit.",
            expected="proven",
            grid=EPSILONS,
            trial=Trial(pairs=[((0,), (2,)), ((0,), (1,))]),
        ),
        Claim(
            name="local-hashing",
            title="Optimal local hashing",
            pipeline="hash(g) | flip(exp(eps)/(exp(eps) + g - 1))",
            epsilon=1,
            parameters={"g": 4},
            source=f"{WANG}; g is near e^eps + 1",
            brief="g-ary response on a hash",
            why="A public hash function maps a value to one of g cells; g-ary randomized response hides the cell.",
            expected="proven",
            grid={"epsilon": ("0.1", 1, 5), "g": (2, 4, 149)},
            trial=Trial(pairs=[((0,), (1,))]),
        ),
        Claim(
            name="sue",
            title="Symmetric unary encoding",
            pipeline="onehot(k) | flip(exp(eps/2)/(1 + exp(eps/2)))",
            epsilon=1,
            parameters={"k": 100},
            source=f"{WANG} (basic RAPPOR)",
            brief="two bits, eps/2 each",
            why="Two values differ in two bits, and each spends eps/2.",
            expected="proven",
            grid=EPSILONS,
            trial=Trial({"k": 3}),
        ),
        Claim(
            name="oue",
            title="Optimized unary encoding",
            pipeline="onehot(k) | bits(1/2, 1/2, 1/(1 + exp(eps)))",
            epsilon=1,
            parameters={"k": 100},
            source=WANG,
            brief="two bits, eps together",
            why="The likelihood ratio of the two bits that differ is at most e^eps for both together.",
            expected="proven",
            grid=EPSILONS,
            trial=Trial({"k": 3}),
        ),
    ),
)
