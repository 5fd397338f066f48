"""Which calls of which libraries draw random numbers, from which law, and which argument scales it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Draw:
    """How a call draws: the law, the places of its scale, center and size among the arguments, and the keywords.

    A place of -1 means that there is no such argument. `inverse` marks a rate, of which the scale is the inverse.
    """

    law: str
    scale: int = -1
    scale_words: tuple[str, ...] = ()
    centre: int = -1
    centre_words: tuple[str, ...] = ()
    size: int = -1
    size_words: tuple[str, ...] = ("size", "shape")
    inverse: bool = False
    variadic: bool = False  # every positional argument is a dimension
    like: bool = False  # the first argument gives the shape


def _numpy(law: str, scaled: bool = True) -> Draw:
    if not scaled:
        return Draw(law, size=0)
    return Draw(law, 1, ("scale",), 0, ("loc",), 2)


NUMPY: dict[str, Draw] = {
    "laplace": _numpy("laplace"),
    "normal": _numpy("gaussian"),
    "gumbel": _numpy("gumbel"),
    "logistic": _numpy("logistic"),
    "standard_normal": _numpy("gaussian", False),
    "standard_exponential": _numpy("exponential", False),
    "standard_cauchy": _numpy("cauchy", False),
    "exponential": Draw("exponential", 0, ("scale",), size=1),
    "gamma": Draw("gamma", 1, ("scale",), size=2),
    "uniform": Draw("uniform", size=2),
    "random": _numpy("uniform", False),
    "random_sample": _numpy("uniform", False),
    "rand": Draw("uniform", variadic=True),
    "randn": Draw("gaussian", variadic=True),
    "multivariate_normal": Draw("gaussian", 1, ("cov",), 0, ("mean",), 2),
    "geometric": Draw("geometric", size=1),
    "binomial": Draw("binomial", size=2),
    "poisson": Draw("poisson", size=1),
    "choice": Draw("choice", size=1),
    "integers": Draw("choice", size=2),
    "randint": Draw("choice", size=2),
    "permutation": Draw("shuffle"),
    "shuffle": Draw("shuffle"),
}
STANDARD: dict[str, Draw] = {
    "gauss": Draw("gaussian", 1, ("sigma",), 0, ("mu",)),
    "normalvariate": Draw("gaussian", 1, ("sigma",), 0, ("mu",)),
    "expovariate": Draw("exponential", 0, ("lambd",), inverse=True),
    "uniform": Draw("uniform"),
    "random": Draw("uniform"),
    "choice": Draw("choice"),
    "choices": Draw("choice"),
    "randint": Draw("choice"),
    "randrange": Draw("choice"),
    "sample": Draw("sample"),
    "shuffle": Draw("shuffle"),
    "getrandbits": Draw("uniform"),
}
TORCH: dict[str, Draw] = {
    "torch.randn": Draw("gaussian", variadic=True),
    "torch.randn_like": Draw("gaussian", like=True),
    "torch.rand": Draw("uniform", variadic=True),
    "torch.rand_like": Draw("uniform", like=True),
    "torch.normal": Draw("gaussian", 1, ("std",), 0, ("mean",), 2),
    "torch.bernoulli": Draw("choice", like=True),
    "torch.multinomial": Draw("choice"),
    "torch.randint": Draw("choice"),
    "torch.randperm": Draw("shuffle"),
    "torch.distributions.Laplace": Draw("laplace", 1, ("scale",), 0, ("loc",)),
    "torch.distributions.Normal": Draw("gaussian", 1, ("scale",), 0, ("loc",)),
    "torch.distributions.Exponential": Draw("exponential", 0, ("rate",), inverse=True),
    "torch.distributions.Gumbel": Draw("gumbel", 1, ("scale",), 0, ("loc",)),
    "torch.distributions.Uniform": Draw("uniform"),
}
IN_PLACE: dict[str, Draw] = {
    "normal_": Draw("gaussian", 1, ("std",), 0, ("mean",)),
    "exponential_": Draw("exponential", 0, ("lambd",), inverse=True),
    "uniform_": Draw("uniform"),
}
SCIPY: dict[str, Draw] = {
    "scipy.stats.laplace": Draw("laplace", 1, ("scale",), 0, ("loc",), 2),
    "scipy.stats.norm": Draw("gaussian", 1, ("scale",), 0, ("loc",), 2),
    "scipy.stats.expon": Draw("exponential", 1, ("scale",), 0, ("loc",), 2),
    "scipy.stats.uniform": Draw("uniform", size=2),
}
JAX: dict[str, Draw] = {
    "jax.random.normal": Draw("gaussian", size=1),
    "jax.random.laplace": Draw("laplace", size=1),
    "jax.random.uniform": Draw("uniform", size=1),
    "jax.random.exponential": Draw("exponential", size=1),
    "jax.random.gumbel": Draw("gumbel", size=1),
    "jax.random.bernoulli": Draw("choice", size=2),
    "jax.random.categorical": Draw("choice"),
    "tensorflow.random.normal": Draw("gaussian", 2, ("stddev",), 1, ("mean",), 0),
    "tensorflow.random.stateless_normal": Draw("gaussian", 3, ("stddev",), 2, ("mean",), 0),
    "tensorflow.random.uniform": Draw("uniform", size=0),
    "tensorflow.random.laplace": Draw("laplace", size=0),
}
# What draws by itself and calibrates itself: the inventory lists it, and rules look at what it is given.
CALIBRATED: dict[str, str] = {
    "then_laplace": "laplace",
    "make_laplace": "laplace",
    "then_gaussian": "gaussian",
    "make_gaussian": "gaussian",
    "then_geometric": "geometric",
    "make_base_laplace": "laplace",
    "make_base_gaussian": "gaussian",
}
DRAWING = {
    *NUMPY,
    *STANDARD,
    *IN_PLACE,
    *CALIBRATED,
    *(name.rpartition(".")[2] for name in (*TORCH, *JAX, *SCIPY)),
    "rvs",
    "rsample",
    "sample",
} - {"size", "choice", "sample", "shuffle", "permutation", "random", "uniform", "poisson"} | {
    "choice",
    "random",
    "uniform",
}
GENERATORS = {
    "numpy.random.default_rng",
    "numpy.random.RandomState",
    "numpy.random.Generator",
    "random.Random",
    "random.SystemRandom",
    "secrets.SystemRandom",
    "torch.Generator",
    "jax.random.PRNGKey",
    "jax.random.key",
    "numpy.random.PCG64",
    "numpy.random.Philox",
    "numpy.random.MT19937",
    "numpy.random.SeedSequence",
    "tensorflow.random.Generator.from_seed",
    "sklearn.utils.check_random_state",
}
GLOBAL_SEEDS = {
    "numpy.random.seed",
    "random.seed",
    "torch.manual_seed",
    "torch.cuda.manual_seed",
    "torch.cuda.manual_seed_all",
    "tensorflow.random.set_seed",
}
ALIASES = {  # how a name can be written, and how the tables call it
    "jax.numpy": "numpy",
    "autograd.numpy": "numpy",
    "cupy": "numpy",
    "tensorflow.compat.v1": "tensorflow",
    "tensorflow.compat.v2": "tensorflow",
    "torch.distributions.laplace.Laplace": "torch.distributions.Laplace",
    "torch.distributions.normal.Normal": "torch.distributions.Normal",
    "numpy.random.mtrand": "numpy.random",
}


def drawn(name: str) -> Draw | None:
    """How a library function draws, by its full name; None if it does not.

    >>> drawn("numpy.random.laplace").law, drawn("numpy.mean")
    ('laplace', None)
    """
    module, _, last = name.rpartition(".")
    if module == "numpy.random":
        return NUMPY.get(last)
    if module == "random":
        return STANDARD.get(last)
    if last == "rvs":
        return SCIPY.get(module)
    return TORCH.get(name) or JAX.get(name)


def drawn_by(method: str, certain: bool) -> Draw | None:
    """How a method of a generator draws; names that mean much else too only where the object is known to be one."""
    found = NUMPY.get(method) or STANDARD.get(method)
    if found is None or certain:
        return found
    return (
        found if method in ("laplace", "standard_normal", "gumbel", "normalvariate", "gauss", "expovariate") else None
    )


def canonical(name: str) -> str:
    """The name that the tables use for a dotted name."""
    for written, used in ALIASES.items():
        if name == written or name.startswith(written + "."):
            return used + name[len(written) :]
    return name
