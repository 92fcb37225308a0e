// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim policies: the policies and their parameters.
 */
#include <stdio.h>
#include "sim/report.h"

static struct json_object *es_json_policies(void)
{
	struct json_object *list = json_object_new_array();

	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		struct json_object *policy = json_object_new_object();
		struct json_object *params = json_object_new_array();

		json_object_object_add(policy, "name", json_object_new_string((*p)->name));
		json_object_object_add(policy, "description", json_object_new_string((*p)->description));
		for (const struct es_policy_param *q = (*p)->params; q && q->name; q++) {
			struct json_object *param = json_object_new_object();

			json_object_object_add(param, "name", json_object_new_string(q->name));
			json_object_object_add(param, "description", json_object_new_string(q->description));
			json_object_object_add(param, "default",
					       q->may_be_auto ? json_object_new_string("auto")
							      : json_object_new_double(q->value));
			if (q->may_be_auto)
				json_object_object_add(param, "paper", json_object_new_double(q->value));
			json_object_object_add(param, "min", json_object_new_double(q->min));
			json_object_object_add(param, "max", json_object_new_double(q->max));
			json_object_array_add(params, param);
		}
		json_object_object_add(policy, "params", params);
		json_object_array_add(list, policy);
	}
	return list;
}

/* One line for each parameter, and for each policy without any. */
static int es_csv_policies(void)
{
	char room[ES_PARAM_TEXT_SIZE];

	printf("policy,parameter,default,min,max\n");
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		if (!(*p)->params || !(*p)->params[0].name)
			printf("%s,,,,\n", (*p)->name);
		for (const struct es_policy_param *q = (*p)->params; q && q->name; q++)
			printf("%s,%s,%s,%g,%g\n", (*p)->name, q->name,
			       es_policy_param_text(es_policy_param_default(q), room), q->min, q->max);
	}
	return fflush(stdout) != 0;
}

int es_cmd_policies(int argc, char **argv)
{
	struct es_args args;
	char value[ES_PARAM_TEXT_SIZE], bounds[ES_PARAM_TEXT_SIZE];

	es_args_init(&args);
	es_args_parse(&args, argc, argv, "", "List the policies and their parameters.");
	if (args.format == ES_FORMAT_JSON)
		return es_json_print(es_json_policies()) != 0;
	if (args.format == ES_FORMAT_CSV)
		return es_csv_policies();
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		printf("%-10s %s\n", (*p)->name, (*p)->description);
		for (const struct es_policy_param *q = (*p)->params; q && q->name; q++)
			printf("  --param %s=%s  %s (%s)\n", q->name,
			       es_policy_param_text(es_policy_param_default(q), value), q->description,
			       es_policy_param_expects(q, bounds));
	}
	return fflush(stdout) != 0;
}
