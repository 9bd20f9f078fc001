"""The CPU time of P13 against that of another commit: ``make bench AGAINST=COMMIT``.

Both commits run the compiled engine, each built from its own sources with the same compiler and libraries.
The tree and the build of the other commit are in ``.bench/COMMIT``.  A pair is a run of each commit.  The
order changes from pair to pair, because the speed of the machine drifts.  The ratio of a pair is the CPU time
of this commit over that of the other; below 1, this commit is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
OF_THE_HOST: Final = ("cpu_s", "peak_rss_mib")
"""Fields of an outcome that the simulating machine decides."""


class Tree(NamedTuple):
    """Sources of one commit, in *root*; *path* is the PYTHONPATH under which they run, compiled."""

    name: str
    root: Path
    path: str


def this_tree() -> Tree:
    """Return the working tree, whose engine `make compiled` has built."""
    return Tree("this", ROOT, str(ROOT))


def tree_of(commit: str) -> Tree:
    """Return the sources of *commit* with their engine, which the first call builds.

    Raises:
        SystemExit: git knows no such commit, or the engine cannot be built.
    """
    known = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if known.returncode:
        sys.exit(f"bench: git knows no commit {commit}; give one that `git log` shows")
    sha = known.stdout.strip()
    folder = ROOT / ".bench" / sha[:12]
    root, site = folder / "tree", folder / "site"
    if not (site / "wbsim_compiled" / "digest").exists():
        root.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", sha], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", str(root)], input=archive.stdout, check=True)
        print(f"building the engine of {commit} (a minute or two)", file=sys.stderr)
        built = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(site)],
            cwd=root, env={**os.environ, "WBSIM_COMPILE": "1"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if built.returncode:
            sys.exit(f"bench: the engine of {commit} cannot be built:\n{built.stderr[-2_000:]}")
    return Tree(commit, root, f"{root}{os.pathsep}{site}")


def outcomes_of(tree: Tree, overrides: list[str]) -> dict[str, dict[str, Any]]:
    """Run P13 from *tree*, one variant after the other; return the outcomes of `wbsim run --json` by variant.

    Raises:
        SystemExit: the run fails.
    """
    config = tree.root / "experiments" / "configs" / "plug.toml"  # older commits find none by its name
    words = [sys.executable, "-m", "wbsim.experiments.cli", "run", str(config)]
    words += ["--json", "--jobs", "1", *(word for override in overrides for word in ("--set", override))]
    environment = {**os.environ, "PYTHONPATH": tree.path, "WBSIM_ENGINE": "compiled"}
    ran = subprocess.run(words, cwd=tree.root, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"bench: P13 of {tree.name} ends with status {ran.returncode}:\n{ran.stderr[-2_000:]}")
    return {outcome["variant"]: outcome for outcome in json.loads(ran.stdout)["outcomes"]}


def differing(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return the fields that both outcomes have and whose values differ, without those of the host."""
    shared = (ours.keys() & theirs.keys()) - set(OF_THE_HOST)
    return sorted(name for name in shared if ours[name] != theirs[name])


def ratios_of(ours: dict[str, dict[str, Any]], theirs: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Return *our* CPU time over *their* CPU time for each variant, and for ``both`` variants together."""
    ratios = {variant: ours[variant]["cpu_s"] / theirs[variant]["cpu_s"] for variant in ours}
    total, other = (sum(outcome["cpu_s"] for outcome in of.values()) for of in (ours, theirs))
    return {**ratios, "both": total / other}


def order_of(trees: tuple[Tree, Tree], pair: int) -> tuple[Tree, Tree]:
    """Return the order in which *trees* run in the pair of this number: reversed in every second pair."""
    return trees if pair % 2 == 0 else (trees[1], trees[0])


def main() -> None:
    """Print the CPU time and the memory of each variant, and the ratios of the pairs."""
    parser = argparse.ArgumentParser(prog="make bench AGAINST=COMMIT", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as of wbsim run")
    given = parser.parse_args()
    trees = this_tree(), tree_of(given.commit)
    ratios: dict[str, list[float]] = {}
    for pair in range(given.pairs):
        ran = {tree: outcomes_of(tree, given.set) for tree in order_of(trees, pair)}
        ours, theirs = (ran[tree] for tree in trees)
        for variant, outcome in ours.items():
            other = theirs[variant]
            differ = differing(outcome, other)
            print(
                f"{variant:>10}: {outcome['cpu_s']:.1f} s of CPU against {other['cpu_s']:.1f},"
                f" {outcome['peak_rss_mib']:.0f} MiB against {other['peak_rss_mib']:.0f};"
                f" {'other ' + ', '.join(differ) if differ else 'equal results'}",
                flush=True,
            )
        for variant, ratio in ratios_of(ours, theirs).items():
            ratios.setdefault(variant, []).append(ratio)
    for variant, of in ratios.items():
        print(
            f"{variant:>10}: median {median(of):.3f} of {given.pairs} pairs, {min(of):.3f} to {max(of):.3f}"
        )


if __name__ == "__main__":
    main()
