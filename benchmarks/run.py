"""All benchmarks, with a description of the machine."""

import os
import platform

import audits
import losses
import startup

if __name__ == "__main__":
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    startup.main()
    print()
    losses.main()
    print()
    audits.main()
