// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check --fix`: of the actions that the findings name, those that are one command, need no thought
 * and are undone by the next start of the machine: sysctls, and a service's address on lo. It prints them, or
 * runs them; all others are for people. The commands are those of the findings, word by word, and no shell
 * reads them.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/cli/capture.h"
#include "inspector/cli/check_fix.h"

#define WORDS_MAX   8
#define ACTION_SIZE 256

/* struct es_fix - a command: @text cut into words */
struct es_fix {
	char text[ACTION_SIZE];
	char *word[WORDS_MAX + 1];
	unsigned int count;
};

/* At blanks outside of single quotes, which go. Return: 0, or -EINVAL when it is no plain command. */
static int cut(const char *action, struct es_fix *fix)
{
	char *to = fix->text;
	int quoted = 0, inside = 0;

	memset(fix, 0, sizeof(*fix));
	if (strlen(action) >= sizeof(fix->text))
		return -EINVAL;
	for (const char *c = action; *c; c++) {
		if (*c == '\'') {
			quoted = !quoted;
		} else if (*c == ' ' && !quoted) {
			*to++ = 0;
			inside = 0;
		} else {
			if (!inside && fix->count == WORDS_MAX)
				return -EINVAL;
			if (!inside)
				fix->word[fix->count++] = to;
			inside = 1;
			*to++ = *c;
		}
	}
	return quoted ? -EINVAL : 0;
}

/* "sysctl -w NAME=VALUE", of a value that is replaced as a whole: a list of ports may have others' in it. */
static int is_sysctl(const struct es_fix *fix)
{
	const char *value = fix->count == 3 ? strchr(fix->word[2], '=') : NULL;

	return value && !strcmp(fix->word[0], "sysctl") && !strcmp(fix->word[1], "-w") &&
	       !strstr(fix->word[2], "reserved_ports") && value[1] &&
	       strspn(value + 1, "0123456789 ") == strlen(value + 1);
}

/* "ip address add ADDRESS/32 dev lo", or /128 */
static int is_address(const struct es_fix *fix)
{
	return fix->count == 6 && !strcmp(fix->word[0], "ip") && !strcmp(fix->word[1], "address") &&
	       !strcmp(fix->word[2], "add") &&
	       (strstr(fix->word[3], "/32") || strstr(fix->word[3], "/128")) &&
	       !strcmp(fix->word[4], "dev") && !strcmp(fix->word[5], "lo");
}

/*
 * Does this machine leave ARP requests for addresses on lo to the others? One that has a service's address
 * and answers for it draws all clients.
 */
static int is_silent(const struct es_check *check)
{
	const char *const interfaces[] = {"all", check->conf->datapath.interface};

	for (unsigned int i = 0; i < 2; i++) {
		char name[64 + ES_CONF_IFNAME_SIZE];
		long value;

		snprintf(name, sizeof(name), "net/ipv4/conf/%s/arp_ignore", interfaces[i]);
		if (es_facts_sysctl(check->facts, name, &value, 1) == 1 && value >= 1)
			return 1;
	}
	return 0;
}

static int run_command(struct es_fix *fix)
{
	pid_t pid;
	int status, rc = posix_spawnp(&pid, fix->word[0], NULL, NULL, fix->word, environ);

	if (rc)
		return es_cli_fail("%s: cannot be run: %s", fix->word[0], strerror(rc));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return es_cli_fail("%s: %s", fix->word[0], strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return es_cli_fail("%s has failed, see above; nothing after it was run", fix->word[0]);
	return ES_CLI_OK;
}

/* Two findings may name the same command. */
static int is_repeated(const struct es_check *check, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (check->findings[i].action &&
		    !strcmp(check->findings[i].action, check->findings[index].action))
			return 1;
	return 0;
}

static int fix_those(const struct es_check *check, int (*is_meant)(const struct es_fix *fix), int runs,
		     unsigned int *count)
{
	for (size_t i = 0; i < check->count; i++) {
		const struct es_check_finding *finding = &check->findings[i];
		struct es_fix fix;

		if (!finding->action || cut(finding->action, &fix) || !is_meant(&fix) ||
		    is_repeated(check, i))
			continue;
		(*count)++;
		printf("%s\n", finding->action);
		fflush(stdout);
		if (runs && run_command(&fix))
			return ES_CLI_FAILED;
	}
	return ES_CLI_OK;
}

/* Print what is left to people, as comments. Return: how many of these are errors. */
static unsigned int print_others(const struct es_check *check, int is_address_safe)
{
	unsigned int errors = 0;

	for (size_t i = 0; i < check->count; i++) {
		const struct es_check_finding *finding = &check->findings[i];
		struct es_fix fix;

		if (finding->severity < ES_CHECK_WARNING ||
		    (finding->action && !cut(finding->action, &fix) &&
		     (is_sysctl(&fix) || (is_address_safe && is_address(&fix)))))
			continue;
		errors += finding->severity == ES_CHECK_ERROR;
		printf("# by hand: %s: %s: %s\n", finding->id, finding->found,
		       finding->action ? finding->action : "no command helps");
	}
	return errors;
}

int es_cli_check_fix(const struct es_check *check, int runs)
{
	unsigned int commands = 0, errors = 0;
	int is_address_safe;

	if (runs && es_capture_find_all())
		return es_cli_fail("out of memory");
	if (fix_those(check, is_sysctl, runs, &commands))
		return ES_CLI_FAILED;
	is_address_safe = is_silent(check); /* now, and not before the sysctls */
	if (is_address_safe && fix_those(check, is_address, runs, &commands))
		return ES_CLI_FAILED;
	errors = print_others(check, is_address_safe);
	if (commands)
		printf("# until the next start of the machine; /etc/sysctl.d keeps sysctls\n");
	return errors || (!runs && check->totals[ES_CHECK_ERROR]) ? ES_CLI_FAILED : ES_CLI_OK;
}
