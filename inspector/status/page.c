// SPDX-License-Identifier: GPL-2.0-or-later
/* The status page as a whole: its head, look and script, and the order of its sections. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

static const char style[] =
	":root{color-scheme:light dark;--text:#1b1f24;--back:#fff;--soft:#f4f6f8;--line:#d3d9df;--ok:#0b6b2e;"
	"--warn:#8a4b00;--bad:#a30d1b;--old:#5b646d;--okback:#e9f6ed;--warnback:#fdf1df;--badback:#fbe6e8}"
	"@media(prefers-color-scheme:dark){:root{--text:#e6e9ec;--back:#14181c;--soft:#1d2328;--line:#38414a;"
	"--ok:#5fd38a;--warn:#f0b35a;--bad:#ff8189;--old:#a0a9b2;--okback:#13291c;--warnback:#30240f;"
	"--badback:#35171b}}"
	"*{box-sizing:border-box}body{margin:0 auto;max-width:90rem;padding:1rem;font:15px/1.4 "
	"system-ui,sans-serif;color:var(--text);background:var(--back)}a{color:inherit}"
	":focus-visible{outline:3px solid #3b82d6;outline-offset:2px}"
	"h1{font-size:1.25rem;margin:0}h2{font-size:1.1rem;margin:1.8rem 0 .3rem;border-bottom:1px solid "
	"var(--line)}h3{font-size:1rem;margin:.9rem 0 .2rem}p{margin:.4rem 0}"
	"#health{font-size:1.1rem;font-weight:600;border-left:.5rem solid;padding:.5rem .8rem;margin:.6rem 0;"
	"overflow-wrap:anywhere}#health.ok{background:var(--okback)}#health.warn{background:var(--warnback)}"
	"#health.bad{background:var(--badback)}"
	".ok{color:var(--ok)}.warn{color:var(--warn)}.bad{color:var(--bad)}"
	".none,.note,caption,small,.axis,.top{color:var(--old)}.old{color:var(--old);font-style:italic}"
	"nav a{display:inline-block;margin-right:1rem;padding:.2rem 0}.scroll{overflow-x:auto}"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
	"caption{text-align:left;font-size:.85rem;padding:.2rem 0}"
	"th[scope=row],#nodes thead th{white-space:nowrap}th,td{text-align:left;padding:.2rem "
	".5rem;border-bottom:1px solid var(--line);vertical-align:top}"
	"td.n{text-align:right;white-space:nowrap}td.old{white-space:normal}td.path{overflow-wrap:anywhere}#"
	"nodes td,#nodes th{padding:.2rem .4rem}#nodes td.path{min-width:9rem}"
	/* The services' nodes stand side by side as far as there is room, and then below each other. */
	".matrix,.matrix caption,.matrix tbody{display:block}.matrix thead{position:absolute;left:-99rem}"
	".matrix "
	"tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.2rem,1fr));gap:.4rem;margin:.5rem "
	"0}@media(min-width:70rem){.m1 tr,.m2 tr,.m3 tr{grid-template-columns:repeat(3,1fr)}"
	".m4 tr{grid-template-columns:repeat(4,1fr)}.m5 tr{grid-template-columns:repeat(5,1fr)}"
	".m6 tr{grid-template-columns:repeat(6,1fr)}}.matrix "
	"th{grid-column:1/-1;white-space:normal;border:0;padding:.2rem 0}.matrix small{font-weight:400}"
	".cell{border:1px solid var(--line);border-left:.4rem solid;border-radius:.3rem;padding:.3rem "
	".5rem;min-width:0}"
	".cell p{margin:0}.cell>p:first-child{display:flex;justify-content:space-between;gap:.5rem}"
	".cell b{color:var(--text)}.state{font-weight:600}.cell.ok{background:var(--okback)}"
	".cell.warn{background:var(--warnback)}.cell.bad{background:var(--badback)}.cell.none{border:1px "
	"dashed var(--line)}"
	".why{font-size:.85rem;overflow-wrap:anywhere}"
	"dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.2rem,1fr));gap:0 1rem;margin:.2rem "
	"0 0;"
	"color:var(--text);font-size:.9rem;font-variant-numeric:tabular-nums}"
	"dl div{display:flex;justify-content:space-between;gap:.4rem}dt{color:var(--old)}dd{margin:0;"
	"text-align:right}"
	".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:.3rem 1.2rem}"
	"figure{margin:0;min-width:0}figcaption{font-size:.9rem}.chart{position:relative}"
	".chart "
	"svg{width:100%;height:5.5rem;background:var(--soft)}.top{position:absolute;top:0;left:0;padding:0 "
	".2rem;font-size:.75rem;background:var(--soft)}.axis{display:flex;justify-content:space-between;font-"
	"size:.75rem;margin:0}.note{font-size:.85rem}"
	".grid{stroke:var(--line);fill:none;stroke-width:1;vector-effect:non-scaling-stroke}"
	"svg{display:block}svg.ring{width:11rem;height:11rem}.pair{display:flex;gap:1rem "
	"2.5rem;flex-wrap:wrap;"
	"align-items:start}"
	".line{fill:none;stroke-width:1.8;stroke-linejoin:round;vector-effect:non-scaling-stroke}"
	".d1{stroke-dasharray:6 3}.d2{stroke-dasharray:2 3}"
	".c0{stroke:#3b82d6}.c1{stroke:#d97706}.c2{stroke:#15a05a}"
	".c3{stroke:#c0408f}.c4{stroke:#7c5cd6}.c5{stroke:#a38a00}.c6{stroke:#0e9aa7}.c7{stroke:#d4483b}"
	".skip{position:absolute;left:-99rem}.skip:focus{position:static}ul{list-style:none;padding:0;margin:"
	"0}.legend li{display:inline-block;margin-right:1.2rem}"
	"li svg{display:inline-block;vertical-align:middle;margin-right:.4rem}code{overflow-wrap:anywhere}"
	"body.stale main{opacity:.55}#stale{display:none}body.stale #stale{display:block}"
	"@media(max-width:45rem){body{padding:.6rem}.stack,.stack caption,.stack tbody,.stack tr,.stack "
	"th,.stack "
	"td{display:block}.stack thead{position:absolute;left:-99rem}.stack tr{border:1px solid "
	"var(--line);border-radius:.3rem;margin:.4rem 0;padding:.3rem .5rem}.stack th,.stack "
	"td{border:0;padding:0}"
	".stack td:not([data-l],.path){display:inline-block;margin-right:.8rem}"
	".stack tr:has([data-l]){display:grid;grid-template-columns:1fr 1fr;gap:0 1.2rem}"
	".stack tr>th,.stack tr>.path,.stack [data-l=State]{grid-column:1/-1}"
	".stack td[data-l]{display:flex;justify-content:space-between;gap:.6rem;text-align:right;min-width:0}"
	".stack td[data-l]::before{content:attr(data-l);color:var(--old);text-align:left}}"
	"@media(min-width:70rem){main{display:grid;grid-template-columns:1fr 1fr;column-gap:2rem}"
	"section{grid-column:1/-1;min-width:0}#ring,#reasons{grid-column:auto}}";

/*
 * A part is changed only if it says something else, so that what is read aloud or selected stays. An element
 * that is focused, or scrolled, in one that changes stays so, too.
 */
static const char script[] =
	"'use strict';const "
	"parts=['at','services','nodes','history','problems','events','ring','reasons','hot'];"
	"let busy=false;"
	"function put(here,there){const all='a,[tabindex]',was=[...here.querySelectorAll(all)].indexOf("
	"document.activeElement);const left=[...here.querySelectorAll('.scroll')].map(e=>e.scrollLeft);"
	"here.innerHTML=there.innerHTML;"
	"[...here.querySelectorAll('.scroll')].forEach((e,i)=>{e.scrollLeft=left[i]||0});"
	"const is=here.querySelectorAll(all)[was];if(is)is.focus({preventScroll:true})}"
	"async function renew(){if(busy||document.hidden)return;busy=true;try{"
	"const answer=await fetch('',{cache:'no-store',signal:AbortSignal.timeout(5000)});"
	"if(!answer.ok)throw new Error(answer.status);"
	"const next=new DOMParser().parseFromString(await answer.text(),'text/html');"
	"const was=document.getElementById('health'),is=next.getElementById('health');"
	"if(was.textContent!==is.textContent)was.textContent=is.textContent;was.className=is.className;"
	"document.title=next.title;"
	"for(const id of parts){const here=document.getElementById(id),there=next.getElementById(id);"
	"if(here&&there&&here.innerHTML!==there.innerHTML)put(here,there)}"
	"document.body.classList.remove('stale')}catch(error){document.body.classList.add('stale')}busy="
	"false}"
	"setInterval(renew,2000);";

/* Ways to the sections, by keyboard, too. */
static void put_nav(FILE *file)
{
	static const char *const ways[][2] = {
		{"services", "Services"}, {"nodes", "Nodes"},	{"history", "Ten minutes"},
		{"problems", "Problems"}, {"events", "Events"}, {"ring", "Ring"},
		{"reasons", "Moves"},	  {"hot", "Content"},
	};

	fputs("<nav aria-label=\"Sections\">", file);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		fprintf(file, "<a href=\"#%s\">%s</a>", ways[i][0], ways[i][1]);
	fputs("</nav>", file);
}

static void head(FILE *file, struct json_object *view, const char *nonce)
{
	/* Among many tabs, the one that wants to be looked at. */
	static const char *const signs[] = {
		[ES_PAGE_OK] = "", [ES_PAGE_WARN] = "! ", [ES_PAGE_BAD] = "\u2717 "};

	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
	      file);
	fputs(signs[es_page_health_of(view)], file);
	es_html_text(file, es_json_string(view, "cluster"));
	fputs(" on ", file);
	es_html_text(file, es_json_string(view, "node"));
	fprintf(file,
		" - Earshot</title><noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"
		"<style nonce=\"%s\">%s</style></head>\n<body><a class=\"skip\" href=\"#services\">To the "
		"services</a>\n",
		nonce, style);
	fputs("<header><h1>Earshot: cluster ", file);
	es_html_text(file, es_json_string(view, "cluster"));
	fputs(", seen from ", file);
	es_html_text(file, es_json_string(view, "node"));
	fputs("</h1>\n", file);
	es_page_health(file, view);
	fputs("<p id=\"stale\" class=\"bad\" role=\"alert\">This node does not answer: what stands below is "
	      "old.</p>\n"
	      "<p id=\"at\">As of ",
	      file);
	es_html_clock(file, es_json_number(view, "at_s"));
	fprintf(file, ", ring epoch %llu, version ", es_json_number(es_json_object(view, "ring"), "epoch"));
	es_html_text(file, es_json_string(view, "version"));
	fputs("</p>\n", file);
	put_nav(file);
	fputs("</header>\n", file);
}

/* Nodes that have a place in the list alone. */
static void leave_out_removed(struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes");

	for (size_t i = json_object_array_length(nodes); i-- > 0;)
		if (!strcmp(es_json_string(json_object_array_get_idx(nodes, i), "state"), "removed"))
			json_object_array_del_idx(nodes, i, 1);
}

int es_page_html(struct json_object *view, const char *nonce, char **ret_html, size_t *ret_len)
{
	char *html = NULL;
	FILE *file = open_memstream(&html, ret_len);
	int failed;

	if (!file)
		return -ENOMEM;
	leave_out_removed(view);
	head(file, view, nonce);
	fputs("<main>\n", file);
	es_page_matrix(file, view);
	es_page_nodes(file, view);
	es_page_charts(file, view);
	es_page_problems(file, view);
	es_page_events(file, view);
	es_page_ring(file, view);
	es_page_reasons(file, view);
	es_page_hot(file, view);
	fputs("</main>\n<footer><p>For programs: <a href=\"metrics\">metrics</a>, <a "
	      "href=\"page.json\">this page as JSON</a>."
	      "</p></footer>\n",
	      file);
	fprintf(file, "<script nonce=\"%s\">%s</script></body></html>\n", nonce, script);
	failed = ferror(file);
	if (fclose(file) || failed) {
		free(html);
		return -ENOMEM;
	}
	*ret_html = html;
	return 0;
}
