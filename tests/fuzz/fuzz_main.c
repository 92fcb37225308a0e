// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs a fuzz body without libFuzzer: every file of the corpus, then a number of seeded mutations of them. It
 * knows nothing of coverage; it keeps the bodies and their invariants alive in every build. On a crash the
 * input is written to crash-<seed>, for which this program, and libFuzzer, take a file name.
 *
 *   fuzz_<name> [-n MUTATIONS] [-s SEED] FILE|DIRECTORY...
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define INPUTS_MAX     1024u
#define INPUT_MAX      16384u
#define MUTATIONS_EACH 6u

struct input {
	uint8_t *data;
	size_t size;
};

static struct input inputs[INPUTS_MAX];
static size_t input_count;
static uint8_t current[INPUT_MAX];
static size_t current_size;
static char crash_path[64];

/* Async-signal-safe: only open(), write() and the default action. */
static void on_crash(int signal_number)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd >= 0 && write(fd, current, current_size) == (ssize_t)current_size)
		(void)!write(STDERR_FILENO, crash_path, strlen(crash_path));
	(void)!write(STDERR_FILENO, "\n", 1);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name); /* not by locale: the order decides what a seed means */
}

static void add_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct input *in = &inputs[input_count];

	if (!file || input_count == INPUTS_MAX) {
		fprintf(stderr, "%s: %s\n", path,
			file ? "more inputs than this program takes" : strerror(errno));
		exit(2);
	}
	in->data = malloc(INPUT_MAX);
	FUZZ_CHECK(in->data);
	in->size = fread(in->data, 1, INPUT_MAX, file);
	fclose(file);
	input_count++;
}

static void add_path(const char *path)
{
	struct dirent **entries;
	struct stat info;
	int count;

	if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
		add_file(path);
		return;
	}
	count = scandir(path, &entries, NULL, compare_names);
	for (int i = 0; i < count; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			add_file(name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void run(void)
{
	LLVMFuzzerTestOneInput(current, current_size);
}

static size_t below(uint64_t *state, size_t limit)
{
	return limit ? (size_t)(fuzz_random(state) % limit) : 0;
}

/* Puts @size bytes into the current input at @at, in place of @replaced bytes. */
static void replace(size_t at, size_t replaced, const uint8_t *data, size_t size)
{
	size_t tail = current_size - at - replaced;

	if (at + size + tail > INPUT_MAX)
		return;
	memmove(current + at + size, current + at + replaced, tail);
	memcpy(current + at, data, size);
	current_size = at + size + tail;
}

static void mutate(uint64_t *state)
{
	static const uint8_t odd[] = "\r\n\0\t :;,/?=0179afAFxHT\x0b\x16\x7f\x80\xff";
	const struct input *other = &inputs[below(state, input_count)];
	size_t at = below(state, current_size + 1), left = current_size - at;
	size_t from = below(state, other->size + 1);
	uint8_t byte = (uint8_t)fuzz_random(state);
	uint8_t block[64];
	size_t size;

	switch (fuzz_random(state) % 8) {
	case 0:
		if (left)
			current[at] ^= (uint8_t)(1u << byte % 8);
		break;
	case 1:
		replace(at, left ? 1 : 0, &odd[byte % (sizeof(odd) - 1)], 1);
		break;
	case 2:
		replace(at, 0, &odd[byte % (sizeof(odd) - 1)], 1);
		break;
	case 3:
		replace(at, left ? 1 : 0, &byte, 1);
		break;
	case 4:
		replace(at, below(state, (left < 8 ? left : 8) + 1), &byte, 0);
		break;
	case 5: /* a piece of another input, most often one of its lines */
		size = other->size - from < sizeof(block) ? other->size - from : sizeof(block);
		size = below(state, size + 1);
		replace(at, 0, other->data + from, size);
		break;
	case 6: /* a piece of this one, again */
		from = below(state, current_size + 1);
		size = current_size - from < sizeof(block) ? current_size - from : sizeof(block);
		size = below(state, size + 1);
		memcpy(block, current + from, size);
		replace(at, 0, block, size);
		break;
	default: /* a whole line of another input, at the start of a line */
		while (from && other->data[from - 1] != '\n')
			from--;
		while (at && current[at - 1] != '\n')
			at--;
		for (size = 0; from + size < other->size;)
			if (other->data[from + size++] == '\n')
				break;
		replace(at, 0, other->data + from, size);
		break;
	}
}

int main(int argc, char **argv)
{
	unsigned long mutations = 100000;
	uint64_t seed = 1, state;
	int option;

	while ((option = getopt(argc, argv, "n:s:")) != -1) {
		if (option == 'n')
			mutations = strtoul(optarg, NULL, 0);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	for (int i = optind; i < argc; i++)
		add_path(argv[i]);
	if (!input_count) {
		fprintf(stderr, "usage: %s [-n MUTATIONS] [-s SEED] FILE|DIRECTORY...\n", argv[0]);
		return 2;
	}
	snprintf(crash_path, sizeof(crash_path), "crash-%llu", (unsigned long long)seed);
	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);

	run(); /* the empty input */
	for (size_t i = 0; i < input_count; i++) {
		current_size = inputs[i].size;
		memcpy(current, inputs[i].data, current_size);
		run();
	}
	state = seed;
	for (unsigned long n = 0; n < mutations; n++) {
		const struct input *in = &inputs[below(&state, input_count)];

		current_size = in->size;
		memcpy(current, in->data, current_size);
		for (size_t m = 1 + below(&state, MUTATIONS_EACH); m; m--)
			mutate(&state);
		run();
	}
	printf("%zu inputs, %lu mutations, seed %llu: no invariant broken\n", input_count, mutations,
	       (unsigned long long)seed);
	for (size_t i = 0; i < input_count; i++)
		free(inputs[i].data);
	return 0;
}
