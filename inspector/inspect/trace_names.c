// SPDX-License-Identifier: GPL-2.0-or-later
/* The words for decisions and for the reasons behind them, as docs/json.md lists them. */
#include "inspector/inspect/trace.h"
#include "inspector/policy/policy.h"
#include "inspector/rules/rules.h"

const char *es_trace_decision_name(unsigned int decision)
{
	return decision < ES_TALLY_DECISION_COUNT ? es_tally_decision_name[decision] : "reject";
}

/* Reasons for a decision, besides those why a request is refused. */
static const char *const whys[] = {"policy", "locality", "load", "drain", "home", "rule", "retry"};
#define WHYS (sizeof(whys) / sizeof(whys[0]))

/* Why a request is refused, if not by a rule of its own name. */
static const char *const refused_by[ES_RULES_BY_RULE] = {
	[ES_RULES_BY_PLUGIN] = "plugin",
	[ES_RULES_BY_ADMIT_LOW] = "admit_low",
	[ES_RULES_BY_ADMIT_NORMAL] = "admit_normal",
	[ES_RULES_BY_LOCATION] = "location",
	[ES_RULES_BY_ALL_DOWN] = "all_down",
	[ES_RULES_BY_UNFINISHED] = "unfinished",
};

const char *es_trace_why_name(const struct es_conf *conf, unsigned int i)
{
	if (i < WHYS)
		return whys[i];
	i -= WHYS;
	if (i < ES_RULES_BY_RULE)
		return refused_by[i];
	i -= ES_RULES_BY_RULE;
	return i < conf->rule_count ? conf->rules[i].name : NULL;
}

static const char *why_rejected(const struct es_conf *conf, unsigned int by)
{
	if (by < ES_RULES_BY_RULE)
		return refused_by[by];
	return by - ES_RULES_BY_RULE < conf->rule_count ? conf->rules[by - ES_RULES_BY_RULE].name : "rule";
}

const char *es_trace_why(const struct es_conf *conf, const struct es_handover_order *order,
			 unsigned int decision)
{
	static const char *const moves[ES_MOVE_WHY_COUNT] = {
		[ES_MOVE_LOCALITY] = "locality", [ES_MOVE_LOAD] = "load", [ES_MOVE_DRAIN] = "drain",
		[ES_MOVE_RULE] = "rule",	 [ES_MOVE_HOME] = "home",
	};

	if (decision == ES_TRACE_REJECT)
		return why_rejected(conf, order->rejection.by);
	if (decision == ES_TALLY_again)
		return "retry";
	if (decision == ES_TALLY_move && order->why < ES_MOVE_WHY_COUNT)
		return moves[order->why];
	return order->why == ES_MOVE_RULE ? "rule" : "policy";
}
