// SPDX-License-Identifier: GPL-2.0-or-later
/* The parameters that a service gives to its policy: what they give, and each message. */
#include "tests/unit/config_text.h"

#include <math.h>

#define WITH(policy, parameters)                                                                             \
	DATAPATH NODE "service b { address = 10.77.0.1 port = 80 policy = " policy                           \
		      "\n parameters = " parameters "\n}"

static void wrong(const char *text, const char *expected)
{
	check_error(text, strlen(text), expected);
}

/*
 * Contradictions between a policy's parameters, in each policy that has such parameters, and also against a
 * default.
 */
static void test_contradictions(void **state)
{
	(void)state;
	wrong(WITH("lard", "{\"T_low=70\", \"T_high=60\"}"),
	      "t.conf:4: service b: parameters: T_low is 70: expected at most 60, which T_high is");
	wrong(WITH("lard-r", "{\"T_low=66\", \"T_high=paper\"}"),
	      "t.conf:4: service b: parameters: T_low is 66: expected at most 65, which T_high is");
	wrong(WITH("ext-lard", "\"L_overload=29\""),
	      "t.conf:4: service b: parameters: L_idle is 30: expected at most 29, which L_overload is");
	for (const struct es_policy *const *policy = es_policy_list(); *policy; policy++) {
		struct es_policy_settings settings;
		int bound;

		es_policy_defaults(*policy, &settings);
		assert_int_equal(es_policy_contradiction(*policy, settings.param, &bound), -1);
		for (const struct es_policy_param *p = (*policy)->params; p && p->name; p++)
			assert_true(!p->at_most || es_policy_param_index(*policy, p->at_most) >= 0);
	}
}

static void test_parameters(void **state)
{
	struct es_conf *conf = parse_ok(WITH("lard-r", "{\"K=7.5\", \"T_low=1e1\"}"));
	const struct es_policy *lard = es_policy_find("lard-r");

	(void)state;
	assert_true(conf->services[0].params[es_policy_param_index(lard, "K")] == 7.5);
	assert_true(conf->services[0].params[es_policy_param_index(lard, "T_low")] == 10);
	assert_true(isnan(conf->services[0].params[es_policy_param_index(lard, "T_high")]));
	es_conf_free(&conf);
	/* A measured one bounds none that is given. */
	conf = parse_ok(WITH("lard-r", "{\"T_low=auto\", \"T_high=paper\"}"));
	assert_true(isnan(conf->services[0].params[es_policy_param_index(lard, "T_low")]));
	assert_true(conf->services[0].params[es_policy_param_index(lard, "T_high")] == 65);
	es_conf_free(&conf);
	conf = parse_ok(WITH("lard-r", "\"T_low=66\""));
	es_conf_free(&conf);
	wrong(WITH("lard-r", "\"K=auto\""), "t.conf:4: service b: parameters = K=auto: expected K=0..1e+06 "
					    "(seconds after which a set that did not change loses a node)");
	wrong(WITH("lard", "\"T_mid=1\""),
	      "t.conf:4: service b: parameters = T_mid=1: policy lard expected T_low (0..1e+06, auto or "
	      "paper), T_high (1..1e+06, auto or paper)");
	wrong(WITH("lard", "\"T_low=-1\""),
	      "t.conf:4: service b: parameters = T_low=-1: expected T_low=0..1e+06, auto or paper (a node "
	      "with fewer requests has resources to spare)");
	wrong(WITH("lard", "\"T_low=many\""),
	      "t.conf:4: service b: parameters = T_low=many: expected T_low=0..1e+06, auto or paper (a node "
	      "with fewer requests has resources to spare)");
	wrong(WITH("lard", "\"T_low=nan\""),
	      "t.conf:4: service b: parameters = T_low=nan: expected T_low=0..1e+06, auto or paper (a node "
	      "with fewer requests has resources to spare)");
	wrong(WITH("lard", "{\"T_low=1\", \"T_high=2\", \"T_low=3\"}"),
	      "t.conf:4: service b: parameters = T_low=3: expected each once");
	wrong(WITH("lard", "T_low"), "t.conf:4: service b: parameters = T_low: expected NAME=VALUE");
	wrong(WITH("wrr", "\"x=1\""),
	      "t.conf:4: service b: parameters = x=1: policy wrr has none: expected none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
