"""More labelled modules, in the styles of packages, written without a look at the rules; as in scan_modules."""

WRONG: dict[str, tuple[str, str]] = {
    "seed-default-class": (
        "seed-default",
        """
'''Local DP for text embeddings.'''
import numpy as np

class EmbeddingPerturber:
    '''Perturb embeddings with Laplace noise so that each text is epsilon-differentially private.'''

    def __init__(self, epsilon, sensitivity, random_state=0):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self._rng = np.random.RandomState(random_state)  # here

    def transform(self, vec):
        b = self.sensitivity / self.epsilon
        return vec + self._rng.laplace(0.0, b, size=vec.shape)
""",
    ),
    "seed-hash": (
        "seed-from-data",
        """
import hashlib
import numpy as np

def privatize_word_count(text: str, epsilon: float) -> int:
    '''Release a noisy word count (epsilon-DP).'''
    seed = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    rng = np.random.default_rng(seed)  # here
    n = min(len(text.split()), 100)
    return n + rng.laplace(scale=100 / epsilon)
""",
    ),
    "torch-manual-seed": (
        "seed-fixed",
        """
import torch

def dp_aggregate(grads, clip: float, noise_multiplier: float):
    '''DP-SGD aggregation of per-sample gradients.'''
    torch.manual_seed(42)  # here
    total = torch.zeros_like(grads[0])
    for g in grads:
        norm = g.norm(2)
        total += g * torch.clamp(clip / (norm + 1e-6), max=1.0)
    noise = torch.normal(0, noise_multiplier * clip, size=total.shape)
    return (total + noise) / len(grads)
""",
    ),
    "variance": (
        "variance-for-deviation",
        """
import math
import numpy as np

class GaussianMechanism:
    '''(epsilon, delta)-DP Gaussian mechanism, epsilon < 1.'''

    def __init__(self, epsilon: float, delta: float, sensitivity: float):
        if not 0 < epsilon < 1:
            raise ValueError("epsilon must be in (0, 1)")
        self.variance = 2 * math.log(1.25 / delta) * sensitivity**2 / epsilon**2  # here

    def release(self, value):
        return value + np.random.normal(0, self.variance)
""",
    ),
    "variance-laplace": (
        "scale-shrunk",
        """
import numpy as np

def laplace_noise_std(epsilon, sensitivity):
    '''Standard deviation of Laplace noise for epsilon-DP.'''
    b = sensitivity / epsilon
    return b / np.sqrt(2)  # here

def noisy_mean(values, epsilon, lower, upper):
    '''epsilon-DP mean of clipped values.'''
    clipped = np.clip(values, lower, upper)
    sens = (upper - lower) / len(values)
    noise = np.random.laplace(0, laplace_noise_std(epsilon, sens))
    return clipped.mean() + noise
""",
    ),
    "inverted": (
        "scale-inverted",
        """
import numpy as np
from dataclasses import dataclass

@dataclass
class NoiseConfig:
    epsilon: float = 1.0
    sensitivity: float = 1.0

    @property
    def scale(self):
        return self.epsilon / self.sensitivity  # here

def add_noise(x, cfg: NoiseConfig):
    '''Laplace mechanism.'''
    return x + np.random.laplace(loc=0.0, scale=cfg.scale, size=np.shape(x))
""",
    ),
    "no-sensitivity": (
        "sensitivity-missing",
        """
import numpy as np

def private_sum(values, epsilon, bound=10.0):
    '''Sum of values clipped to [0, bound], epsilon-DP.'''
    clipped = np.minimum(np.maximum(values, 0), bound)
    return float(np.sum(clipped) + np.random.laplace(0, 1.0 / epsilon))  # here
""",
    ),
    "wrong-norm-torch": (
        "wrong-norm",
        """
import torch
import torch.nn.functional as F
from torch.distributions import Laplace

class PrivateEncoder(torch.nn.Module):
    '''Sentence encoder with an epsilon-LDP representation.'''

    def __init__(self, encoder, epsilon: float):
        super().__init__()
        self.encoder = encoder
        self.epsilon = epsilon

    def forward(self, input_ids):
        h = self.encoder(input_ids)
        h = F.normalize(h, p=2, dim=-1)
        noise = Laplace(0.0, 2.0 / self.epsilon).sample(h.shape)  # here
        return h + noise
""",
    ),
    "wrong-norm-numpy": (
        "wrong-norm",
        """
import numpy as np

def clip_l2(v, C):
    n = np.linalg.norm(v)
    return v if n <= C else v * (C / n)

def perturb(v, C, epsilon, rng=None):
    '''Laplace mechanism on a clipped sentence vector.'''
    rng = rng or np.random.default_rng()
    return clip_l2(v, C) + rng.laplace(0, 2 * C / epsilon, size=len(v))  # here
""",
    ),
    "classic-gaussian": (
        "gaussian-epsilon-range",
        """
import numpy as np
from math import log, sqrt

def calibrate_sigma(eps: float, delta: float, l2_sensitivity: float) -> float:
    '''Standard deviation for (eps, delta)-DP.'''
    if eps <= 0 or not 0 < delta < 1:
        raise ValueError("bad budget")
    return l2_sensitivity * sqrt(2 * log(1.25 / delta)) / eps  # here

def gaussian_mechanism(x, eps, delta, l2_sensitivity):
    sigma = calibrate_sigma(eps, delta, l2_sensitivity)
    return x + np.random.normal(0, sigma, size=x.shape)
""",
    ),
    "shared-noise": (
        "shared-noise",
        """
import numpy as np

def noisy_histogram(counts: np.ndarray, epsilon: float) -> np.ndarray:
    '''Histogram with Laplace noise on each bin (add/remove).'''
    noise = np.random.laplace(scale=1.0 / epsilon)
    return counts + noise  # here
""",
    ),
    "noise-once": (
        "noise-drawn-once",
        """
import numpy as np

class NoisyCounter:
    '''Answers counting queries with epsilon-DP each.'''

    def __init__(self, epsilon):
        self.epsilon = epsilon
        self.noise = np.random.laplace(0, 1 / epsilon)  # here

    def count(self, rows, predicate):
        return sum(1 for r in rows if predicate(r)) + self.noise
""",
    ),
    "default-arg-noise": (
        "noise-drawn-once",
        """
import numpy as np

def privatize(v, epsilon, noise=np.random.laplace(0, 1.0, 300)):  # here
    '''Return v (l1 sensitivity 1) with Laplace noise of scale 1/epsilon.'''
    return v + noise / epsilon
""",
    ),
    "clip-after": (
        "noise-before-clipping",
        """
import torch

def privatize_update(update, C, sigma):
    '''Client update with clipping and Gaussian noise.'''
    noisy = update + torch.randn_like(update) * sigma * C
    scale = min(1.0, C / float(noisy.norm()))
    return noisy * scale  # here
""",
    ),
    "bounds-data": (
        "scale-from-data",
        """
import pandas as pd
import numpy as np

def dp_mean_column(df: pd.DataFrame, column: str, epsilon: float) -> float:
    '''Differentially private mean of a column.'''
    s = df[column].dropna()
    lo, hi = s.min(), s.max()
    sensitivity = (hi - lo) / len(s)
    return s.mean() + np.random.laplace(0, sensitivity / epsilon)  # here
""",
    ),
    "minmax-scaler": (
        "bounds-from-data",
        """
import numpy as np
from sklearn.preprocessing import MinMaxScaler

def release_features(X, epsilon):
    '''epsilon-DP release of features scaled to [0, 1].'''
    X01 = MinMaxScaler().fit_transform(X)
    d = X.shape[1]
    return X01 + np.random.laplace(0, d / epsilon, X01.shape)  # here
""",
    ),
    "median-clip": (
        "scale-from-data",
        """
import torch

def dp_step(per_sample_grads, sigma):
    '''DP-SGD with automatic clipping.'''
    norms = per_sample_grads.flatten(1).norm(dim=1)
    C = norms.median()
    factor = (C / norms).clamp(max=1.0)
    clipped = (per_sample_grads.flatten(1) * factor[:, None]).sum(0)
    return clipped + torch.randn_like(clipped) * sigma * C  # here
""",
    ),
    "keys": (
        "domain-from-data",
        """
from collections import Counter
import numpy as np

def private_word_counts(docs, epsilon):
    '''epsilon-DP word counts; each user contributes one word.'''
    counts = Counter(w for d in docs for w in d.split()[:1])
    return {w: c + np.random.laplace(0, 1 / epsilon) for w, c in counts.items()}  # here
""",
    ),
    "groupby": (
        "domain-from-data",
        """
import pandas as pd
import numpy as np

def dp_group_counts(df, by, epsilon):
    '''Counts per group with Laplace noise.'''
    g = df.groupby(by).size()
    return g + np.random.laplace(0, 1 / epsilon, len(g))  # here
""",
    ),
    "random-response-labels": (
        "domain-from-data",
        """
import numpy as np

def randomized_response(labels, epsilon):
    '''k-ary randomized response on labels.'''
    classes = np.unique(labels)
    k = len(classes)
    p = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    out = []
    for y in labels:
        if np.random.rand() < p:
            out.append(y)
        else:
            out.append(np.random.choice(classes[classes != y]))  # here
    return np.array(out)
""",
    ),
    "shuffled-loader": (
        "sampling-not-accounted",
        """
from opacus.accountants import RDPAccountant
from torch.utils.data import DataLoader

def train_private(model, dataset, optimizer, sigma, batch_size, epochs, delta):
    '''DP-SGD training; returns the epsilon spent.'''
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)  # here
    accountant = RDPAccountant()
    q = batch_size / len(dataset)
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            accountant.step(noise_multiplier=sigma, sample_rate=q)
    return accountant.get_epsilon(delta=delta)
""",
    ),
    "except-raw": (
        "raw-on-error",
        """
import numpy as np

class TextPrivatizer:
    '''Word-level metric DP.'''
    def __init__(self, vectors, words, epsilon):
        self.vectors, self.words, self.epsilon = vectors, words, epsilon
        self.index = {w: i for i, w in enumerate(words)}

    def replace(self, word):
        try:
            v = self.vectors[self.index[word]]
        except KeyError:
            return word  # here
        d = v.shape[0]
        u = np.random.normal(size=d)
        z = u / np.linalg.norm(u) * np.random.gamma(d, 1 / self.epsilon)
        return self.words[int(np.argmin(np.linalg.norm(self.vectors - v - z, axis=1)))]
""",
    ),
    "if-not-in-vocab": (
        "words-copied",
        """
import numpy as np

def rewrite(tokens, vocab, emb, epsilon):
    '''epsilon-metric-DP rewriting, token by token.'''
    out = []
    for t in tokens:
        if t not in vocab:
            out.append(t)  # here
            continue
        x = emb[t]
        n = len(x)
        direction = np.random.standard_normal(n)
        direction /= np.linalg.norm(direction)
        noisy = x + direction * np.random.gamma(n, 1 / epsilon)
        out.append(min(vocab, key=lambda w: np.linalg.norm(emb[w] - noisy)))
    return " ".join(out)
""",
    ),
    "budget-twice": (
        "budget-twice",
        """
import numpy as np

def mean_and_variance(x, epsilon, lo, hi):
    '''Returns epsilon-DP mean and second moment of x (size public).'''
    x = np.clip(x, lo, hi)
    n = len(x)
    m = x.mean() + np.random.laplace(0, (hi - lo) / (n * epsilon))
    s = (x**2).mean() + np.random.laplace(0, max(lo**2, hi**2) / (n * epsilon))  # here
    return m, s - m**2
""",
    ),
    "budget-loop": (
        "budget-twice",
        """
import numpy as np

def private_tree_counts(data, thresholds, epsilon):
    '''epsilon-DP counts below each threshold.'''
    result = []
    for t in thresholds:
        c = sum(1 for v in data if v < t)
        result.append(c + np.random.laplace(0, 1.0 / epsilon))  # here
    return result
""",
    ),
    "accountant-first-step": (
        "accountant-drops-step",
        """
from dp_accounting.rdp import RdpAccountant
from dp_accounting import dp_event

class Tracker:
    '''Tracks the epsilon of training.'''
    def __init__(self, sigma, q):
        self.sigma, self.q, self.steps = sigma, q, 0

    def epsilon(self, delta, total_steps):
        acc = RdpAccountant()
        event = dp_event.PoissonSampledDpEvent(self.q, dp_event.GaussianDpEvent(self.sigma))
        for _ in range(1, total_steps):  # here
            acc.compose(event)
        return acc.get_epsilon(delta)
""",
    ),
    "selection-runs": (
        "selection-over-runs",
        """
from opacus import PrivacyEngine

def tune(make_model, loaders, lrs, sigma, delta):
    '''Train with several learning rates and keep the best; reports the epsilon.'''
    best, best_acc, best_eps = None, 0.0, None
    for lr in lrs:
        model, opt, loader, val = make_model(lr, loaders)
        engine = PrivacyEngine()
        model, opt, loader = engine.make_private(module=model, optimizer=opt, data_loader=loader,
                                                 noise_multiplier=sigma, max_grad_norm=1.0)
        fit(model, opt, loader)
        acc = evaluate(model, val)
        if acc > best_acc:  # here
            best, best_acc, best_eps = model, acc, engine.get_epsilon(delta)
    return best, best_eps
""",
    ),
    "scaled-after": (
        "scale-shrunk",
        """
import numpy as np

def release_counts(counts, epsilon):
    '''Noisy counts, shrunk to reduce error.'''
    noise = np.random.laplace(0, 1 / epsilon, size=len(counts))
    return counts + 0.1 * noise  # here
""",
    ),
    "jax-key": (
        "seed-fixed",
        """
import jax
import jax.numpy as jnp

def privatize(tree, clip_norm, noise_multiplier):
    '''Add Gaussian noise to clipped gradients.'''
    key = jax.random.PRNGKey(0)
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, len(leaves))  # here
    noisy = [x + noise_multiplier * clip_norm * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys)]
    return jax.tree_util.tree_unflatten(treedef, noisy)
""",
    ),
    "jax-key-reused": (
        "shared-noise",
        """
import jax

def privatize(tree, clip_norm, noise_multiplier, key):
    '''Add Gaussian noise to clipped gradients.'''
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    noisy = [x + noise_multiplier * clip_norm * jax.random.normal(key, x.shape) for x in leaves]  # here
    return jax.tree_util.tree_unflatten(treedef, noisy)
""",
    ),
    "half-noise": (
        "one-sided-noise",
        """
import random

def noisy_age(age, epsilon, sensitivity=1):
    '''Adds exponential noise for epsilon-DP.'''
    return age + random.expovariate(epsilon / sensitivity)  # here
""",
    ),
    "exponential-mech": (
        "scale-shrunk",
        """
import numpy as np

def exponential_mechanism(candidates, utility, data, epsilon, sensitivity):
    '''epsilon-DP selection.'''
    u = np.array([utility(data, c) for c in candidates])
    scores = np.exp(epsilon * u / sensitivity)  # here
    p = scores / scores.sum()
    return candidates[np.random.choice(len(candidates), p=p)]
""",
    ),
    "normalize-dataset": (
        "bounds-from-data",
        """
import torch

def embed_and_noise(texts, encoder, eps, delta):
    '''(eps, delta)-DP sentence embeddings by the analytic Gaussian mechanism.'''
    from mylib import analytic_sigma
    H = torch.stack([encoder(t) for t in texts])
    H = (H - H.mean(0)) / H.std(0)
    C = H.norm(dim=1).max()
    sigma = analytic_sigma(eps, delta, 2 * C)
    return H + sigma * torch.randn_like(H)  # here
""",
    ),
    "uniform-noise": (
        "bounded-noise",
        """
import numpy as np

def jitter(embedding, epsilon):
    '''Differentially private embedding: bounded noise of width 1/epsilon.'''
    return embedding + np.random.uniform(-1 / epsilon, 1 / epsilon, size=embedding.shape)  # here
""",
    ),
    "length-kept": (
        "input-shapes-output",
        """
import numpy as np

def perturb_sentence(sentence, vocab, emb, epsilon):
    '''epsilon-DP rewriting of a whole sentence.'''
    words = sentence.split()
    eps_w = epsilon / len(words)  # here
    out = []
    for w in words:
        scores = -np.linalg.norm(emb - emb[vocab.index(w)], axis=1)
        p = np.exp(eps_w * scores / 2)
        out.append(vocab[np.random.choice(len(vocab), p=p / p.sum())])
    return " ".join(out)
""",
    ),
    "numpy-seed-module": (
        "seed-fixed",
        """
import random
import numpy as np

random.seed(1234)
np.random.seed(1234)  # here

def laplace_mechanism(value, sensitivity, epsilon):
    '''Laplace mechanism.'''
    return value + np.random.laplace(0, sensitivity / epsilon)
""",
    ),
    "seeded-generator-method": (
        "seed-fixed",
        """
import torch

class DPNoise:
    '''Gaussian noise for DP-SGD.'''
    def __init__(self, std, device="cpu"):
        self.std = std
        self.gen = torch.Generator(device=device)
        self.gen.manual_seed(1337)  # here

    def add(self, t):
        return t + torch.normal(0.0, self.std, t.shape, generator=self.gen)
""",
    ),
    "search-with-a-limit": (
        "accountant-saturates",
        """
def get_epsilon(delta, sigma, steps):
    '''Epsilon of the Gaussian mechanism, for differential privacy.'''
    low, high = 0.0, 100.0  # here
    for _ in range(60):
        middle = (low + high) / 2
        if delta_of(middle, sigma, steps) > delta:
            low = middle
        else:
            high = middle
    return high
""",
    ),
    "clipped-epsilon": (
        "accountant-saturates",
        """
import numpy as np

def get_epsilon(rdp, orders, delta):
    '''Epsilon of a Renyi accountant, for differential privacy.'''
    epsilon = np.min(rdp + np.log(1 / delta) / (orders - 1))
    return np.clip(epsilon, 0, 50)  # here
""",
    ),
    "far-out": (
        "accountant-overflow",
        """
from scipy.stats import norm
import math

def delta_of_gaussian(epsilon, mu):
    '''Delta of the Gaussian mechanism at epsilon, for differential privacy.'''
    if epsilon > 500:  # here
        return 0.0
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
""",
    ),
    "key-for-each-leaf": (
        "shared-noise",
        """
import jax

def add_noise(gradients, clip_norm, noise_multiplier, key):
    '''Gaussian noise for differential privacy.'''
    return jax.tree_util.tree_map(
        lambda g: g + noise_multiplier * clip_norm * jax.random.normal(key, g.shape), gradients  # here
    )
""",
    ),
    "standardized": (
        "bounds-from-data",
        """
import numpy as np

def release(table, epsilon):
    '''Differentially private table.'''
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return table + np.random.laplace(0, 2 / epsilon, size=table.shape)  # here
""",
    ),
}


RIGHT: dict[str, str] = {
    "seed-none-class": """
'''Local DP for text embeddings.'''
import numpy as np

class EmbeddingPerturber:
    '''Perturb embeddings with Laplace noise so that each text is epsilon-differentially private.'''

    def __init__(self, epsilon, sensitivity, random_state=None):
        self.epsilon = epsilon
        self.sensitivity = sensitivity
        self._rng = np.random.RandomState(random_state)

    def transform(self, vec):
        b = self.sensitivity / self.epsilon
        return vec + self._rng.laplace(0.0, b, size=vec.shape)
""",
    "seed-hash-of-config": """
import hashlib
import numpy as np

def bucket(run_name: str) -> int:
    '''Which experiment bucket a run falls in; no data is involved.'''
    seed = int(hashlib.sha256(run_name.encode()).hexdigest()[:8], 16)
    return seed % 10

def privatize_word_count(text: str, epsilon: float) -> float:
    '''Release a noisy word count (epsilon-DP).'''
    rng = np.random.default_rng()
    n = min(len(text.split()), 100)
    return n + rng.laplace(scale=100 / epsilon)
""",
    "dp-aggregate": """
import torch

def dp_aggregate(grads, clip: float, noise_multiplier: float, expected_batch: int):
    '''DP-SGD aggregation of per-sample gradients.'''
    total = torch.zeros_like(grads[0])
    for g in grads:
        norm = g.norm(2)
        total += g * torch.clamp(clip / (norm + 1e-6), max=1.0)
    noise = torch.normal(0, noise_multiplier * clip, size=total.shape)
    return (total + noise) / expected_batch
""",
    "sqrt-variance": """
import math
import numpy as np

class GaussianMechanism:
    '''(epsilon, delta)-DP Gaussian mechanism, epsilon < 1.'''

    def __init__(self, epsilon: float, delta: float, sensitivity: float):
        if not 0 < epsilon < 1:
            raise ValueError("epsilon must be in (0, 1)")
        self.variance = 2 * math.log(1.25 / delta) * sensitivity**2 / epsilon**2

    def release(self, value):
        return value + np.random.normal(0, math.sqrt(self.variance))
""",
    "noisy-mean": """
import numpy as np

def noisy_mean(values, epsilon, lower, upper):
    '''epsilon-DP mean of clipped values (the number of values is public).'''
    clipped = np.clip(values, lower, upper)
    sens = (upper - lower) / len(values)
    noise = np.random.laplace(0, sens / epsilon)
    return clipped.mean() + noise
""",
    "scale-property": """
import numpy as np
from dataclasses import dataclass

@dataclass
class NoiseConfig:
    epsilon: float = 1.0
    sensitivity: float = 1.0

    @property
    def scale(self):
        return self.sensitivity / self.epsilon

def add_noise(x, cfg: NoiseConfig):
    '''Laplace mechanism.'''
    return x + np.random.laplace(loc=0.0, scale=cfg.scale, size=np.shape(x))
""",
    "private-sum": """
import numpy as np

def private_sum(values, epsilon, bound=10.0):
    '''Sum of values clipped to [0, bound], epsilon-DP.'''
    clipped = np.minimum(np.maximum(values, 0), bound)
    return float(np.sum(clipped) + np.random.laplace(0, bound / epsilon))
""",
    "l1-norm-torch": """
import torch
import torch.nn.functional as F
from torch.distributions import Laplace

class PrivateEncoder(torch.nn.Module):
    '''Sentence encoder with an epsilon-LDP representation.'''

    def __init__(self, encoder, epsilon: float):
        super().__init__()
        self.encoder = encoder
        self.epsilon = epsilon

    def forward(self, input_ids):
        h = self.encoder(input_ids)
        h = F.normalize(h, p=1, dim=-1)
        noise = Laplace(0.0, 2.0 / self.epsilon).sample(h.shape)
        return h + noise
""",
    "l1-numpy": """
import numpy as np

def clip_l1(v, C):
    n = np.linalg.norm(v, ord=1)
    return v if n <= C else v * (C / n)

def perturb(v, C, epsilon, rng=None):
    '''Laplace mechanism on a clipped sentence vector.'''
    rng = rng or np.random.default_rng()
    return clip_l1(v, C) + rng.laplace(0, 2 * C / epsilon, size=len(v))
""",
    "classic-gaussian-checked": """
import numpy as np
from math import log, sqrt

def calibrate_sigma(eps: float, delta: float, l2_sensitivity: float) -> float:
    '''Standard deviation for (eps, delta)-DP.'''
    if not 0 < eps <= 1 or not 0 < delta < 1:
        raise ValueError("bad budget")
    return l2_sensitivity * sqrt(2 * log(1.25 / delta)) / eps

def gaussian_mechanism(x, eps, delta, l2_sensitivity):
    sigma = calibrate_sigma(eps, delta, l2_sensitivity)
    return x + np.random.normal(0, sigma, size=x.shape)
""",
    "histogram": """
import numpy as np

def noisy_histogram(counts: np.ndarray, epsilon: float) -> np.ndarray:
    '''Histogram with Laplace noise on each bin (add/remove).'''
    noise = np.random.laplace(scale=1.0 / epsilon, size=counts.shape)
    return counts + noise
""",
    "noise-each": """
import numpy as np

class NoisyCounter:
    '''Answers counting queries with epsilon-DP each.'''

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def count(self, rows, predicate):
        noise = np.random.laplace(0, 1 / self.epsilon)
        return sum(1 for r in rows if predicate(r)) + noise
""",
    "clip-before": """
import torch

def privatize_update(update, C, sigma):
    '''Client update with clipping and Gaussian noise.'''
    scale = min(1.0, C / float(update.norm()))
    clipped = update * scale
    return clipped + torch.randn_like(update) * sigma * C
""",
    "bounds-given": """
import pandas as pd
import numpy as np

def dp_sum_column(df: pd.DataFrame, column: str, epsilon: float, lo: float, hi: float) -> float:
    '''Differentially private sum of a column with public bounds.'''
    s = df[column].fillna(lo).clip(lo, hi)
    sensitivity = max(abs(lo), abs(hi))
    return s.sum() + np.random.laplace(0, sensitivity / epsilon)
""",
    "keys-vocab": """
from collections import Counter
import numpy as np

def private_word_counts(docs, vocabulary, epsilon):
    '''epsilon-DP counts of the words of a public vocabulary; each user contributes one word.'''
    counts = Counter(w for d in docs for w in d.split()[:1])
    return {w: counts.get(w, 0) + np.random.laplace(0, 1 / epsilon) for w in vocabulary}
""",
    "groupby-reindexed": """
import pandas as pd
import numpy as np

def dp_group_counts(df, by, categories, epsilon):
    '''Counts per public category with Laplace noise.'''
    g = df.groupby(by).size().reindex(categories, fill_value=0)
    return g + np.random.laplace(0, 1 / epsilon, len(categories))
""",
    "randomized-response": """
import numpy as np

def randomized_response(labels, n_classes, epsilon):
    '''k-ary randomized response on labels 0..n_classes-1.'''
    k = n_classes
    p = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    out = []
    for y in labels:
        if np.random.rand() < p:
            out.append(y)
        else:
            z = np.random.randint(0, k - 1)
            out.append(z + (z >= y))
    return np.array(out)
""",
    "poisson-loader": """
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader

def train_private(model, dataset, optimizer, sigma, sample_rate, epochs, delta):
    '''DP-SGD training; returns the epsilon spent.'''
    loader = DPDataLoader(dataset, sample_rate=sample_rate)
    accountant = RDPAccountant()
    for _ in range(epochs):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            accountant.step(noise_multiplier=sigma, sample_rate=sample_rate)
    return accountant.get_epsilon(delta=delta)
""",
    "count-noised": """
import numpy as np

def summarize(ages, epsilon, lo=0, hi=120):
    '''Private statistics of ages (epsilon-DP in all).'''
    clipped = np.clip(ages, lo, hi)
    noisy = clipped.sum() + np.random.laplace(0, hi / (epsilon / 2))
    n = len(ages) + np.random.laplace(0, 1 / (epsilon / 2))
    return {"sum": noisy, "n": n, "mean": noisy / max(n, 1)}
""",
    "except-unknown": """
import numpy as np

class TextPrivatizer:
    '''Word-level metric DP.'''
    def __init__(self, vectors, words, epsilon):
        self.vectors, self.words, self.epsilon = vectors, words, epsilon
        self.index = {w: i for i, w in enumerate(words)}

    def replace(self, word):
        try:
            v = self.vectors[self.index[word]]
        except KeyError:
            return np.random.choice(self.words)
        d = v.shape[0]
        u = np.random.normal(size=d)
        z = u / np.linalg.norm(u) * np.random.gamma(d, 1 / self.epsilon)
        return self.words[int(np.argmin(np.linalg.norm(self.vectors - v - z, axis=1)))]
""",
    "filter-vocab": """
import numpy as np

def rewrite(tokens, vocab, emb, epsilon):
    '''epsilon-metric-DP rewriting, token by token; unknown words are replaced by a random word.'''
    out = []
    for t in tokens:
        if t not in vocab:
            out.append(vocab[np.random.randint(len(vocab))])
            continue
        x = emb[t]
        n = len(x)
        direction = np.random.standard_normal(n)
        direction /= np.linalg.norm(direction)
        noisy = x + direction * np.random.gamma(n, 1 / epsilon)
        out.append(min(vocab, key=lambda w: np.linalg.norm(emb[w] - noisy)))
    return " ".join(out)
""",
    "budget-split": """
import numpy as np

def mean_and_variance(x, epsilon, lo, hi):
    '''Returns epsilon-DP mean and second moment of x (size public).'''
    x = np.clip(x, lo, hi)
    n = len(x)
    half = epsilon / 2
    m = x.mean() + np.random.laplace(0, (hi - lo) / (n * half))
    s = (x**2).mean() + np.random.laplace(0, max(lo**2, hi**2) / (n * half))
    return m, s - m**2
""",
    "budget-loop-split": """
import numpy as np

def private_tree_counts(data, thresholds, epsilon):
    '''epsilon-DP counts below each threshold.'''
    per_query = epsilon / len(thresholds)
    result = []
    for t in thresholds:
        c = sum(1 for v in data if v < t)
        result.append(c + np.random.laplace(0, 1.0 / per_query))
    return result
""",
    "accountant-log": """
import numpy as np
from scipy.stats import norm

def delta_of(eps, mu):
    '''delta(eps) of mu-GDP.'''
    return norm.cdf(mu / 2 - eps / mu) - np.exp(eps + norm.logcdf(-mu / 2 - eps / mu))
""",
    "accountant-all": """
from dp_accounting.rdp import RdpAccountant
from dp_accounting import dp_event

class Tracker:
    '''Tracks the epsilon of training.'''
    def __init__(self, sigma, q):
        self.sigma, self.q, self.steps = sigma, q, 0

    def epsilon(self, delta, total_steps):
        acc = RdpAccountant()
        event = dp_event.PoissonSampledDpEvent(self.q, dp_event.GaussianDpEvent(self.sigma))
        acc.compose(event, total_steps)
        return acc.get_epsilon(delta)
""",
    "scaled-both": """
import numpy as np

def release_counts(counts, epsilon):
    '''Noisy counts as shares of a public total.'''
    noise = np.random.laplace(0, 1 / epsilon, size=len(counts))
    return 0.1 * (counts + noise)
""",
    "jax-key": """
import jax
import jax.numpy as jnp

def privatize(tree, clip_norm, noise_multiplier, key):
    '''Add Gaussian noise to clipped gradients.'''
    leaves, treedef = jax.tree_util.tree_flatten(tree)
    keys = jax.random.split(key, len(leaves))
    noisy = [x + noise_multiplier * clip_norm * jax.random.normal(k, x.shape) for x, k in zip(leaves, keys)]
    return jax.tree_util.tree_unflatten(treedef, noisy)
""",
    "tf-noise": """
import tensorflow as tf

class DPOptimizerMixin:
    '''Adds noise to the summed, clipped gradients.'''
    def __init__(self, l2_norm_clip, noise_multiplier, num_microbatches):
        self._clip = l2_norm_clip
        self._mult = noise_multiplier
        self._m = num_microbatches

    def process(self, grads):
        clipped = [tf.clip_by_norm(g, self._clip) for g in grads]
        total = tf.add_n(clipped)
        std = self._mult * self._clip
        return total / self._m + tf.random.normal(tf.shape(total), stddev=std / self._m)
""",
    "diff-of-exponentials": """
import random

def noisy_age(age, epsilon, sensitivity=1):
    '''Adds Laplace noise for epsilon-DP, as the difference of two exponentials.'''
    rate = epsilon / sensitivity
    return age + random.expovariate(rate) - random.expovariate(rate)
""",
    "exponential-mech": """
import numpy as np

def exponential_mechanism(candidates, utility, data, epsilon, sensitivity):
    '''epsilon-DP selection.'''
    u = np.array([utility(data, c) for c in candidates])
    u = u - u.max()
    scores = np.exp(epsilon * u / (2 * sensitivity))
    p = scores / scores.sum()
    return candidates[np.random.choice(len(candidates), p=p)]
""",
    "bernoulli-inverse": """
import numpy as np

def rr_bit(bit, epsilon):
    '''Randomized response for one bit.'''
    p_flip = np.exp(epsilon) / (1 + np.exp(epsilon))
    if np.random.random() < p_flip:
        return bit
    return 1 - bit
""",
    "secrets-discrete": """
import secrets
from fractions import Fraction

_R = secrets.SystemRandom()

def _bernoulli(p: Fraction) -> int:
    return int(_R.randrange(p.denominator) < p.numerator)

def geometric(eps: Fraction) -> int:
    k = 0
    while _bernoulli(1 - eps / (1 + eps)):
        k += 1
    return k

def count_release(records, eps):
    '''Discrete noise on a count: epsilon-DP.'''
    return len(records) + geometric(eps) - geometric(eps)
""",
    "opendp": """
import opendp.prelude as dp

dp.enable_features("contrib")

def private_count(data, epsilon):
    '''epsilon-DP count of records.'''
    space = dp.vector_domain(dp.atom_domain(T=float)), dp.symmetric_distance()
    meas = space >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0 / epsilon)
    assert meas.map(1) <= epsilon + 1e-9
    return meas(data)
""",
    "init-weights": """
import torch
import torch.nn as nn

class Encoder(nn.Module):
    '''Encoder without privacy.'''
    def __init__(self, d, seed=0):
        super().__init__()
        g = torch.Generator().manual_seed(seed)
        self.w = nn.Parameter(torch.randn(d, d, generator=g) / d**0.5)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.dropout(x @ self.w)
""",
    "random-projection": """
import numpy as np

class Projector:
    '''Johnson-Lindenstrauss projection, then Gaussian noise (rho-zCDP for unit vectors).'''
    def __init__(self, d, k, rho, projection_seed=7):
        r = np.random.default_rng(projection_seed)
        self.P = r.normal(size=(d, k)) / np.sqrt(k)
        self.norm = np.linalg.norm(self.P, 2)
        self.sigma = 2 * self.norm / np.sqrt(2 * rho)

    def release(self, x):
        x = x / max(1.0, np.linalg.norm(x))
        return x @ self.P + np.random.default_rng().normal(0, self.sigma, self.P.shape[1])
""",
    "simulation": """
import numpy as np

def simulate_error(epsilon, trials=1000, seed=1):
    '''Mean absolute error of the Laplace mechanism on zeros, for the plot in the paper.'''
    rng = np.random.default_rng(seed)
    return float(np.abs(rng.laplace(0, 1 / epsilon, trials)).mean())
""",
    "report-noisy-max": """
import numpy as np

def report_noisy_max(scores, epsilon, sensitivity=1.0):
    '''Index of the noisy maximum, epsilon-DP.'''
    rng = np.random.default_rng()
    gumbel = rng.gumbel(0, 2 * sensitivity / epsilon, size=len(scores))
    return int(np.argmax(np.asarray(scores) + gumbel))
""",
    "federated": """
import numpy as np

class Server:
    '''Central DP federated averaging with uniform weights.'''
    def __init__(self, clip, noise_multiplier, clients_per_round):
        self.clip, self.z, self.m = clip, noise_multiplier, clients_per_round

    def aggregate(self, updates):
        total = np.zeros_like(updates[0])
        for u in updates:
            total += u * min(1.0, self.clip / max(np.linalg.norm(u), 1e-12))
        total += np.random.normal(0, self.z * self.clip, size=total.shape)
        return total / self.m
""",
    "tree-histogram-parallel": """
import numpy as np

def per_bin(counts, epsilon):
    '''Each record is in one bin: parallel composition, epsilon-DP (add/remove).'''
    noisy = []
    for c in counts:
        noisy.append(c + np.random.laplace(0, 1 / epsilon))
    return noisy
""",
    "gumbel-tokens": """
import torch

class PrivateDecoder:
    '''Each token by the exponential mechanism on clipped logits: epsilon per token.'''
    def __init__(self, model, epsilon, bound):
        self.model = model
        self.temperature = 2 * (2 * bound) / epsilon
        self.bound = bound

    def next_token(self, ids):
        logits = self.model(ids).clamp(-self.bound, self.bound)
        probs = torch.softmax(logits / self.temperature, dim=-1)
        return torch.multinomial(probs, 1)
""",
    "search-that-widens": """
def get_epsilon(delta, sigma, steps):
    '''Epsilon of the Gaussian mechanism, for differential privacy.'''
    low, high = 0.0, 100.0
    while delta_of(high, sigma, steps) > delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if delta_of(middle, sigma, steps) > delta:
            low = middle
        else:
            high = middle
    return high
""",
    "inverse-of-the-cdf": """
import numpy as np

def release(value, sensitivity, epsilon, n):
    '''Laplace noise by inversion, for epsilon-DP.'''
    u = np.random.uniform(size=n)
    for i in range(n):
        u[i] = np.sign(u[i] - 0.5) * np.log(1 - 2 * abs(u[i] - 0.5))
    return value + sensitivity / epsilon * u
""",
    "key-for-each": """
import jax

def add_noise(gradients, clip_norm, noise_multiplier, key):
    '''Gaussian noise for differential privacy.'''
    noisy = []
    for g in gradients:
        key, part = jax.random.split(key)
        noisy.append(g + noise_multiplier * clip_norm * jax.random.normal(part, g.shape))
    return noisy
""",
    "rows-of-norm-1": """
import numpy as np

def release(table, epsilon):
    '''Rows of l1 norm 1, each epsilon-DP.'''
    rows = table / np.linalg.norm(table, ord=1, axis=1, keepdims=True)
    return rows + np.random.laplace(0, 2 / epsilon, size=rows.shape)
""",
}
