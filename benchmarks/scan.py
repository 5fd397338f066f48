"""What `dpassay scan` finds by reading: known violations of released packages, and alarms on right code.

    python benchmarks/scan.py FOLDER

FOLDER has the wheels, or the unpacked sources, of the packages below; those that are missing are left out. The tables
of docs/scan.md are written from the result. The rules were written with these violations at hand, so the first table
shows what reading can see, not how it does on packages that nobody has looked at.
"""

import sys
import time
from pathlib import Path

from dpassay.scan.findings import Scan
from dpassay.scan.scanning import scan_path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scan.md"
MARK = "<!-- written by benchmarks/scan.py -->"
# Package, violation, the file it is in, and the words of a line that shows it; no rule is named.
KNOWN = [
    (
        "diffprivlib-0.6.6",
        "linear regression: one bound twice",
        "linear_regression.py",
        "bounds_X[0][i], bounds_X[0][i]",
    ),
    ("diffprivlib-0.6.6", "k-means: parts of the budget swapped", "k_means.py", "epsilon_0, epsilon_i = self"),
    ("diffprivlib-0.6.6", "naive Bayes: classes from the labels", "naive_bayes.py", "unique_y"),
    ("diffprivlib-0.6.6", "mean: one NaN shows", "utils.py", "np.nanmean"),
    ("diffprivlib-0.6.6", "nanmean: NaN counted", "utils.py", "array.size"),
    ("dp_diffractor-0.2.1", "default seed 42", "core.py", "default_rng(self.config.seed)"),
    ("dp_diffractor-0.2.1", "unknown words copied", "core.py", "return original_token"),
    ("dpmlm-1.3.0", "capitals kept", "core.py", "[0].isupper()"),
    ("mldp_text-0.1.2", "TEM: wrong weight of the far bucket", "mechanisms.py", "np.log(self.vocab_size"),
    ("mldp_text-0.1.2", "Vickrey: uses the input after the noise", "mechanisms.py", "Vickrey"),
    ("multi-freq-ldpy-0.2.5", "RS+FD: amplification for tuples", "RSpFD_solution.py", "np.log("),
    ("multi-freq-ldpy-0.2.5", "subset selection: place of the true value", "SS.py", "sub_set[0]"),
    ("opacus-1.6.0", "GDP accountant: a limit, not a bound", "gdp.py", "noise_multiplier ** (-2)"),
    ("petina-0.0.19", "bounds from quantiles of the data", "clipping.py", "applyClipping(values, lower_bound"),
    ("petina-0.0.19", "count sketch: a factor of 0.01", "core.py", "sensitivity * gamma / epsilon"),
    ("petina-0.0.19", "classic Gaussian formula at any ε", "core.py", "np.log(1.25 / delta)"),
    ("petina-0.0.19", "pruning before the noise", "core.py", "applyPruning("),
    ("petina-0.0.19", "unary encoding: domain from the data", "bit_perturbation_and_encoding.py", "unique_domain"),
    ("pure_ldp-1.1.2", "unary encoding: bit never reset", "ue_client.py", "oh_vec[index] = 1"),
    ("pure_ldp-1.2.0", "RAPPOR: bit never reset", "rappor_client.py", "data[i] = 1"),
    ("pure_ldp-1.2.0", "Hadamard: type of the output shows", "hadamard_mechanism_client.py", "zip("),
    ("smartnoise_synth-1.0.8", "MWEM: range from the data", "mwem.py", "bins=dims_sizes"),
    ("dp_fusion_lib-0.1.0", "divergence divided by the order", "epsilon.py", "(d / alpha)"),
    ("dp_fusion_lib-0.1.0", "first token never charged", "generation.py", "append("),
    ("llama_index_packs_diff_private_simple_dataset-0.4.1", "labels from the data", "base.py", "self.labels = list("),
    (
        "llama_index_packs_diff_private_simple_dataset-0.4.1",
        "rate of what is generated",
        "base.py",
        "sample_rate = size",
    ),
    ("flwr-1.42.0", "clipping norm changed before the noise", "dp_adaptive_clipping.py", "self.clipping_norm *="),
    ("flwr-1.42.0", "weights by number of examples", "dp_fixed_clipping.py", "aggregate_fit"),
    ("flwr-1.42.0", "LocalDpMod: classic formula at any ε", "localdp_mod.py", "np.log(1.25 / self.delta)"),
    ("synthcity-0.2.12", "PrivBayes: noise of a mean on counts", "plugin_privbayes.py", "(n_items * self.epsilon)"),
]
RIGHT = ["opendp-0.16.0", "dp_accounting-0.6.0", "jax_privacy-2.0.0", "opacus-1.6.0", "pipeline_dp-0.3.1", "pfl-0.6.0"]


def place_of(folder: Path, package: str) -> Path | None:
    found = [folder / package, *folder.glob(f"{package}-*.whl")]
    return next((one for one in found if one.exists()), None)


def scanned(folder: Path, package: str, known: dict[str, tuple[Scan, float]]) -> Scan | None:
    place = place_of(folder, package)
    if place is None:
        return None
    if package not in known:
        start = time.process_time()
        known[package] = scan_path(place), time.process_time() - start
    return known[package][0]


def tables(folder: Path) -> str:
    done: dict[str, tuple[Scan, float]] = {}
    rows = ["| package | known violation | found by reading | rule |", "| --- | --- | --- | --- |"]
    seen = hits = 0
    for package, what, file, words in KNOWN:
        scan = scanned(folder, package, done)
        if scan is None:
            continue
        seen += 1
        found = [one for one in scan.alarms if one.place.file.endswith(file) and words in one.code]
        hits += bool(found)
        where = f"line {found[0].place.line}" if found else "no"
        rows.append(f"| {package} | {what} | {where} | {found[0].rule if found else ''} |")
    right = ["| right code | lines | mechanisms | alarms | CPU seconds |", "| --- | --- | --- | --- | --- |"]
    lines = alarms = 0
    for package in [*RIGHT, "dpassay"]:
        scan = scanned(folder, package, done) if package != "dpassay" else scanned(ROOT / "src", package, done)
        if scan is None:
            continue
        lines, alarms = lines + scan.lines, alarms + len(scan.alarms)
        numbers = f"{scan.lines:,} | {len(scan.mechanisms)} | {len(scan.alarms)} | {done[package][1]:.1f}"
        right.append(f"| {package} | {numbers} |")
    said = f"Found by reading, at the line: {hits} of {seen}."
    rate = f"Alarms above information on right code: {alarms} in {lines:,} lines, one per {lines // max(alarms, 1):,}."
    return "\n\n".join([said, "\n".join(rows), rate, "\n".join(right)])


def main() -> None:
    text = tables(Path(sys.argv[1]))
    before = PAGE.read_text(encoding="utf-8").split(MARK)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{MARK}\n\n{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
