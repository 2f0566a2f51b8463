"""The whole fault campaign: `make faults`, or `make faults ARGS="F-A2 F-B1 --seed 7 --short"`.

A code stands for all its variants: F-A1 for F-A1-refresh too, F-S for everything from F-S1 on.

One JSON line per run, to the terminal and to faults.jsonl; a code that has a clean line of the same
commit there is not run again (delete the file to start over). Exit code 1 if anything was violated
or a fault never fired.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from livewell.db import embedded
from tests.faults.scenario import Findings, Scale, Scenario, scenarios

LOG = Path("faults.jsonl")


def main() -> int:
    """Run what was asked for, print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("codes", nargs="*", help="F-A1 … ; all when none is given")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--short", action="store_true", help="the short form that the tests use")
    arguments = parser.parse_args()
    known = list(scenarios())
    unknown = set(arguments.codes) - {name for scenario in known for name in names(scenario)}
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there are {', '.join(scenario.code for scenario in known)}")
    commit = _commit()
    done = _done(commit, short=arguments.short)
    asked = set(arguments.codes)
    wanted = [s for s in known if (names(s) & asked if asked else s.code not in done)]
    folder = Path(tempfile.mkdtemp(prefix="livewell-faults-"))
    folder.chmod(0o755)
    server = embedded.start(folder / "server", parameters={"max_connections": "300"})
    bad = 0
    try:
        for scenario in wanted:
            line = asyncio.run(_run(scenario, server.dsn, folder, arguments.seed, full=not arguments.short))
            line |= {"commit": commit, "full": not arguments.short}
            print(json.dumps(line), flush=True)
            with LOG.open("a") as log:
                log.write(json.dumps(line) + "\n")
            bad += not line["ok"]
    finally:
        embedded.stop(folder / "server", mode="immediate")
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


async def _run(scenario: Scenario, server: str, folder: Path, seed: int, *, full: bool) -> dict[str, Any]:
    work = folder / scenario.code
    work.mkdir(exist_ok=True)
    work.chmod(0o777)
    started = time.monotonic()
    try:
        findings = await scenario.run(Scale(full=full, seed=seed, server=server, folder=work))
    except Exception as error:  # noqa: BLE001 - a crash of one scenario is a line of the report, and the campaign goes on
        findings = Findings(violations=[f"the scenario itself failed: {type(error).__name__}: {error}"])
    ok = findings.skipped is not None or (findings.fired > 0 and not findings.violations)
    return {
        "code": scenario.code,
        "title": scenario.title,
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
        "ok": ok,
        **asdict(findings),
    }


def names(scenario: Scenario) -> set[str]:
    """F-A1-refresh is found as F-A1 too, and as F-A with its whole family."""
    return {scenario.code, "-".join(scenario.code.split("-")[:2]), scenario.code[:3]}


def _done(commit: str, *, short: bool) -> set[str]:
    if not LOG.exists():
        return set()
    lines = [json.loads(line) for line in LOG.read_text().splitlines()]
    return {line["code"] for line in lines if line["ok"] and line["commit"] == commit and line["full"] != short}


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
