"""Functions that Numba compiles, and the directory that keeps their code."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numba
import numpy as np
import pytest

from tests.harness import FIO, loop_config
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case
from wbsim.models.arrays import compiled as module
from wbsim.models.arrays.compiled import compiled
from wbsim.sim import COMPILED

MODELS = Path(__file__).parents[3] / "wbsim" / "models"


@compiled
def sum_of_doubled(numbers: np.ndarray) -> int:  # type: ignore[type-arg]
    total = 0
    for number in numbers:
        total += 2 * number
    return total


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
def test_numba_compiles_a_function_and_keeps_its_code() -> None:
    """Numba compiles the function in nopython mode and without Numba's own runtime."""
    assert sum_of_doubled(np.arange(4)) == 12
    assert sum_of_doubled.py_func(np.arange(4)) == 12  # type: ignore[attr-defined]
    assert sum_of_doubled.dispatcher.targetoptions["nopython"]  # type: ignore[attr-defined]
    assert not sum_of_doubled.dispatcher.targetoptions["_nrt"]  # type: ignore[attr-defined]
    assert sum_of_doubled.dispatcher._cache.cache_path  # type: ignore[attr-defined]


def test_arrays_of_another_type_choose_other_code() -> None:
    """Blocks beyond 2^31 are 64 bits wide, those of other files 32; a call of either takes its own code."""
    narrow, wide = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int64) << 40
    for numbers in (narrow, wide, narrow, wide):
        assert sum_of_doubled(numbers) == 2 * int(numbers.sum())
    for _ in range(2):
        with pytest.raises(Exception, match="str"):
            sum_of_doubled("text")  # type: ignore[arg-type]
        assert sum_of_doubled(narrow) == 12
        assert sum_of_doubled(wide) == 12 << 40


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
def test_each_type_of_arrays_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a large disk have both widths of block numbers, and calls take turns between them."""

    @compiled
    def first_of(numbers: np.ndarray) -> int:  # type: ignore[type-arg]
        return int(numbers[0])

    looks: list[object] = []
    choose = module.Compiled._choose

    def look(self: module.Compiled, *arguments: object) -> object:
        looks.append(arguments)
        return choose(self, *arguments)

    arrays = [np.full(2, 7, kind) for kind in (np.int32, np.int64, np.uint8)]
    monkeypatch.setattr(module.Compiled, "_choose", look)
    function = module.Compiled(first_of.dispatcher)  # type: ignore[attr-defined]
    assert [function(arrays[turn % 3]) for turn in range(12)] == [7] * 12
    assert len(looks) == 3


def test_kept_code_moves_when_a_file_with_compiled_functions_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of the directory has a digest of all files that use `compiled`.

    If the folder of the models is read-only, the directory is in the home folder.
    """
    (tmp_path / "block").mkdir()
    user, other = tmp_path / "block" / "user.py", tmp_path / "block" / "other.py"
    user.write_text("from wbsim.models.arrays.compiled import compiled\n")
    other.write_text("x = 1\n")
    first = module.kept_in(tmp_path, "light")
    assert first.parent == tmp_path / "__pycache__"
    assert first.name.startswith("numba-light-")
    assert len(first.name) == len("numba-light-") + 16
    assert module.kept_in(tmp_path, "compiled").name == first.name.replace("light", "compiled")
    other.write_text("x = 2\n")
    assert module.kept_in(tmp_path, "light") == first
    user.write_text("from wbsim.models.arrays.compiled import compiled  # once more\n")
    assert module.kept_in(tmp_path, "light") != first
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    assert module.kept_in(tmp_path, "light").parent == Path.home() / ".cache" / "wbsim"
    assert str(module.kept_in(MODELS, "compiled" if COMPILED else "light")) == numba.config.CACHE_DIR  # type: ignore[attr-defined]


def is_held(lock: Path) -> bool:
    """Return whether another process would wait for *lock*."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_one_process_compiles_at_a_time(tmp_path: Path) -> None:
    """The lock creates its folder, lets its holder take it again, and is free after the last release."""
    path = tmp_path / "new" / "lock"
    lock = module.OneAtATime(path)
    with lock:
        assert is_held(path)
        with lock:
            assert is_held(path)
        assert is_held(path)
    assert not is_held(path)
    with pytest.raises(ZeroDivisionError), lock:
        raise ZeroDivisionError
    assert not is_held(path)


def test_compilation_holds_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`under_lock` holds the lock during the call and returns the result of the call."""
    path = tmp_path / "lock"
    monkeypatch.setattr(module, "compiling", module.OneAtATime(path))
    assert module.under_lock(lambda signature: (signature, is_held(path)))("a signature") == (
        "a signature", True,
    )  # fmt: skip
    assert not is_held(path)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
def test_every_compiled_function_is_compiled_under_the_lock() -> None:
    """The lock lies in the directory of the kept code, so every user of that code waits for it."""
    assert sum_of_doubled.dispatcher.compile.__qualname__.startswith("under_lock")  # type: ignore[attr-defined]
    assert module.compiling._path == Path(numba.config.CACHE_DIR) / "lock"  # type: ignore[attr-defined]


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")  # type: ignore[attr-defined]
@pytest.mark.parametrize("kernel", ["2.6.39", "3.2", "6.18"])
@pytest.mark.parametrize("filesystem", ["loop-xfs", "loop-ext4"])
def test_a_machine_calls_each_function_with_one_set_of_types(
    kernel: str, filesystem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call with other types than the one before takes as much time as the first."""
    seen: dict[str, set[tuple[object, ...]]] = defaultdict(set)

    def look(self: module.Compiled, *arguments: object) -> object:
        seen[self.py_func.__qualname__].add(tuple(map(self.dispatcher.typeof_pyval, arguments)))
        return self.dispatcher(*arguments)

    monkeypatch.setattr(module.Compiled, "__call__", look)
    command = f"{FIO} --rw=randwrite --bs=2k --filesize=6m --nrfiles=2 --name=a --directory=/a"
    text = loop_config(command, dirty_mib=4, kernel=kernel, filesystem=filesystem, more="sync_after = true")
    (case,) = parse(text, "types.toml").cases
    run_case(case, 1)
    assert len(seen) > 5
    assert {name: types for name, types in seen.items() if len(types) > 1} == {}


NOT_COMPILED = """\
from wbsim.experiments.config.experiment import parse
from wbsim.models.machine import build
from tests.harness import FIO, loop_config
for filesystem in ("loop-xfs", "loop-ext4"):
    command = f"{FIO} --rw=randwrite --nrfiles=2 --filesize=2m --name=a"
    (case,) = parse(loop_config(command, dirty_mib=2, filesystem=filesystem), "x.toml").cases
    machine = build(case.scenario, 1)
    machine.run()
    print(machine.env.now)
"""  # noqa: RUF027  a script, in which the braces are its own


def test_interpreted_functions_give_the_result_of_compiled_ones() -> None:
    """NUMBA_DISABLE_JIT=1 does not change a run; tests with planted faults use it to save compilations."""
    ends = set()
    for disabled in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        environment["WBSIM_ENGINE"] = "" if COMPILED else "light"
        run = subprocess.run(
            [sys.executable, "-c", NOT_COMPILED], env=environment, capture_output=True, text=True, check=True
        )
        ends.add(run.stdout)
    assert len(ends) == 1
    assert len(ends.pop().split()) == 2
