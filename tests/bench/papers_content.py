# SPDX-License-Identifier: GPL-2.0-or-later
"""What the papers' experiments ask for: files like WorldCup98's in HyLARD 4.3, fewer of them, and how often each.

HyLARD: 10,562 files, 16% of them of 500 KB or more, which hold 83% of the bytes. Here are an eighth as many, of such
sizes, since the policy's threshold is in KB. The rest is chosen as in the simulator: a bounded Pareto for the large
ones, a lognormal for the others, large files further down the order of popularity. Zipf's exponent is 0.8 and not the
trace's 1.16: among so few files that would leave little that is asked for and not in every cache.
"""
import itertools
import math
import os
import random

FILES = 10562 // 8
SEED = 1
EXPONENT = 0.8
LARGE_BYTES = 500 * 1024
LARGE_SHARE = 0.16
LARGE_BYTE_SHARE = 0.8302
_LARGE_MAX_BYTES = 4096 * 1024
_LARGE_TAIL = 2.2
_LARGE_DEMOTION = 2.5
_SMALL_SIGMA = 1.4
_SMALL_MIN = 64
MARK = 16  # bytes at the beginning of a file that say which it is


class Content:
    """Sizes and popularity; the same for the same arguments, in whichever process."""

    def __init__(self, files=FILES, seed=SEED):
        rng = random.Random(seed)
        self.large = round(files * LARGE_SHARE)  # the first so many
        below = 1 - (LARGE_BYTES / _LARGE_MAX_BYTES) ** _LARGE_TAIL
        large = [math.ceil(LARGE_BYTES * (1 - rng.random() * below) ** (-1 / _LARGE_TAIL)) for _ in range(self.large)]
        small = [math.exp(rng.gauss(0, _SMALL_SIGMA)) for _ in range(files - self.large)]
        wanted = sum(large) * (1 / LARGE_BYTE_SHARE - 1)
        for _ in range(20):  # what is cut off at the top goes to the others
            scale = wanted / sum(small)
            small = [min(size * scale, LARGE_BYTES - 1) for size in small]
        self.sizes = large + [max(_SMALL_MIN, int(size)) for size in small]
        keys = [rng.gauss(0, 1) + (_LARGE_DEMOTION if number < self.large else 0) for number in range(files)]
        self.ranked = sorted(range(files), key=keys.__getitem__)

    @property
    def total_bytes(self):
        return sum(self.sizes)

    def draws(self, seed, count, chosen=None):
        """`count` files as they are asked for; `chosen`: only files of which that is true."""
        ranked = [number for number in self.ranked if chosen is None or chosen(number)]
        weights = itertools.accumulate((place + 1) ** -EXPONENT for place in range(len(ranked)))
        return random.Random(seed).choices(ranked, cum_weights=list(weights), k=count)

    @staticmethod
    def mark(number):
        """How file `number` begins."""
        return b"%015d\n" % number

    @staticmethod
    def path(number):
        return f"/{number % 16:x}/{number}"

    def write(self, directory):
        """One node's copy, on disk and not in the page cache any more."""
        for folder in range(16):
            os.makedirs(os.path.join(directory, f"{folder:x}"))
        filling = random.Random(SEED).randbytes(_LARGE_MAX_BYTES)
        for number, size in enumerate(self.sizes):
            with open(directory + self.path(number), "wb") as handle:
                handle.write((self.mark(number) + filling)[:size])
        self.forget(directory)

    def forget(self, directory):
        """Nothing of the copy is in the page cache."""
        os.sync()
        for number in range(len(self.sizes)):
            descriptor = os.open(directory + self.path(number), os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
