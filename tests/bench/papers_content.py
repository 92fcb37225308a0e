# SPDX-License-Identifier: GPL-2.0-or-later
"""What the papers' experiments ask for, and how often each.

Content: files like WorldCup98's in HyLARD 4.3, fewer of them.

HyLARD: 10,562 files, 16% of them of 500 KB or more, which hold 83% of the bytes. Here are an eighth as many, of such
sizes, since the policy's threshold is in KB. The rest is chosen as in the simulator: a bounded Pareto for the large
ones, a lognormal for the others, large files further down the order of popularity. Zipf's exponent is 0.8 and not the
trace's 1.16: among so few files that would leave little that is asked for and not in every cache.

Site: a site by type and size, as Yang and Luo 4.4 describe it: pictures and pages, and large files (over 64 KB), which are
0.3% of the files, hold 53.9% of the bytes and get 0.1% of the requests. It is small, so that caches are full within seconds.
A share of the requests is for pages that a program makes.
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
    def static_sizes(self):
        """Of what is a file: all, or the first so many."""
        return self.sizes

    @property
    def total_bytes(self):
        return sum(self.static_sizes)

    def is_dynamic(self, _number):
        """Whether a program makes it."""
        return False

    def draws(self, seed, count, chosen=None):
        """`count` files as they are asked for; `chosen`: only files of which that is true."""
        ranked = [number for number in self.ranked if chosen is None or chosen(number)]
        weights = itertools.accumulate((place + 1) ** -EXPONENT for place in range(len(ranked)))
        return random.Random(seed).choices(ranked, cum_weights=list(weights), k=count)

    @staticmethod
    def mark(number):
        """How file `number` begins."""
        return b"%015d\n" % number

    def path(self, number):
        return f"/{number % 16:x}/{number}"

    def write(self, directory):
        """One node's copy, on disk and not in the page cache any more."""
        for folder in range(16):
            os.makedirs(os.path.join(directory, f"{folder:x}"))
        filling = random.Random(SEED).randbytes(_LARGE_MAX_BYTES)
        for number, size in enumerate(self.static_sizes):
            with open(directory + self.path(number), "wb") as handle:
                handle.write((self.mark(number) + filling)[:size])
        self.forget(directory)

    def forget(self, directory):
        """Nothing of the copy is in the page cache."""
        os.sync()
        for number in range(len(self.static_sizes)):
            descriptor = os.open(directory + self.path(number), os.O_RDONLY)
            try:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


class Site(Content):
    """Numbers from len(sizes) - DYNAMIC on are pages that a program makes. `dynamic`: their share of the requests."""

    FILES = 2000
    DYNAMIC = 100  # different ones
    DYNAMIC_BYTES = 4096
    LARGE_REQUESTS = 0.001
    PICTURE_BYTES = 3072  # what is smaller is a picture
    _MEAN_SMALL = 10000
    _LARGE_FILES, _LARGE_BYTES = 0.003, 0.539

    def __init__(self, files=FILES, seed=SEED, dynamic=0.0):
        # pylint: disable=super-init-not-called
        rng = random.Random(seed)
        self.dynamic = dynamic
        self.large = round(files * self._LARGE_FILES)
        mean = math.log(self._MEAN_SMALL) - _SMALL_SIGMA ** 2 / 2
        small = [min(max(_SMALL_MIN, int(rng.lognormvariate(mean, _SMALL_SIGMA))), 65535) for _ in range(files - self.large)]
        large = sum(small) * self._LARGE_BYTES / (1 - self._LARGE_BYTES) / self.large
        self.files = files
        self.sizes = [min(int(large), _LARGE_MAX_BYTES)] * self.large + small + [self.DYNAMIC_BYTES] * self.DYNAMIC
        self.ranked = list(range(self.large, files))
        rng.shuffle(self.ranked)

    @property
    def static_sizes(self):
        return self.sizes[:self.files]

    def is_dynamic(self, number):
        return number >= self.files

    def draws(self, seed, count, chosen=None):
        """`count` pages as they are asked for."""
        rng = random.Random(seed)
        small = super().draws(seed, count)

        def one(page):
            dice = rng.random()
            if dice < self.dynamic:
                return self.files + rng.randrange(self.DYNAMIC)
            return rng.randrange(self.large) if rng.random() < self.LARGE_REQUESTS else page

        return [one(page) for page in small]

    def path(self, number):
        if self.is_dynamic(number):
            return f"/cgi-bin/page?{number}"
        suffix = "zip" if number < self.large else "gif" if self.sizes[number] < self.PICTURE_BYTES else "html"
        return f"/{number % 16:x}/{number}.{suffix}"


CONTENTS = {"worldcup": Content, "site": Site}
