"""Small modules with labels: each wrong one names its rule and marks the line with `# here`; right ones have none.

They were written in styles that differ from the rules' own examples: torch, scipy, jax, pandas, classes, helpers.
"""

WRONG: dict[str, tuple[str, str]] = {
    "seed-in-constructor": (
        "seed-fixed",
        """
import numpy as np

class LaplaceMechanism:
    '''Satisfies epsilon-differential privacy.'''
    def __init__(self, epsilon, sensitivity):
        self.epsilon, self.sensitivity = epsilon, sensitivity
        self.rng = np.random.RandomState(1234)  # here

    def release(self, value):
        return value + self.rng.laplace(0.0, self.sensitivity / self.epsilon)
""",
    ),
    "seed-torch": (
        "seed-fixed",
        """
import torch

def noisy_gradient(grad, clip_norm, noise_multiplier):
    torch.manual_seed(0)  # here
    return grad + torch.randn_like(grad) * noise_multiplier * clip_norm
""",
    ),
    "seed-constant": (
        "seed-fixed",
        """
import random
SEED = 7

def dp_count(records, epsilon):
    random.seed(SEED)  # here
    u = random.random() - 0.5
    import math
    noise = -(1 / epsilon) * math.copysign(1, u) * math.log(1 - 2 * abs(u))
    return len(records) + noise
""",
    ),
    "seed-jax": (
        "seed-fixed",
        """
import jax

def privatize(x, sensitivity, epsilon):
    key = jax.random.PRNGKey(0)  # here
    return x + jax.random.laplace(key, x.shape) * sensitivity / epsilon
""",
    ),
    "seed-at-import": (
        "seed-fixed",
        """
import numpy as np
np.random.seed(0)  # here

def private_sum(values, bound, epsilon):
    return np.clip(values, 0, bound).sum() + np.random.laplace(0, bound / epsilon)
""",
    ),
    "seed-default-class": (
        "seed-default",
        """
import numpy as np
from dataclasses import dataclass

@dataclass
class Config:
    epsilon: float = 1.0
    sensitivity: float = 1.0
    seed: int = 42

class Privatizer:
    '''Local differential privacy for numbers.'''
    def __init__(self, config=None):
        self.config = config or Config()
        self.rng = np.random.default_rng(self.config.seed)  # here

    def privatize(self, value):
        return value + self.rng.laplace(0, self.config.sensitivity / self.config.epsilon)
""",
    ),
    "seed-of-text": (
        "seed-from-data",
        """
import numpy as np

def perturb(embedding, text, sensitivity, epsilon):
    rng = np.random.default_rng(abs(hash(text)) % 2**32)  # here
    return embedding + rng.laplace(0, sensitivity / epsilon, size=embedding.shape)
""",
    ),
    "noise-at-import": (
        "noise-drawn-once",
        """
import numpy as np
EPSILON = 1.0
NOISE = np.random.laplace(0, 1 / EPSILON)  # here

def private_count(rows, epsilon):
    return len(rows) + NOISE
""",
    ),
    "noise-as-default": (
        "noise-drawn-once",
        """
import numpy as np

def privatize(value, epsilon, noise=np.random.laplace(0, 1.0)):  # here
    return value + noise / epsilon
""",
    ),
    "inverted-torch": (
        "scale-inverted",
        """
import torch

def add_laplace(x, sensitivity, epsilon):
    noise = torch.distributions.Laplace(0.0, epsilon / sensitivity).sample(x.shape)  # here
    return x + noise
""",
    ),
    "inverted-by-helper": (
        "scale-inverted",
        """
import numpy as np

def _noise(scale, size):
    return np.random.laplace(loc=0.0, scale=scale, size=size)

def privatize(vector, sensitivity, eps):
    return vector + _noise(sensitivity * eps, len(vector))  # here
""",
    ),
    "inverted-rate": (
        "scale-inverted",
        """
import random

def privatize(count, epsilon):
    '''epsilon-differentially private count'''
    return count + random.expovariate(1 / epsilon) - random.expovariate(1 / epsilon)  # here
""",
    ),
    "sensitivity-unused-class": (
        "sensitivity-missing",
        """
import numpy as np

def privatize(gradient, epsilon, delta, clip_norm):
    if epsilon >= 1:
        raise ValueError
    gradient = np.clip(gradient, -clip_norm, clip_norm)
    sigma = np.sqrt(2 * np.log(1.25 / delta)) / epsilon  # here
    return gradient + np.random.normal(0, sigma, gradient.shape)
""",
    ),
    "unbounded-sum": (
        "sensitivity-missing",
        """
import numpy as np

def dp_total(salaries, epsilon):
    '''Differentially private total.'''
    return np.sum(salaries) + np.random.laplace(0, 1 / epsilon)  # here
""",
    ),
    "sigma-squared": (
        "variance-for-deviation",
        """
import numpy as np

def dp_noise(update, sigma, clip):
    '''Gaussian mechanism for differential privacy.'''
    return update + np.random.normal(0, sigma ** 2, size=update.shape)  # here
""",
    ),
    "covariance": (
        "variance-for-deviation",
        """
import numpy as np

def dp_vector(vector, sigma, dim):
    '''Gaussian mechanism for differential privacy.'''
    return vector + np.random.multivariate_normal(np.zeros(dim), sigma * np.eye(dim))  # here
""",
    ),
    "classic-method": (
        "gaussian-epsilon-range",
        """
import math
import torch

class GaussianNoise:
    def __init__(self, epsilon, delta, l2_sensitivity):
        self.sigma = l2_sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon  # here

    def __call__(self, tensor):
        return tensor + torch.normal(0.0, self.sigma, size=tensor.shape)
""",
    ),
    "classic-returned": (
        "gaussian-epsilon-range",
        """
from math import log, sqrt

def gaussian_sigma(sensitivity: float, epsilon: float, delta: float) -> float:
    '''Standard deviation of the Gaussian mechanism.'''
    return sensitivity * sqrt(2.0 * log(1.25 / delta)) / epsilon  # here
""",
    ),
    "gaussian-pure": (
        "gaussian-without-delta",
        """
import random

def private_value(value, sensitivity, epsilon):
    '''epsilon-DP release.'''
    sigma = sensitivity / epsilon  # here
    return value + random.gauss(0, sigma)
""",
    ),
    "norm-torch": (
        "wrong-norm",
        """
import torch

def privatize(embedding, C, epsilon):
    norm = torch.norm(embedding, p=2)
    clipped = embedding / max(1.0, norm / C)
    noise = torch.distributions.Laplace(0.0, 2 * C / epsilon).sample(embedding.shape)  # here
    return clipped + noise
""",
    ),
    "norm-in-if": (
        "wrong-norm",
        """
import numpy as np

def privatize(vec, clip, epsilon):
    n = np.linalg.norm(vec)
    if n > clip:
        vec = vec * clip / n
    return vec + np.random.laplace(0, 2 * clip / epsilon, len(vec))  # here
""",
    ),
    "mean-noise-on-sum": (
        "scale-divided-by-n",
        """
import numpy as np

def private_total(values, upper, epsilon):
    clipped = np.clip(values, 0, upper)
    scale = upper / (len(values) * epsilon)  # here
    return clipped.sum() + np.random.laplace(0, scale)
""",
    ),
    "tenth": (
        "scale-shrunk",
        """
import numpy as np
FACTOR = 0.05

def privatize(x, sensitivity, epsilon):
    scale = FACTOR * sensitivity / epsilon  # here
    return x + np.random.laplace(0, scale)
""",
    ),
    "local-sensitivity": (
        "scale-from-data",
        """
import pandas as pd
import numpy as np

def private_mean(df: pd.DataFrame, column, epsilon):
    values = df[column]
    sensitivity = (values.max() - values.min()) / len(values)
    return values.mean() + np.random.laplace(0, sensitivity / epsilon)  # here
""",
    ),
    "scale-by-std": (
        "scale-from-data",
        """
import torch

def privatize(x, epsilon):
    '''Differentially private activations.'''
    scale = x.std() / epsilon
    return x + torch.randn_like(x) * scale  # here
""",
    ),
    "shared-in-comprehension": (
        "shared-noise",
        """
import random

def privatize(values, sensitivity, epsilon):
    noise = random.expovariate(epsilon / sensitivity) - random.expovariate(epsilon / sensitivity)
    return [value + noise for value in values]  # here
""",
    ),
    "shared-torch": (
        "shared-noise",
        """
import torch

def privatize(hidden: torch.Tensor, sensitivity: float, epsilon: float):
    noise = torch.distributions.Laplace(0.0, sensitivity / epsilon).sample()
    return hidden + noise  # here
""",
    ),
    "exponential-noise": (
        "one-sided-noise",
        """
import numpy as np

def privatize(value, sensitivity, epsilon):
    return value + np.random.exponential(sensitivity / epsilon)  # here
""",
    ),
    "uniform-noise": (
        "bounded-noise",
        """
import random

def privatize(age, epsilon):
    '''Differential privacy for an age.'''
    noise = random.uniform(-1.0, 1.0) / epsilon
    return age + noise  # here
""",
    ),
    "clip-to-own-range": (
        "bounds-from-data",
        """
import numpy as np

def dp_mean(data, epsilon):
    '''Differentially private mean.'''
    lower, upper = data.min(), data.max()
    clipped = np.clip(data, lower, upper)  # here
    return clipped.mean() + np.random.laplace(0, 1 / epsilon)
""",
    ),
    "value-counts": (
        "domain-from-data",
        """
import numpy as np

def dp_counts(series, epsilon):
    '''Differentially private counts.'''
    counts = series.value_counts()
    return counts + np.random.laplace(0, 1 / epsilon, size=len(counts))  # here
""",
    ),
    "set-of-words": (
        "domain-from-data",
        """
import numpy as np

def dp_frequencies(words, epsilon):
    '''Differentially private word frequencies.'''
    noisy = {}
    for word in set(words):
        noisy[word] = words.count(word) + np.random.laplace(0, 1 / epsilon)  # here
    return noisy
""",
    ),
    "clip-after": (
        "noise-before-clipping",
        """
import torch

def privatize(x, clip_value, epsilon):
    noise = torch.distributions.Laplace(0.0, 2 * clip_value / epsilon).sample(x.shape)
    y = x + noise
    return torch.clamp(y, -clip_value, clip_value)  # here
""",
    ),
    "rescaled-by-data": (
        "raw-after-noise",
        """
import numpy as np

def privatize(vector, epsilon, sensitivity):
    '''Differentially private vector.'''
    noisy = vector + np.random.laplace(0, sensitivity / epsilon, vector.shape)
    return noisy * np.max(vector)  # here
""",
    ),
    "dict-with-exact": (
        "exact-beside-noisy",
        """
import numpy as np

def report(values, upper, epsilon):
    noisy = np.clip(values, 0, upper).sum() + np.random.laplace(0, upper / epsilon)
    return {"sum": noisy, "max": np.max(values)}  # here
""",
    ),
    "raw-if-it-fails": (
        "raw-on-error",
        """
import numpy as np

class Privatizer:
    '''Local differential privacy.'''
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def privatize(self, x):
        try:
            noisy = x + np.random.laplace(0, 1 / self.epsilon, x.shape)
        except ValueError:
            return x  # here
        return noisy
""",
    ),
    "unknown-word": (
        "raw-returned",
        """
import numpy as np

def replace_word(word, vectors, epsilon):
    '''Metric differential privacy for a word.'''
    if word not in vectors:
        return word  # here
    noisy = vectors[word] + np.random.laplace(0, 1 / epsilon, 50)
    return nearest(noisy, vectors)
""",
    ),
    "both-whole": (
        "budget-twice",
        """
import numpy as np

def dp_mean(values, upper, epsilon):
    '''epsilon-DP mean.'''
    clipped = np.clip(values, 0, upper)
    noisy_sum = clipped.sum() + np.random.laplace(scale=upper / epsilon)
    noisy_count = (values >= 0).sum() + np.random.laplace(scale=1 / epsilon)  # here
    return noisy_sum / noisy_count
""",
    ),
    "every-column": (
        "budget-twice",
        """
import numpy as np

def private_means(data, bound, epsilon):
    '''epsilon-DP column sums.'''
    out = []
    for column in data.columns:
        total = np.clip(data[column], 0, bound).sum()
        out.append(total + np.random.laplace(0, bound / epsilon))  # here
    return out
""",
    ),
    "overflow-caught": (
        "accountant-overflow",
        """
import math

def delta_of(epsilon, mu, cdf):
    '''delta of Gaussian differential privacy'''
    try:
        return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)
    except OverflowError:
        return 0.0  # here
""",
    ),
    "steps-minus-one": (
        "accountant-drops-step",
        """
def total_rdp(rdp_step, steps):
    '''Rényi differential privacy of all steps'''
    return (steps - 1) * rdp_step  # here
""",
    ),
    "history-tail": (
        "accountant-drops-step",
        """
class Accountant:
    '''Privacy accountant'''
    def total_epsilon(self):
        return sum(self.spent_epsilons[1:])  # here
""",
    ),
    "bloom-bits": (
        "bit-never-reset",
        """
import numpy as np

class Rappor:
    '''Local differential privacy.'''
    def __init__(self, f):
        self.f = f

    def perturb(self, bits):
        for i in range(len(bits)):
            u = np.random.random()
            if u < self.f / 2:
                bits[i] = 1  # here
        return bits
""",
    ),
    "stop-words": (
        "words-copied",
        """
def sanitize(tokens, stopwords, epsilon, mechanism):
    '''Word-level metric DP.'''
    result = []
    for tok in tokens:
        if tok in stopwords:
            result.append(tok)  # here
        else:
            result.append(mechanism(tok, epsilon))
    return result
""",
    ),
    "opacus-without-poisson": (
        "sampling-not-accounted",
        """
from opacus import PrivacyEngine

def private(model, optimizer, loader):
    engine = PrivacyEngine()
    parts = {"module": model, "optimizer": optimizer, "data_loader": loader, "max_grad_norm": 1.0}
    return engine.make_private(**parts, noise_multiplier=1.0, poisson_sampling=False)  # here
""",
    ),
}

RIGHT: dict[str, str] = {
    "laplace-class": """
import numpy as np

class Laplace:
    '''epsilon-differentially private.'''
    def __init__(self, epsilon, sensitivity, seed=None):
        self.scale = sensitivity / epsilon
        self.rng = np.random.default_rng(seed)

    def release(self, value):
        return value + self.rng.laplace(0.0, self.scale)
""",
    "dpsgd": """
import torch

def private_step(per_sample_grads, clip_norm, noise_multiplier, batch_size):
    norms = per_sample_grads.norm(2, dim=1)
    factors = (clip_norm / (norms + 1e-6)).clamp(max=1.0)
    total = torch.einsum("i,i...", factors, per_sample_grads)
    noise = torch.normal(0.0, noise_multiplier * clip_norm, size=total.shape)
    return (total + noise) / batch_size
""",
    "l2-with-gaussian": """
import numpy as np

def privatize(vec, clip, epsilon, delta):
    assert 0 < epsilon < 1
    vec = vec * min(1, clip / np.linalg.norm(vec))
    sigma = 2 * clip * np.sqrt(2 * np.log(1.25 / delta)) / epsilon
    return vec + np.random.normal(0, sigma, vec.shape)
""",
    "l2-with-dimension": """
import numpy as np

def privatize(vec, clip, epsilon):
    d = len(vec)
    vec = vec * min(1, clip / np.linalg.norm(vec))
    return vec + np.random.laplace(0, 2 * clip * np.sqrt(d) / epsilon, d)
""",
    "noisy-max": """
import numpy as np

def noisy_max(scores, epsilon):
    '''Report noisy max with exponential noise: epsilon-DP.'''
    return int(np.argmax(scores + np.random.exponential(2 / epsilon, size=len(scores))))
""",
    "split-budget": """
import numpy as np

def dp_mean(values, upper, epsilon):
    half = epsilon / 2
    total = np.clip(values, 0, upper).sum() + np.random.laplace(0, upper / half)
    count = (values >= 0).sum() + np.random.laplace(0, 1 / half)
    return total / max(count, 1)
""",
    "one-of-two": """
import numpy as np

def release(value, sensitivity, epsilon, delta=None):
    '''Pure or approximate differential privacy.'''
    if delta is None:
        return value + np.random.laplace(0, sensitivity / epsilon)
    if epsilon >= 1:
        raise ValueError("epsilon must be below 1")
    return value + np.random.normal(0, sensitivity * np.sqrt(2 * np.log(1.25 / delta)) / epsilon)
""",
    "histogram": """
import numpy as np

def dp_histogram(data, edges, epsilon):
    '''A differentially private histogram over given edges.'''
    counts, _ = np.histogram(data, bins=edges)
    return counts + np.random.laplace(0, 1 / epsilon, size=len(counts))
""",
    "clip-result": """
import numpy as np

def dp_count(rows, epsilon, upper):
    noisy = len(rows) + np.random.laplace(0, 1 / epsilon)
    return int(np.clip(round(noisy), 0, upper))
""",
    "groups": """
import numpy as np

def dp_group_counts(data, groups, epsilon):
    '''Counts of disjoint groups: parallel composition.'''
    return {group: (data == group).sum() + np.random.laplace(0, 1 / epsilon) for group in groups}
""",
    "randomized-response": """
import math
import random

def randomized_response(bit, epsilon):
    '''Local differential privacy.'''
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return bit if random.random() < p else 1 - bit
""",
    "unary": """
import numpy as np

def perturb(index, size, epsilon):
    '''Unary encoding for LDP.'''
    p, q = 0.5, 1 / (np.exp(epsilon) + 1)
    bits = np.random.binomial(1, q, size=size)
    bits[index] = np.random.binomial(1, p)
    return bits
""",
    "inverse-cdf": """
import math
import secrets

def laplace_noise(sensitivity, epsilon):
    u = secrets.SystemRandom().random() - 0.5
    return -(sensitivity / epsilon) * math.copysign(1, u) * math.log(1 - 2 * abs(u))
""",
    "zcdp": """
import numpy as np

def gaussian_zcdp(value, sensitivity, rho):
    '''rho-zCDP'''
    return value + np.random.normal(0, sensitivity / np.sqrt(2 * rho))
""",
    "error-measured": """
import numpy as np

def mean_error(values, upper, epsilon):
    noisy = values.mean() + np.random.laplace(0, upper / (len(values) * epsilon))
    return abs(noisy - values.mean())
""",
    "not-about-privacy": """
import numpy as np

def augment(image, rng=None):
    rng = np.random.default_rng(0)
    return image + rng.normal(0, 0.1)
""",
    "adam": """
import torch

class Adam:
    '''Optimizer; private training clips before it.'''
    def __init__(self, params, lr=1e-3, eps=1e-8):
        self.params, self.lr, self.eps = params, lr, eps

    def step(self, grad, m, v):
        return m * self.lr / (v.sqrt() + self.eps)
""",
    "initialised": """
import torch

class PrivateModel(torch.nn.Module):
    '''Trained with differential privacy by the caller.'''
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(dim, dim) * 0.02)

    def forward(self, x):
        return x @ self.weight
""",
    "threshold": """
import numpy as np

def svt(queries, threshold, epsilon, sensitivity):
    '''Sparse vector technique: epsilon-DP.'''
    noisy_threshold = threshold + np.random.laplace(0, 2 * sensitivity / epsilon)
    for i, query in enumerate(queries):
        if query + np.random.laplace(0, 4 * sensitivity / epsilon) >= noisy_threshold:
            return i
    return None
""",
    "warned": """
import warnings
import numpy as np

def mean(values, epsilon, bounds=None):
    '''Differentially private mean.'''
    if bounds is None:
        warnings.warn("Bounds are computed from the data: additional privacy leakage")
        bounds = (np.min(values), np.max(values))
    lower, upper = bounds
    clipped = np.clip(values, lower, upper)
    return clipped.mean() + np.random.laplace(0, (upper - lower) / (len(values) * epsilon))
""",
    "steps-composed": """
import numpy as np

def noisy_steps(data, bound, epsilon, steps):
    '''epsilon-DP in all.'''
    out = []
    for _ in range(steps):
        total = np.clip(data, 0, bound).sum()
        out.append(total + np.random.laplace(0, steps * bound / epsilon))
    return out
""",
    "deviation-from-variance": """
import math
import random

def private(value, sensitivity, variance):
    '''Gaussian mechanism for differential privacy.'''
    return value + random.gauss(0, math.sqrt(variance))
""",
    "analytic": """
import math

def rdp_to_epsilon(rdp, alpha, delta):
    '''From Rényi to approximate differential privacy.'''
    return rdp + math.log(1 / delta) / (alpha - 1)
""",
    "demo": """
import numpy as np

def private_sum(values, bound, epsilon, rng):
    return np.clip(values, 0, bound).sum() + rng.laplace(0, bound / epsilon)

if __name__ == "__main__":
    print(private_sum(np.arange(5), 4, 1.0, np.random.default_rng(0)))
""",
    "disabled": """
import numpy as np

class Noise:
    '''Differential privacy.'''
    def __init__(self, epsilon, sensitivity, enabled=True):
        self.epsilon, self.sensitivity, self.enabled = epsilon, sensitivity, enabled

    def apply(self, x):
        if not self.enabled:
            return x
        return x + np.random.laplace(0, self.sensitivity / self.epsilon, x.shape)
""",
}
