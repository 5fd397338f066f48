"""A tiny package for tests: a wheel in a folder, which pip installs without a network."""

import zipfile
from pathlib import Path

CODE = """\
import random


def told(bit):
    return bit if random.random() < 0.75 else 1 - bit


def dies(bit):
    raise SystemExit(3)
"""


def make_wheel(folder: Path, name: str = "tinycoin", version: str = "1.0") -> None:
    """Write the wheel of a module that reports a bit truthfully with probability 3/4: its epsilon is ln 3."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": CODE,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    listed = [*files, f"{about}/RECORD"]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{about}/RECORD": "".join(f"{one},,\n" for one in listed)}.items():
            wheel.writestr(path, text)


RECORD = """\
package = "tinycoin"
version = "1.0"
mechanism = "told"
epsilon = {epsilon}
pair = [0, 1]
neighbours = "two bits"
source = "nowhere"
why = "it is told with probability 3/4"
runs = 2000
subject = '''
import tinycoin


def mechanism(x):
    return tinycoin.{function}(x)
'''
"""


def write_record(folder: Path, name: str, epsilon: str, function: str = "told") -> None:
    """Write the record of a function of this package."""
    (folder / f"{name}.toml").write_text(RECORD.format(epsilon=epsilon, function=function))
