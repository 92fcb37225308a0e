// SPDX-License-Identifier: GPL-2.0-or-later
/* The status page as a whole: its head, look and script, and the order of its sections. */
#include <errno.h>
#include <stdlib.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

static const char style[] =
	":root{color-scheme:light dark;--text:#1b1f24;--back:#fff;--soft:#f1f3f5;--line:#cfd5db;--ok:#0b6b2e;"
	"--warn:#8a4b00;--bad:#a30d1b;--old:#626a73}"
	"@media(prefers-color-scheme:dark){:root{--text:#e6e9ec;--back:#14181c;--soft:#20262c;--line:#3d464f;"
	"--ok:#5fd38a;--warn:#f0b35a;--bad:#ff8189;--old:#a0a9b2}}"
	"body{margin:0 auto;max-width:72rem;padding:1rem;font:16px/1.45 "
	"system-ui,sans-serif;color:var(--text);"
	"background:var(--back)}h1{font-size:1.3rem;margin:0}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}"
	"#health{font-size:1.15rem;font-weight:600;border-left:.4rem solid;padding:.5rem .8rem;margin:.6rem "
	"0;"
	"background:var(--soft)}.ok{color:var(--ok)}.warn{color:var(--warn)}.bad{color:var(--bad)}"
	".old{color:var(--old);font-style:italic}.scroll{overflow-x:auto}"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
	"caption{text-align:left;color:var(--old);font-size:.9rem;padding:.2rem 0}"
	"th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid var(--line);white-space:nowrap}"
	"td.n{text-align:right}td.path{white-space:normal;overflow-wrap:anywhere}"
	"svg{display:block}svg.ring{width:11rem;height:11rem}.pair{display:flex;gap:2rem;flex-wrap:wrap;"
	"align-items:center}"
	".line{fill:none;stroke:currentColor;stroke-width:1.5}.c0{stroke:#3b82d6}.c1{stroke:#d97706}.c2{"
	"stroke:#15a05a}"
	".c3{stroke:#c0408f}.c4{stroke:#7c5cd6}.c5{stroke:#a38a00}.c6{stroke:#0e9aa7}.c7{stroke:#d4483b}"
	".skip{position:absolute;left:-99rem}.skip:focus{position:static}ul{list-style:none;padding:0;margin:"
	"0}"
	"li svg{display:inline-block;vertical-align:middle;margin-right:.4rem}"
	"body.stale main{opacity:.55}#stale{display:none}body.stale #stale{display:block}";

/* A part is changed only if it says something else, so that what is read aloud or selected stays. */
static const char script[] =
	"'use strict';const parts=['at','nodes','problems','ring','requests','reasons','hot','events'];let "
	"busy=false;"
	"async function renew(){if(busy||document.hidden)return;busy=true;try{"
	"const answer=await fetch('',{cache:'no-store',signal:AbortSignal.timeout(5000)});"
	"if(!answer.ok)throw new Error(answer.status);"
	"const next=new DOMParser().parseFromString(await answer.text(),'text/html');"
	"const was=document.getElementById('health'),is=next.getElementById('health');"
	"if(was.textContent!==is.textContent)was.textContent=is.textContent;was.className=is.className;"
	"for(const id of parts){const here=document.getElementById(id),there=next.getElementById(id);"
	"if(here&&there&&here.innerHTML!==there.innerHTML)here.innerHTML=there.innerHTML}"
	"document.body.classList.remove('stale')}catch(error){document.body.classList.add('stale')}busy="
	"false}"
	"setInterval(renew,2000);";

void es_page_section(FILE *file, const char *id, const char *heading)
{
	fprintf(file, "<section id=\"%s\" aria-labelledby=\"h-%s\"><h2 id=\"h-%s\">%s</h2>\n", id, id, id,
		heading);
}

void es_page_table(FILE *file, const char *caption, const char *const *headings)
{
	fprintf(file,
		"<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
		"aria-label=\"%s\"><table><caption>%s</caption>"
		"<thead><tr>",
		caption, caption);
	for (; *headings; headings++)
		fprintf(file, "<th scope=\"col\">%s</th>", *headings);
	fputs("</tr></thead><tbody>\n", file);
}

void es_page_table_end(FILE *file)
{
	fputs("</tbody></table></div>\n", file);
}

static void head(FILE *file, struct json_object *view, const char *nonce)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>",
	      file);
	es_html_text(file, es_json_string(view, "cluster"));
	fputs(" on ", file);
	es_html_text(file, es_json_string(view, "node"));
	fprintf(file,
		" - Earshot</title><noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"
		"<style nonce=\"%s\">%s</style></head>\n<body><a class=\"skip\" href=\"#nodes\">To the "
		"nodes</a>\n",
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
	fputs("</p></header>\n", file);
}

int es_page_html(struct json_object *view, const char *nonce, char **ret_html, size_t *ret_len)
{
	char *html = NULL;
	FILE *file = open_memstream(&html, ret_len);
	int failed;

	if (!file)
		return -ENOMEM;
	head(file, view, nonce);
	fputs("<main>\n", file);
	es_page_nodes(file, view);
	es_page_problems(file, view);
	es_page_ring(file, view);
	es_page_requests(file, view);
	es_page_reasons(file, view);
	es_page_hot(file, view);
	es_page_events(file, view);
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
