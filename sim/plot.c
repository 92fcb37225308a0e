// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plots are a Python script's work, which reads what --json prints.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sim/report.h"

/* Where the script is: as installed, or in the sources this was built from. */
static const char *es_plot_script(void)
{
	const char *named = getenv("EARSHOT_SIM_PLOT");

	if (named)
		return named;
	return access(EARSHOT_SIM_PLOT_INSTALLED, R_OK) ? EARSHOT_SIM_PLOT_SOURCE
							: EARSHOT_SIM_PLOT_INSTALLED;
}

static int es_plot_write(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		ssize_t done = write(fd, text, left);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		text += done;
		left -= (size_t)done;
	}
	return 0;
}

int es_plot(struct json_object *json, const char *path)
{
	const char *script = es_plot_script();
	int ends[2], status, rc;
	pid_t child;

	if (pipe(ends))
		return -errno;
	child = fork();
	if (!child) {
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		close(ends[1]);
		/* By its path as argv[0], too: from a bare name Python would look in PATH for its library. */
		execl("/usr/bin/python3", "/usr/bin/python3", script, path, (char *)NULL);
		es_error("--plot: /usr/bin/python3: %s (Debian package python3)", strerror(errno));
		_exit(127);
	}
	close(ends[0]);
	if (child < 0) {
		close(ends[1]);
		return -EAGAIN;
	}
	/* If the script ends before it has read all, its status says why. */
	signal(SIGPIPE, SIG_IGN);
	(void)es_plot_write(ends[1], json_object_to_json_string(json));
	close(ends[1]);
	rc = waitpid(child, &status, 0) == child ? status : -1;
	if (rc) {
		es_error("--plot=%s: not drawn", path);
		return -EIO;
	}
	return 0;
}
