// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The status page: nothing from outside becomes markup, what is old says so, and what is missing is no
 * number.
 */
#include "cmocka_all.h"
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/conceal.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

#define EVIL "<script>alert('&\\\"')</script>"

static char *html;

static const char *page(const char *json)
{
	struct json_object *view = json_tokener_parse(json);
	size_t len;

	assert_non_null(view);
	free(html);
	assert_int_equal(es_page_html(view, "0123", &html, &len), 0);
	assert_int_equal(strlen(html), len);
	json_object_put(view);
	return html;
}

static void expect(const char *what)
{
	if (!strstr(html, what))
		fail_msg("not there: %s\nin: %s", what, html);
}

static unsigned int count(const char *what)
{
	unsigned int found = 0;

	for (const char *at = html; (at = strstr(at, what)); at += strlen(what))
		found++;
	return found;
}

static void test_text(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	(void)state;
	es_html_text(file, "a<b>&\"'\x01\n\x7f\xc3\xa4");
	es_html_count(file, 1234567);
	es_html_count(file, 999);
	fclose(file);
	assert_string_equal(text, "a&lt;b&gt;&amp;&quot;&#39;   \xc3\xa4"
				  "1\u202f234\u202f567999");
	free(text);
}

static void test_escaping(void **state)
{
	(void)state;
	page("{\"cluster\":\"" EVIL "\",\"node\":\"" EVIL "\",\"version\":\"" EVIL "\",\"at_s\":0,"
	     "\"membership\":{\"silent\":true,\"why\":\"" EVIL "\"},\"ring_places\":[0,0],"
	     "\"nodes\":[{\"name\":\"" EVIL "\",\"state\":\"" EVIL "\",\"trouble\":\"" EVIL
	     "\",\"answers\":true,\"tells\":true,\"age_s\":0,\"snapshot\":{\"uptime_s\":1,"
	     "\"version\":\"" EVIL "\",\"datapath\":\"" EVIL "\",\"services\":[{\"name\":\"" EVIL
	     "\",\"state\":\"" EVIL "\",\"why\":\"" EVIL "\",\"check\":{\"result\":\"" EVIL
	     "\"}}],\"moves\":{\"" EVIL "\":1},\"pins\":{\"" EVIL "\":2},"
	     "\"hot\":[{\"service\":\"" EVIL "\",\"targets\":[{\"uri\":\"" EVIL
	     "\",\"requests\":3,\"nodes\":[\"" EVIL "\"]}]}],\"history\":{\"targets\":{\"" EVIL
	     "\":[1,2]}}},\"history\":{\"step_s\":5,\"samples\":1,\"age_s\":0,\"services\":{\"" EVIL
	     "\":{\"requests\":{\"" EVIL "\":[3]}}}}}],"
	     "\"services\":[{\"name\":\"" EVIL "\",\"addresses\":[\"" EVIL "\"],\"port\":1,\"policy\":\"" EVIL
	     "\",\"inspect\":\"" EVIL "\"}]}");
	assert_int_equal(count("<script>"), 0);
	assert_int_equal(count("<script"), 1); /* the page's own, by its nonce */
	expect("<script nonce=\"0123\">");
	assert_true(count("&lt;script&gt;alert(&#39;&amp;&quot;&#39;)&lt;/script&gt;") >= 26);
}

static void test_old_figures(void **state)
{
	(void)state;
	page("{\"cluster\":\"c\",\"node\":\"n1\",\"at_s\":3600,\"nodes\":["
	     "{\"name\":\"n1\",\"state\":\"up\",\"self\":true,\"answers\":true,\"tells\":true,\"age_s\":0,"
	     "\"snapshot\":{\"uptime_s\":9,\"requests_s\":12.5,\"pins\":{\"p\":1}}},"
	     "{\"name\":\"n2\",\"state\":\"absent\",\"answers\":false,\"tells\":true,\"age_s\":60,"
	     "\"snapshot\":{\"uptime_s\":9,\"requests_s\":77.5,\"pins\":{\"p\":1000}}},"
	     "{\"name\":\"n3\",\"state\":\"up\",\"answers\":false,\"tells\":true,\"age_s\":null,\"snapshot\":"
	     "null}]}");
	expect("1 of 3 nodes are up and answer. n2 is absent and does not answer. n3 does not answer.");
	expect("<td class=\"warn\" data-l=\"State\">absent</td><td class=\"path warn\" "
	       "data-l=\"Trouble\">not answering; "
	       "last answer 00:59:00 UTC</td>");
	expect("<td class=\"n old\" data-l=\"Requests/s\">77.5 (old)</td>");
	expect("<td class=\"n\" data-l=\"Requests/s\">12.5</td>");
	expect("data-l=\"Trouble\">not answering</td>");
	expect("<td class=\"n\" data-l=\"Requests/s\">&ndash;</td>");
	assert_int_equal(count("1\u202f001"), 0); /* what is old is in no sum */
}

/* A view of two nodes that have two services, and say so. */
#define NODE(name, state, web, app)                                                                          \
	"{\"name\":\"" name "\",\"state\":\"" state                                                          \
	"\",\"answers\":true,\"tells\":true,\"trouble\":\"\",\"snapshot\":"                                  \
	"{\"uptime_s\":1,\"services\":[{\"name\":\"web\",\"state\":\"" web                                   \
	"\",\"why\":\"why web\"},{\"name\":\"app\","                                                         \
	"\"state\":\"" app "\",\"why\":\"\"}]}}"
#define VIEW(first, second)                                                                                  \
	"{\"services\":[{\"name\":\"web\"},{\"name\":\"app\"}],\"nodes\":[" first "," second "]}"

static void health(const char *class, const char *text, const char *json)
{
	char expected[512];

	snprintf(expected, sizeof(expected), "class=\"%s\">%s</p>", class, text);
	page(json);
	expect(expected);
}

/*
 * Never green while any node, or any service on one, is not up; a service that is not meant to be there is no
 * matter.
 */
static void test_health(void **state)
{
	(void)state;
	health("ok", "All 2 nodes are up, and all services on them.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "up", "up", "up")));
	expect("<title>- on");
	health("warn", " Service web is down on n2: why web.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "up", "down", "up")));
	expect("<title>! - on");
	health("warn", " Service web is degraded on n1: why web. Service app is being checked on n2.",
	       VIEW(NODE("n1", "up", "degraded", "up"), NODE("n2", "up", "up", "pending")));
	health("warn", " Service app is of a later version on n2.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "up", "up", "of a later version")));
	health("bad",
	       " Service web is served by no node. Service web is down on n1: why web. Service web is down "
	       "on n2: why web.",
	       VIEW(NODE("n1", "up", "down", "up"), NODE("n2", "up", "down", "up")));
	expect("<title>\u2717 - on");
	health("warn", "1 of 2 nodes are up and answer. n2 is draining.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "draining", "up", "up")));
	health("ok", "All 2 nodes are up, and all services on them.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "up", "up", "elsewhere")));
	assert_int_equal(count("not here</span>"), 1);
	expect("up on 1 of 1</span>");
	/* A node is down of which all services are up: it refused something a moment ago. */
	health("warn",
	       "1 of 2 nodes are up and answer. n2 is down. Service web is down on n2: it gets no requests "
	       "at the moment. "
	       "Service app is down on n2: it gets no requests at the moment.",
	       VIEW(NODE("n1", "up", "up", "up"), NODE("n2", "down", "up", "up")));
	/*
	 * One that is dead, and that has never told of itself; its state is what a static node takes for
	 * granted.
	 */
	health("warn", "1 of 2 nodes are up and answer. n2 does not answer.",
	       VIEW(NODE("n1", "up", "up", "up"), "{\"name\":\"n2\",\"state\":\"up\",\"answers\":false,"
						  "\"tells\":false,\"snapshot\":null}"));
	/* One of a version before, which tells of no service. */
	health("warn", " Service app is down on n2: nothing listens for it.",
	       VIEW(NODE("n1", "up", "up", "up"),
		    "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"lacks\":[\"app\"],"
		    "\"snapshot\":{\"uptime_s\":1}}"));
	health("warn", " n2: its settings differ from the others&#39;.",
	       VIEW(NODE("n1", "up", "up", "up"),
		    "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"drift\":[{}],"
		    "\"snapshot\":{\"uptime_s\":1}}"));
	health("warn", "1 of 2 nodes are up and answer. n2 is silent.",
	       VIEW(NODE("n1", "up", "up", "up"),
		    "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"snapshot\":{"
		    "\"silent\":true,\"why\":\"no quorum\",\"uptime_s\":1}}"));
	expect("data-l=\"Trouble\">no quorum</td>");
}

/* Each node is shown with the sum of what all nodes give it; a number that cannot be known is no zero. */
static void test_matrix(void **state)
{
	(void)state;
	page("{\"services\":[{\"name\":\"web\",\"addresses\":[\"192.0.2.1\"],\"port\":80,\"policy\":\"wrr\","
	     "\"inspect\":\"every\"},"
	     "{\"name\":\"mail\",\"inspect\":\"never\"}],\"nodes\":["
	     "{\"name\":\"n1\",\"state\":\"up\",\"answers\":true,\"snapshot\":{\"services\":[{\"name\":"
	     "\"web\",\"state\":\"up\","
	     "\"given_s\":{\"n1\":1.5,\"n2\":2.5},\"4xx_s\":0.3,\"5xx_s\":0.2,\"p99_us\":12000,\"active\":"
	     "1234,\"check\":{\"type\":"
	     "\"http\",\"result\":\"passed\",\"us\":1250}},{\"name\":\"mail\",\"state\":\"up\","
	     "\"connections\":7,\"check\":{"
	     "\"result\":\"unknown\"}}]}},"
	     "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"snapshot\":{\"services\":[{\"name\":"
	     "\"web\",\"state\":\"up\","
	     "\"given_s\":{\"n1\":10,\"n2\":20}},{\"name\":\"mail\",\"state\":\"up\",\"connections\":0}]}},"
	     "{\"name\":\"n3\",\"state\":\"absent\",\"answers\":false,\"snapshot\":{\"services\":[{\"name\":"
	     "\"web\",\"given_s\":{"
	     "\"n1\":1000}}]}}]}");
	expect("<dt>Requests</dt><dd>11.5/s</dd></div><div><dt>In "
	       "hand</dt><dd>1\u202f234</dd></div><div><dt>4xx</dt><dd>0.3/s"
	       "</dd></div><div><dt>5xx</dt><dd>0.2/s</dd></div><div><dt>Check</dt><dd>ok, 1.2 "
	       "ms</dd></div><div><dt>99 % "
	       "within</dt><dd>12 ms</dd>");
	expect("<dt>Requests</dt><dd>22.5/s</dd></div><div><dt>In "
	       "hand</dt><dd>0</dd></div><div><dt>4xx</dt><dd>&ndash;</dd>");
	expect("<dt>Connections</dt><dd>7</dd></div><div><dt>In "
	       "hand</dt><dd>0</dd></div><div><dt>Check</dt><dd>unknown</dd>");
	expect("web <small>192.0.2.1 port 80, policy wrr, inspect = every</small>");
	assert_int_equal(count("up on 2 of 3</span>"), 2);
	assert_int_equal(count("<dl>"), 4); /* none of the node that is absent */
}

/* Steps of different length, and words that are old, are put where they belong. */
static void test_charts(void **state)
{
	(void)state;
	page("{\"services\":[{\"name\":\"web\",\"inspect\":\"every\"}],\"nodes\":["
	     "{\"name\":\"n1\",\"state\":\"up\",\"answers\":true,\"history\":{\"step_s\":5,\"samples\":4,"
	     "\"age_s\":0,\"services\":{"
	     "\"web\":{\"requests\":{\"n1\":[50,50,50,25]},\"5xx\":[0,0,0,5]}},\"p99_us\":[0,4000,0,8000]}},"
	     "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"history\":{\"step_s\":10,\"samples\":1,"
	     "\"age_s\":9,\"services\":{"
	     "\"web\":{\"requests\":{\"n1\":[100]}}},\"errors\":[20]}}]}");
	/* n1 gets 10/s, and 10/s more from n2 in the second and third sample: 20/s of 20. */
	expect("Requests a second <small>at most 20/s</small>");
	expect("<path class=\"line c0 d0\" d=\"M116 50L117 0L118 0L119 75\"/>");
	expect("Errors a second <small>at most 2.0/s</small>");
	expect("<path class=\"line c0 d0\" d=\"M116 100L118 100L119 50\"/><path class=\"line c1 d0\" "
	       "d=\"M117 0L118 0\"/>");
	/* Where no request arrived, there is no time. */
	expect("99 % within <small>at most 8.0 ms</small>");
	expect("<path class=\"line c0 d0\" d=\"M117 60h1M119 20h1\"/><path class=\"line c1 d0\" d=\"\"/>");
	assert_int_equal(count("<figure>"), 3); /* all services are the one */
	page("{\"services\":[{\"name\":\"a\"},{\"name\":\"b\",\"inspect\":\"never\"}],\"nodes\":[{\"name\":"
	     "\"n1\",\"history\":{"
	     "\"step_s\":0,\"samples\":999999999}},{\"name\":\"n2\",\"history\":7}]}");
	assert_int_equal(count("<figure>"), 6);
	assert_int_equal(count("at most &ndash;<"), 6);
}

static void test_set_by_hand(void **state)
{
	(void)state;
	page("{\"nodes\":["
	     "{\"name\":\"n1\",\"state\":\"draining\",\"weight\":50,\"by_hand\":{"
	     "\"drain\":{\"by\":\"alice@n1\",\"set_ms\":3600000,\"until_ms\":7200000,\"for_s\":3600,"
	     "\"reason\":\"" EVIL "\"},\"weight\":{\"by\":\"\",\"set_ms\":0,\"reason\":\"\",\"weight\":50}}},"
	     "{\"name\":\"n2\",\"state\":\"draining\",\"by_hand\":{\"drain\":{\"by\":\"" EVIL
	     "\",\"set_ms\":0,\"until_restart\":true,\"reason\":\"x\"}}},"
	     "{\"name\":\"n3\",\"state\":\"up\"}]}");
	expect("<li>n1: drained by hand since 1970-01-01 01:00:00 UTC by alice@n1, until 1970-01-01 02:00:00 "
	       "UTC: &lt;script");
	expect("<li>n1: weight 50 by hand since 1970-01-01 00:00:00 UTC</li>");
	expect(", until its daemon starts anew: x</li>");
	assert_int_equal(count(" by hand "), 3);
	assert_int_equal(count("<script"), 1);
}

/* Times of the last seconds; where no request arrived, none. */
static void test_times(void **state)
{
	(void)state;
	page("{\"nodes\":[{\"name\":\"n1\",\"state\":\"up\",\"answers\":true,\"snapshot\":{\"uptime_s\":1,"
	     "\"mean_us\":7000000,\"mean_now_us\":1250,\"p99_us\":98700}},"
	     "{\"name\":\"n2\",\"state\":\"up\",\"answers\":true,\"snapshot\":{\"uptime_s\":1,\"mean_us\":"
	     "7000000,"
	     "\"mean_now_us\":0}}]}");
	expect("<td class=\"n\" data-l=\"Mean\">1.25 ms</td><td class=\"n\" data-l=\"99 %\">98.7 ms</td>");
	assert_int_equal(count(">&ndash;</td>"),
			 2 + 4); /* and versions and datapaths, which nobody has told */
	assert_int_equal(count("7000"), 0);
}

static void test_events(void **state)
{
	const char *older, *newer;

	(void)state;
	page("{\"events\":["
	     "{\"time_ms\":0,\"kind\":\"join\",\"level\":\"info\",\"node\":\"n3\",\"text\":\"n3 joined\"},"
	     "{\"time_ms\":86400999,\"kind\":\"" EVIL "\",\"level\":\"" EVIL "\",\"node\":\"" EVIL
	     "\",\"text\":\"" EVIL "\"},"
	     "{\"time_ms\":90061000,\"kind\":\"crash\",\"level\":\"warning\",\"node\":\"n3\",\"text\":\"n3 "
	     "left\"},7]}");
	older = strstr(html, "<tr><td>1970-01-01 00:00:00 UTC</td><td class=\"\">join</td><td>n3</td>");
	newer = strstr(html, "<tr><td>1970-01-02 01:01:01 UTC</td><td class=\"warn\">crash</td><td>n3</td>"
			     "<td class=\"path\">n3 left</td></tr>");
	assert_non_null(older);
	assert_non_null(newer);
	assert_true(newer < older);
	expect("1970-01-02 00:00:00 UTC");
	assert_int_equal(count("<script"), 1);
	assert_int_equal(count("&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"), 3);
}

static void test_problems(void **state)
{
	(void)state;
	page("{\"check\":{\"at_s\":3600,\"age_s\":0.5,\"error\":\"\",\"summary\":{\"error\":2,\"warning\":1,"
	     "\"unchecked\":4},"
	     "\"findings\":[{\"severity\":\"error\",\"found\":\"x = 0\",\"why\":\"It "
	     "matters.\",\"action\":\"set x\"},"
	     "{\"severity\":\"" EVIL "\",\"found\":\"" EVIL "\",\"why\":\"" EVIL "\",\"action\":\"" EVIL
	     "\"},"
	     "{\"severity\":\"warning\",\"found\":\"y\",\"why\":\"z\",\"action\":null}]}}");
	expect("<p class=\"bad\">2 errors and 1 warning at <span class=\"\">1970-01-01 01:00:00 UTC</span>; "
	       "4 could not be looked at");
	expect("<td class=\"bad\">error</td><td class=\"path\">x = 0.</td><td class=\"path\">It matters.</td>"
	       "<td class=\"path\"><code>set x</code></td>");
	expect("<td class=\"path\">z</td><td class=\"path\"></td>");
	assert_int_equal(count("<script"), 1);
	assert_int_equal(count("&lt;script&gt;alert(&#39;&amp;&quot;&#39;)"), 4);
	page("{\"check\":{\"at_s\":3600,\"age_s\":151,\"error\":\"\",\"summary\":{\"error\":0},\"findings\":["
	     "]}}");
	expect("<p class=\"ok\">0 errors and 0 warnings at <span class=\"old\">1970-01-01 01:00:00 UTC "
	       "(old)</span></p>");
	page("{\"check\":{\"at_s\":3600,\"age_s\":1,\"error\":\"" EVIL
	     "\",\"summary\":null,\"findings\":[]}}");
	expect("<p class=\"bad\">Not known, since earshot check could not be run at <span "
	       "class=\"\">1970-01-01 01:00:00 UTC</span>: &lt;script");
	assert_int_equal(count(">not known</td>"), 1);
	page("{\"check\":{\"at_s\":null,\"age_s\":null,\"error\":\"\",\"summary\":null,\"findings\":[]}}");
	expect("Being looked for");
	assert_int_equal(count(">not known</td>"), 1);
}

/* If a path is asked for with two secrets, the path alone is told, with the requests and nodes of both. */
static void test_no_queries(void **state)
{
	struct json_object *view =
		json_tokener_parse("{\"nodes\":[{\"name\":\"n1\",\"answers\":true,\"snapshot\":{\"hot\":[{"
				   "\"service\":\"web\",\"targets\":["
				   "{\"uri\":\"//a/x?key=secret1\",\"requests\":5,\"nodes\":[\"n1\",\"n2\"]},"
				   "{\"uri\":\"//a/y\",\"requests\":4},"
				   "{\"uri\":\"//a/x?key=secret2\",\"requests\":3,\"nodes\":[\"n3\",\"n2\"]},"
				   "{\"uri\":\"//a/y?secret3\",\"requests\":2,\"nodes\":[\"n1\"]},7]},7]}},"
				   "{\"name\":\"n2\",\"snapshot\":null},7]}");
	struct json_object *node, *targets;

	(void)state;
	assert_non_null(view);
	es_conceal_queries(view);
	assert_null(strstr(json_object_to_json_string(view), "secret"));
	node = json_object_array_get_idx(es_json_array(view, "nodes"), 0);
	targets = es_json_array(
		json_object_array_get_idx(es_json_array(es_json_object(node, "snapshot"), "hot"), 0),
		"targets");
	assert_string_equal(json_object_to_json_string_ext(targets, JSON_C_TO_STRING_PLAIN |
									    JSON_C_TO_STRING_NOSLASHESCAPE),
			    "[{\"uri\":\"//a/x\",\"requests\":8,\"nodes\":[\"n1\",\"n2\",\"n3\"]},"
			    "{\"uri\":\"//a/y\",\"requests\":6,\"nodes\":[\"n1\"]}]");
	json_object_put(view);
	view = json_tokener_parse("{\"nodes\":7}");
	es_conceal_queries(view);
	json_object_put(view);
}

static void test_nothing(void **state)
{
	(void)state;
	page("{}");
	expect("0 nodes");
	/* Behind a proxy it may be below a path. */
	assert_int_equal(count("=\"/") + count("'/"), 0);
	expect("fetch(''");
	expect("href=\"metrics\"");
	expect("href=\"page.json\"");
	page("{\"nodes\":7,\"ring_places\":\"x\",\"membership\":[]}");
	expect("</html>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),	    cmocka_unit_test(test_escaping),
		cmocka_unit_test(test_old_figures), cmocka_unit_test(test_set_by_hand),
		cmocka_unit_test(test_times),	    cmocka_unit_test(test_events),
		cmocka_unit_test(test_problems),    cmocka_unit_test(test_no_queries),
		cmocka_unit_test(test_nothing),	    cmocka_unit_test(test_health),
		cmocka_unit_test(test_matrix),	    cmocka_unit_test(test_charts),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(html);
	return failed;
}
