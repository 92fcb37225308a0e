// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Files with logs in them: plain, compressed by gzip, both in any order, damaged, foreign. The first byte
 * says how much of the file is compressed before it is read, so that mutations reach what is behind it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "fuzz_sim_trace.h"

static void fuzz_write(int fd, const void *data, size_t size)
{
	FUZZ_CHECK(write(fd, data, size) == (ssize_t)size);
}

static void fuzz_write_gzip(int fd, const uint8_t *data, size_t size)
{
	int copy = dup(fd);
	gzFile file = gzdopen(copy, "wb1");

	FUZZ_CHECK(file);
	FUZZ_CHECK(!size || gzwrite(file, data, (unsigned int)size) == (int)size);
	FUZZ_CHECK(gzclose(file) == Z_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	size_t packed = size ? (size - 1) * data[0] / 255 : 0;
	struct es_trace trace;
	char path[64];
	int rc;

	FUZZ_CHECK(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (size) {
		/* even: the compressed part comes first */
		if (data[0] % 2)
			fuzz_write(fd, data + 1 + packed, size - 1 - packed);
		fuzz_write_gzip(fd, data + 1, packed);
		if (!(data[0] % 2))
			fuzz_write(fd, data + 1 + packed, size - 1 - packed);
	}
	FUZZ_CHECK(!es_trace_init(&trace, ES_TRACE_AUTO, 0));
	rc = es_trace_read(&trace, path);
	FUZZ_CHECK(!rc || rc == -EIO || (rc == -ENOTSUP && trace.foreign));
	FUZZ_CHECK(trace.request_count == trace.skipped[ES_TRACE_USED]);
	FUZZ_CHECK(es_trace_unusable(trace.skipped) <= trace.line_count);
	es_trace_fini(&trace);
	close(fd);
	return 0;
}
