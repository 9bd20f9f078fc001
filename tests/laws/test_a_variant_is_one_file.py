"""A toy of each: filesystem, flusher, workload, device and I/O scheduler, in a file that no other names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOY_FILESYSTEM = '''
"""Blocks in order of writeback; no locks, no log."""
from typing import Literal
from wbsim.models.filesystems.spec import FilesystemSpec
from wbsim.models.bio import Bio
from wbsim.models.interfaces import Inode

class ToySpec(FilesystemSpec):
    kind: Literal["toyfs"] = "toyfs"

class Toy:
    group_label, group_blocks, log_bytes = "group", 1 << 20, 0
    def __init__(self, *, parts, sb, spec, rules, writer_costs, flusher_costs, cache):
        self.names, self.sb, self.queue, self.next_block = self, sb, sb.bdi.queue, 0
    def root(self):
        return None
    def mkdir(self, thread):
        yield 1_000
    def create(self, caller, directory):
        yield caller.lead_ns + 5_000 + caller.then_ns
        return Inode(self.sb, self.sb.bdi.wb_of(0, self.next_block, 0))
    def append(self, inode, pages): return pages
    def write(self, inode, indices, call_pages): return len(indices), len(indices)
    def make_way(self, thread, inode): yield 0
    def close(self, inode, has_name=False): pass
    def writes_before_close(self, inode): return False
    def write_pages(self, thread, inode, wbc):
        pages, flight = inode.dirty_pages, self.sb.flight
        inode.dirty_pages = 0
        flight.add(inode.wb, pages)
        bio = Bio(8 * self.next_block, 8 * pages, segments=1, queue=self.queue,
                  end_io=lambda _: flight.end(inode.wb, pages))
        self.next_block += pages
        if (rest := thread.submit_bio(bio)) is not None:
            yield from rest
        wbc.nr_to_write -= pages
    def sync_fs(self, thread): yield 0
    def group_of(self, inode): return 0
    def layouts(self): return ()
    def extents_per_file(self): return ()
    def check(self): pass

SPEC, COMPONENT = ToySpec, Toy
'''
TOY_FLUSHER = '''
"""Two contexts, odd and even."""
from typing import Literal
from wbsim.models.flushers.spec import FlusherSpec
from wbsim.models.writeback.context_thread import ContextFlushers

class ToySpec(FlusherSpec):
    kind: Literal["toy_flusher"] = "toy_flusher"

class Toy(ContextFlushers):
    def __init__(self, *, spec, **parts):
        super().__init__(contexts=lambda bdi: 2, places=lambda group, number, cpu: number, **parts)

SPEC, COMPONENT = ToySpec, Toy
'''
TOY_WORKLOAD = '''
"""touchall N DIR: N files of a page."""
from typing import ClassVar, Literal
from wbsim.models.workloads.program import Program
from wbsim.models.workloads.spec import Iteration, WorkloadSpec
from wbsim.sim.param import assumed

class ToySpec(WorkloadSpec):
    programs: ClassVar = ("touchall",)
    costs: ClassVar = {"think_ns": assumed(1_000, "a toy", 0, 9_000)}
    kind: Literal["toy_workload"] = "toy_workload"
    files: int
    think_ns: int
    total_files = property(lambda self: self.files)
    bytes_each = property(lambda self: 4096)
    @classmethod
    def fields_of(cls, lines):
        _, files, directory = lines[0].split()
        return {"kind": "toy_workload", "files": int(files), "directories": [directory]}

class Toy(Program):
    share_done = 0.0
    def __init__(self, *, parts, spec, program_scale, start_ns, calls, on_end):
        super().__init__(parts, calls, 0, on_end)
        self.env, self.spec = parts.env, spec
        parts.begin(self.family.parent.task, self.run(self.family.parent), start_ns)
    def run(self, process):
        folder = yield from process.mkdir(self.spec.directories[0])
        for _ in range(self.spec.files):
            process.works(self.spec.think_ns, 0)
            inode = yield from process.creat(folder, pages=1)
            yield process.write(inode, 1, closes=True)
            yield process.close(inode) or 0
        self.on_iteration(Iteration(self.spec.files, 1.0, 0, self.env.now))
        self.on_end()

SPEC, COMPONENT = ToySpec, Toy
'''
TOY_DEVICE = '''
"""A link that takes as long for each request, one after another."""
from typing import Literal
from wbsim.models.devices.in_order import InOrder
from wbsim.models.devices.spec import DeviceSpec

class ToySpec(DeviceSpec):
    kind: Literal["toy_device"] = "toy_device"
    each_ns: int = 5_000

class Toy:
    def __init__(self, *, env, spec, name):
        self.env, self.spec, self.free_ns = env, spec, 0
        self.ends = InOrder(env)
    def uses(self): return {"link": 0}
    def submit(self, request, done):
        self.free_ns = max(self.free_ns, self.env.now) + self.spec.each_ns
        self.ends.add(self.free_ns, done)

SPEC, COMPONENT = ToySpec, Toy
'''
TOY_SCHEDULER = '''
"""The newest request goes first; up to `most` requests wait as long as a request is in the device."""
from typing import ClassVar, Literal
from wbsim.models.io_schedulers.spec import IoSchedulerSpec
from wbsim.sim.param import Count, specified

class NewestSpec(IoSchedulerSpec):
    """The newest first.

    * ``most``: the requests that may wait.
    """
    defaults: ClassVar = {"most": specified(2, "a toy")}
    scheduler: Literal["toy_newest"]
    most: Count

class Newest:
    sorts = True
    served = []
    def __init__(self, *, spec, rules):
        assert rules is None
        self.spec, self.waiting, self.in_device = spec, [], 0
    def allows(self, request, sync): return True
    def add(self, request, arrival): self.waiting.append(request)
    def remove(self, request): self.waiting.remove(request)
    def move(self, request, old_start): pass
    def next(self, now_ns):
        if self.in_device and len(self.waiting) <= self.spec.most:
            return None
        self.in_device += 1
        self.served.append(self.waiting[-1])
        return self.waiting[-1]
    def complete(self, request, now_ns): self.in_device -= request in self.served
    def check(self, waiting): assert set(waiting) == set(self.waiting)

SPEC, COMPONENT = NewestSpec, Newest
'''
RUN = '''
import sys
from wbsim.models import devices, filesystems, flushers, io_schedulers, workloads
for folder in (devices, filesystems, flushers, io_schedulers, workloads):
    folder.__path__.append(sys.argv[1] + "/" + folder.__name__.rsplit(".")[-1])
from wbsim.experiments.config.experiment import parse
from wbsim.experiments.running.simulate import run_case
text = """title = "toys"
[scenario]
machine.like = "loop-vm"
machine.disks.loop0.device = { kind = "toy_device" }
machine.disks.loop0.queue.elevator.scheduler = "toy_newest"
kernel.like = "6.18"
kernel.flusher.kind = "toy_flusher"
filesystem = { kind = "toyfs", size = "1 GiB" }
workload.command = "touchall 300 /x"
sync_after = true
"""
outcome = run_case(parse(text, "toys.toml").cases[0], 1)
print(outcome.files, sum(disk.sectors for disk in outcome.disks.values()), sorted(outcome.locks))
assert all(disk.busy_time >= 5e-6 * disk.ios for disk in outcome.disks.values())
from wbsim.models.io_schedulers.toy_newest import Newest
assert len(Newest.served) == sum(disk.ios for disk in outcome.disks_at_end.values()) > 0
'''


def test_toy_variants_run_without_a_change_of_other_files(tmp_path: Path) -> None:
    """Toy variants are found by their folders and run if a configuration names them; no other file does."""
    for folder, name, text in (
        ("filesystems", "toyfs", TOY_FILESYSTEM), ("flushers", "toy_flusher", TOY_FLUSHER),
        ("workloads", "toy_workload", TOY_WORKLOAD), ("devices", "toy_device", TOY_DEVICE),
        ("io_schedulers", "toy_newest", TOY_SCHEDULER),
    ):  # fmt: skip
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").write_text(text)
    run = subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("300 ")
    assert "'loop0/queue_lock', 'loop0:0/list_lock', 'loop0:1/list_lock'" in run.stdout
