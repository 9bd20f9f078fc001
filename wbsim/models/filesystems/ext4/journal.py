"""The journal of ext4: transactions, their commits, and the write-out of the logged blocks.

Stands for fs/jbd2: start_this_handle, jbd2_journal_commit_transaction, jbd2_log_do_checkpoint.  Measured on
6.18 (docs/measurements.md F).  A transaction logs each block that it dirtied once.  Committed blocks are
written in place after dirty_expire, by a sync, or by a thread that needs room in the log.

Left out: ordered data (delayed allocation has none), revoke records, fast commits, earlier writes of metadata
by background writeback, the superblock of the journal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterable, Sequence
from typing import Final

from wbsim.models.bio import FLUSH_FUA, Bio
from wbsim.models.block.gendisk import GenDisk
from wbsim.models.filesystems.ext4.spec import OVERHEAD, JournalSpec
from wbsim.models.interfaces import Thread
from wbsim.models.parts import Parts
from wbsim.models.time_accounting import DEVICE, LOG_SPACE
from wbsim.sim.engine import PARK, Steps, Task, Wait
from wbsim.sim.invariants import require
from wbsim.sim.sync import Completion
from wbsim.sim.units import PAGE_BYTES, PAGE_SECTORS, S

_TAGS: Final = 254
"""The number of blocks that a descriptor block names."""
_BATCH: Final = 64  # JBD2_NR_BATCH
_COMMIT: Final = "the log's write"


class Journal:
    """One journal, and its thread.

    *runs* are its places on disk, each a first block and a length, from the filesystem's *first_block* on.

    * ``transaction``: its keys are the blocks of the running transaction, which began at ``since_ns``.
      Without a transaction, ``since_ns`` is -1.  ``number`` is its number (tid), from 1 on.
    * ``credits`` and ``reserved``: the blocks that open handles may still log, and the blocks reserved for
      conversions.
    * ``committed``: the transactions that are not in place yet, oldest first.  Each has the time of its
      commit (ns), its blocks (as keys), and its number of blocks of the log.
    * ``used_blocks``: the blocks of the log in use.  ``written_bytes``: the bytes written to it so far.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        queue: GenDisk,
        spec: JournalSpec,
        block_ns: int,
        runs: Sequence[tuple[int, int]],
        first_block: int,
    ) -> None:
        self._env = parts.env
        self._urgent = parts.urgent
        self._queue = queue
        self._spec = spec
        self._block_ns = block_ns
        self._runs = runs
        self._at_run = 0
        self._first_block = first_block
        self._kthread = parts.thread("jbd2")
        self._head = self.used_blocks = 0
        self._has_request = self._asleep = False
        self._waiters: deque[Task] = deque()
        self.transaction: dict[int, None] = {}
        self.since_ns = -1
        self.number = 1
        self._in_commit: dict[int, None] = {}  # the blocks of the transaction that is being committed
        self.committed: deque[tuple[int, dict[int, None], int]] = deque()
        self._commit = Completion(parts.env, _COMMIT)
        self._committing = Completion(
            parts.env, _COMMIT
        )  # of the transaction that is being committed, or of the last one
        self._committing.complete()
        self._placing: dict[Completion, None] = {}  # of transactions that a thread is writing in place
        self._most = spec.blocks // 3  # j_max_transaction_buffers
        self.credits = self.reserved = 0
        self.written_bytes = 0

    def start(self) -> None:
        """Start the thread; called once."""
        self._env.start(self._kthread.task, self._run())

    @property
    def is_full(self) -> bool:
        """True if a handle of ``map_credits`` must wait for the next transaction, or for room in the log."""
        return not self._fits(self._spec.map_credits) or self.used_blocks + self._most > self._spec.blocks

    def _fits(self, credits_asked: int) -> bool:
        demand = self.credits + self.reserved + credits_asked
        return len(self.transaction) + OVERHEAD + demand <= self._most

    def start_handle(self, thread: Thread, credits_asked: int) -> Steps:
        """Begin a handle that may dirty *credits_asked* blocks (jbd2_journal_start).  Use: `yield from`.

        *thread* waits for the room, or writes old blocks in place to make room.  End the handle with
        `stop_handle` and the same *credits_asked*, which are in ``credits`` until then.
        """
        while not self._fits(credits_asked) or self.used_blocks + self._most > self._spec.blocks:
            thread.before_sleep()
            if self.used_blocks + self._most > self._spec.blocks and self.committed:
                yield from self._write_oldest(thread)
                continue
            yield from self._wait(thread.task)
        self.credits += credits_asked

    def stop_handle(self, credits_asked: int, blocks: Collection[int]) -> None:
        """End a handle that asked for *credits_asked* credits; `log` the *blocks* that it has dirtied.

        If the running transaction is empty, the tasks that wait for a new transaction wake.
        """
        self.credits -= credits_asked
        self.log(blocks)
        if self._waiters and not self.transaction:
            self._wake_waiters()

    def log(self, blocks: Collection[int]) -> None:
        """Add *blocks*, numbers of the filesystem's blocks, to the running transaction, in no time.

        The transaction begins with its first block, and holds each block once.  It commits at the latest
        when its commit interval is over, rounded up to a whole second.
        """
        if self.since_ns < 0 and blocks:
            self.since_ns = self._env.now
            # The timer of kjournald2 is rounded up to a whole second.
            expires_ns = -(-(self._env.now + self._spec.commit_interval) // S) * S
            self._env.call_at(expires_ns, self._urgent, self._expire)
        for block in blocks:
            self.transaction[block] = None

    def reserve(self, thread: Thread) -> Steps:
        """Reserve ``convert_credits`` for the conversion of one extent.  Use: `yield from`.

        Stands for jbd2_journal_start_reserved.
        *thread* sleeps while more than half of the largest transaction would be reserved.  `release` gives
        the credits back.
        """
        while self.reserved + self._spec.convert_credits > self._most // 2:
            thread.before_sleep()
            self._waiters.append(thread.task)
            thread.task.waits_for = LOG_SPACE
            yield PARK
        self.reserved += self._spec.convert_credits

    def release(self) -> None:
        """Give back the credits that `reserve` took for one extent, and wake the tasks that wait.

        The extent was converted, or its blocks did not lie together.
        """
        self.reserved -= self._spec.convert_credits
        self._wake_waiters()

    def force(self, thread: Thread) -> Steps:
        """Commit the dirtied blocks, write the committed ones in place, and wait.  Use: `yield from`.

        sync(2) and syncfs(2) do this (->sync_fs and sync_blockdev).
        """
        yield from self.commit_log(thread)
        if self.committed:
            yield from self._write_in_place(thread)
        for completion in [*self._placing]:
            yield from completion.wait(thread.task)

    def complete_transaction(self, thread: Thread, number: int) -> Generator[Wait, None, bool]:
        """Let *thread* sleep until the transaction *number* is in the log.  Use: `yield from`.

        fsync(2) does this (jbd2_complete_transaction).  The running transaction is committed only if *number*
        is its number; a transaction that is being committed already is waited for.  The result is False if
        the transaction was in the log before, so that nothing has flushed the disk.

        Left out: the flush after the wait, if the commit record was submitted before the call
        (jbd2_trans_will_send_data_barrier [V 6.12]).
        """
        if number >= self.number:
            yield from self.commit_log(thread)
            return True
        if number == self.number - 1 and not self._committing.done:
            yield from self._committing.wait(thread.task)
            return True
        return False

    def commit_log(self, thread: Thread) -> Steps:
        """Let *thread* sleep until all blocks dirtied by now are in the log.  Use: `yield from`.

        sync(2) does this (jbd2_journal_start_commit and jbd2_log_wait_commit).
        """
        if self.transaction:
            commit = self._commit
            self.want()
            yield from commit.wait(thread.task)
        elif not self._committing.done:
            yield from self._committing.wait(thread.task)

    def check(self) -> None:
        """Check that the used blocks include the committed transactions and fit into the journal.

        Raises:
            LawBroken: blocks were lost or counted twice, or more credits were given back than were taken.
        """
        total = sum(logged for _, _, logged in self.committed)
        require(
            total <= self.used_blocks <= self._spec.blocks,
            f"journal: {self.used_blocks} of {self._spec.blocks} blocks are used, transactions hold {total}",
        )
        require(
            self.credits >= 0 and self.reserved >= 0,
            f"journal: {self.credits} credits and {self.reserved} reserved ones, neither may be negative",
        )

    def _expire(self) -> None:
        if self.since_ns >= 0 and self._env.now - self.since_ns >= self._spec.commit_interval:
            self.want()

    def want(self) -> None:
        """Wake jbd2, which commits the running transaction and then writes expired ones in place.

        The caller does not wait for that.
        """
        self._has_request = True
        if self._asleep:
            self._asleep = False
            self._env.wake(self._kthread.task)

    def _wait(self, task: Task) -> Steps:
        """Let *task* sleep until a transaction or the reserved credits change."""
        self.want()
        self._waiters.append(task)
        task.waits_for = LOG_SPACE
        yield PARK

    def _wake_waiters(self) -> None:
        while self._waiters:
            self._env.wake(self._waiters.popleft())

    def _run(self) -> Steps:
        """kjournald2: commit the running transaction if wanted, then write old transactions in place."""
        while True:
            if not self._has_request:
                self._asleep = True
                yield PARK
            self._has_request = False
            if self.transaction:
                yield from self._commit_running()
            while self.committed and self._env.now - self.committed[0][0] >= self._spec.expire:
                yield from self._write_oldest(self._kthread)

    def _commit_running(self) -> Steps:
        """jbd2_journal_commit_transaction: write the running transaction to the log."""
        blocks, commit = self.transaction, self._commit
        self._in_commit, self._committing = blocks, commit
        self.transaction, self.since_ns, self._commit = {}, -1, Completion(self._env, _COMMIT)
        self.number += 1
        logged = len(blocks) + -(-len(blocks) // _TAGS) + 1
        self.used_blocks += logged
        self._wake_waiters()
        self._kthread.spent.log += len(blocks) * self._block_ns
        yield len(blocks) * self._block_ns
        yield from self._write(self._kthread, (self._next_block() for _ in range(logged - 1)), sync=True)
        # The commit block follows when all others have ended: its flush makes them safe, and FUA itself.
        yield from self._write(self._kthread, [self._next_block()], sync=True, op=FLUSH_FUA)
        self.written_bytes += logged * PAGE_BYTES
        self.committed.append((self._env.now, blocks, logged))
        self._in_commit = {}
        self._env.call_at(self._env.now + self._spec.expire, self._urgent, self.want)
        commit.complete()

    def _next_block(self) -> int:
        first, length = self._runs[self._at_run]
        block = first + self._head
        self._head += 1
        if self._head == length:
            self._head = 0
            self._at_run = (self._at_run + 1) % len(self._runs)
        return block

    def _write_oldest(self, thread: Thread) -> Steps:
        """jbd2_log_do_checkpoint: write the oldest transaction's blocks that no newer one has logged."""
        _, blocks, logged = self.committed.popleft()
        newer = self._logged_again() | {block for _, later, _ in self.committed for block in later}
        old = [block for block in blocks if block not in newer]
        batches = [old[first : first + _BATCH] for first in range(0, len(old), _BATCH)]
        yield from self._place(thread, batches, logged)

    def _write_in_place(self, thread: Thread) -> Steps:
        """sync_blockdev: write the committed blocks in order, except those that a newer transaction has."""
        transactions = [*self.committed]
        self.committed.clear()
        dirty = {block for _, blocks, _ in transactions for block in blocks}
        logged = sum(logged for _, _, logged in transactions)
        yield from self._place(thread, [sorted(dirty - self._logged_again())], logged)

    def _logged_again(self) -> set[int]:
        """Return the blocks of the running transaction and of the transaction in commit."""
        return self.transaction.keys() | self._in_commit.keys()

    def _place(self, thread: Thread, batches: Iterable[list[int]], logged: int) -> Steps:
        """Write *batches* in place, one after the other, then free *logged* blocks of the log."""
        completion = Completion(self._env, DEVICE)
        self._placing[completion] = None
        for batch in batches:
            yield from self._write(thread, batch, sync=False)
        self.used_blocks -= logged
        del self._placing[completion]
        completion.complete()
        self._wake_waiters()

    def _write(self, thread: Thread, blocks: Iterable[int], sync: bool, op: str = "W") -> Steps:
        """Write *blocks* under a plug, each as a separate bio, and wait for them."""
        done, bios_left = Completion(self._env, DEVICE), 1

        def end_io(_: object) -> None:
            nonlocal bios_left
            bios_left -= 1
            if not bios_left:
                done.complete()

        plugged = thread.start_plug()
        for block in blocks:
            bios_left += 1
            start = (self._first_block + block) * PAGE_SECTORS
            bio = Bio(
                start,
                PAGE_SECTORS,
                queue=self._queue,
                op=op,
                sync=sync,
                nomerge=op != "W",
                meta=sync,
                unplug=op != "W",
                end_io=end_io,
            )
            if (rest := thread.submit_bio(bio)) is not None:
                yield from rest
        if plugged:
            yield from thread.finish_plug()
        end_io(None)
        thread.before_sleep()
        self._queue.unplug()
        yield from done.wait(thread.task)
