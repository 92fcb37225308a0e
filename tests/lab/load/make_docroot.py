#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects for earshot-load: files with random contents, names and sizes, and the list of them.

    make_docroot.py DIRECTORY [--seed S] [--files N] [--max-bytes N]

Sizes are spread evenly over the orders of magnitude, with fewer of the largest; those at which something changes (no body
at all, one segment, the largest) are always there. DIRECTORY/manifest.tsv has "path <tab> size <tab> sha256" of each. The
same arguments make the same files.
"""
import argparse
import hashlib
import math
import os
import random

EDGE_SIZES = (0, 1, *range(1447, 1462))
LARGEST_RARER = 1.7  # exponent on the uniform random number: the mean of 5 MB log-uniform is about 190 KB


def sizes(rng, files, max_bytes):
    """`files` sizes from 0 to max_bytes, in random order."""
    chosen = [size for size in EDGE_SIZES if size < max_bytes][:files - 1] + [max_bytes]
    while len(chosen) < files:
        chosen.append(int(math.exp(math.log(max_bytes + 1) * rng.random() ** LARGEST_RARER)) - 1)
    rng.shuffle(chosen)
    return chosen


def uri(rng, number):
    """A path as nobody would type it; unique by its number."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    words = ["".join(rng.choices(alphabet, k=rng.randint(1, 12))) for _ in range(rng.randint(1, 5))]
    return "/".join(["r", *words[:-1], f"{words[-1]}.{number}"])


def make_docroot(directory, seed=1, files=400, max_bytes=5000000):
    """Write the files and the manifest; returns [(path, size, sha256)]."""
    rng = random.Random(seed)
    objects = []
    for number, size in enumerate(sizes(rng, files, max_bytes)):
        path, body = uri(rng, number), rng.randbytes(size)
        target = os.path.join(directory, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as handle:
            handle.write(body)
        objects.append((f"/{path}", size, hashlib.sha256(body).hexdigest()))
    with open(os.path.join(directory, "manifest.tsv"), "w", encoding="ascii") as manifest:
        manifest.writelines(f"{path}\t{size}\t{digest}\n" for path, size, digest in objects)
    return objects


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--max-bytes", type=int, default=5000000)
    options = parser.parse_args()
    objects = make_docroot(options.directory, options.seed, options.files, options.max_bytes)
    print(f"{len(objects)} files, {sum(size for _, size, _ in objects)} bytes")


if __name__ == "__main__":
    main()
