// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Parses the text of a configuration: has scan.c look at it, lets libconfuse parse it,
 * and takes each key the moment it is parsed, because only then libconfuse knows the line. All errors,
 * libconfuse's too, end up in errors.c. The keys are in keys.h, where sections go in sections.c, what
 * values are right in value.c, what sections must have in check.c.
 */
#include "inspector/config/config.h"

#include <confuse.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/internal.h"

#define LABEL_SIZE 128

#define ES_CONF_UNKNOWN_MAX 16

/**
 * struct es_conf_unknown - keys that do not exist, but that libconfuse is told to take
 * libconfuse ends at a key that it does not know. To find all errors of a file, the file is parsed again,
 * with that key among those to take.
 * @section: index of es_conf_sections; @again: a key was added since the parse began
 */
struct es_conf_unknown {
	unsigned int count;
	int again;
	struct {
		int section;
		char name[ES_CONF_NAME_SIZE];
	} key[ES_CONF_UNKNOWN_MAX];
};

/* struct es_conf_reader - what libconfuse's callbacks work on */
struct es_conf_reader {
	struct es_conf_parse parse;
	cfg_t *root;
	const struct es_conf_section *section; /* the innermost one that is open, or NULL */
	struct es_conf_place place;	       /* that of @section */
	struct es_conf_unknown *unknown;       /* NULL: an unknown key ends the parse */
};

/* libconfuse gives its callbacks no context of ours, and its lexer is a global anyway. */
static struct es_conf_reader *reader;

/* Puts back the characters that scan.c has hidden from libconfuse. */
static void hidden_restore(char *text)
{
	for (char *at = text; at && *at; at++) {
		if (*at == ES_CONF_BACKSLASH)
			*at = '\\';
		if (*at == ES_CONF_COMMA)
			*at = ',';
		if (*at == ES_CONF_BLANK)
			*at = ' ';
	}
}

/* "service web" or "datapath"; "" for the file itself */
static const char *label_of(cfg_t *cfg, char *label)
{
	label[0] = 0;
	if (cfg && cfg != reader->root)
		snprintf(label, LABEL_SIZE, "%s%s%.80s", cfg_name(cfg), cfg_title(cfg) ? " " : "",
			 cfg_title(cfg) ? cfg_title(cfg) : "");
	return label;
}

static const struct es_conf_section *section_find(const char *name)
{
	int i;

	for (i = 0; name && i < ES_CONF_SECTIONS; i++)
		if (!strcmp(es_conf_sections[i].name, name))
			return &es_conf_sections[i];
	return NULL;
}

/* Called at a section's first key, or at its end if it has none. */
static int section_open_one(cfg_t *cfg, int line)
{
	const struct es_conf_section *section = section_find(cfg_name(cfg));
	struct es_conf_parse *p = &reader->parse;
	char label[LABEL_SIZE];

	hidden_restore((char *)cfg_title(cfg));
	if (!section)
		return es_conf_fail(p, line, "key outside of a section: expected a section");
	label_of(cfg, label);
	if (es_conf_section_open(p, section, label, cfg_title(cfg), line, &reader->place))
		return -EINVAL;
	reader->section = section;
	return 0;
}

/* The service that has the section @inner inside. libconfuse knows the way down only. */
static cfg_t *service_of(cfg_t *inner)
{
	cfg_opt_t *services = cfg_getopt(reader->root, es_conf_sections[ES_CONF_SERVICE].name);

	for (unsigned int i = 0; i < cfg_opt_size(services); i++) {
		cfg_t *service = cfg_opt_getnsec(services, i);

		for (unsigned int k = 0; k < cfg_size(service, cfg_name(inner)); k++)
			if (cfg_getnsec(service, cfg_name(inner), k) == inner)
				return service;
	}
	return NULL;
}

static int section_is_inner(const struct es_conf_section *section)
{
	return section >= &es_conf_sections[ES_CONF_PLUGIN];
}

/* A section inside another one opens the outer one first, if that is not open yet. */
static int section_open(cfg_t *cfg, int line)
{
	const struct es_conf_section *section = section_find(cfg_name(cfg));
	cfg_t *service = section && section_is_inner(section) ? service_of(cfg) : NULL;

	if (service && !reader->section && section_open_one(service, reader->root->line))
		return -EINVAL;
	return section_open_one(cfg, service ? service->line : line);
}

static int section_is_open(const cfg_t *cfg)
{
	return reader->section && !strcmp(reader->section->name, cfg_name((cfg_t *)cfg));
}

/* Back from a section inside a service. */
static void section_close(void)
{
	struct es_conf_parse *p = &reader->parse;
	unsigned int service = p->conf->service_count - 1;

	if (!section_is_inner(reader->section)) {
		reader->section = NULL;
		return;
	}
	reader->section = &es_conf_sections[ES_CONF_SERVICE];
	reader->place.lines = &p->services[service];
	reader->place.data = &p->conf->services[service];
}

static void unknown_key(cfg_t *cfg, const char *name)
{
	const struct es_conf_section *section = cfg == reader->root ? NULL : section_find(cfg_name(cfg));
	char label[LABEL_SIZE], accepted[384] = "";
	size_t used = 0;
	int i;

	label_of(cfg, label);
	for (i = 0; section ? !!section->keys[i].name : i < ES_CONF_PLUGIN; i++)
		used += (size_t)snprintf(accepted + used, sizeof(accepted) - used, "%s%s", i ? " | " : "",
					 section ? section->keys[i].name : es_conf_sections[i].name);
	for (i = 0; section && i < ES_CONF_INNER_MAX && section->inner[i]; i++)
		used += (size_t)snprintf(accepted + used, sizeof(accepted) - used, " | %s%s {",
					 section->inner[i]->name, section->inner[i]->titled ? " NAME" : "");
	es_conf_fail(&reader->parse, cfg->line, "%s%sunknown %s \"%.80s\": expected %s", label,
		     label[0] ? ": " : "", section ? "key" : "section", name, accepted);
}

/* Notes an unknown key for the next parse, which takes it. */
static void unknown_note(cfg_t *cfg, const char *name)
{
	const struct es_conf_section *section = cfg == reader->root ? NULL : section_find(cfg_name(cfg));
	struct es_conf_unknown *unknown = reader->unknown;

	if (!section || !unknown || unknown->count == ES_CONF_UNKNOWN_MAX ||
	    strlen(name) >= ES_CONF_NAME_SIZE)
		return;
	unknown->key[unknown->count].section = (int)(section - es_conf_sections);
	snprintf(unknown->key[unknown->count++].name, ES_CONF_NAME_SIZE, "%s", name);
	unknown->again = 1;
}

/* libconfuse: a key of @cfg has been read. While a section is open, its parent's line is the "{". */
static int on_value(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
	struct es_conf_parse *p = &reader->parse;
	char label[LABEL_SIZE], *text;
	int index, rc;

	if (!section_is_open(cfg) && section_open(cfg, reader->root->line))
		return -1;
	label_of(cfg, label);
	index = es_conf_key_index(reader->section, cfg_opt_name(opt));
	*(const char **)result = value;
	if (index < 0) {
		unknown_key(cfg, cfg_opt_name(opt));
		return 0;
	}
	/*
	 * A list's values arrive one by one; the first one of another list of that name arrives as its first.
	 */
	if (reader->place.lines->key[index] &&
	    (!es_conf_key_is_list(&reader->section->keys[index]) || cfg_opt_size(opt) <= 1)) {
		es_conf_fail(p, cfg->line, "%s: %s = %.80s: first set on line %d: expected it once", label,
			     cfg_opt_name(opt), value, reader->place.lines->key[index]);
		reader->place.lines->wrong = 1;
		return 0;
	}
	if (!reader->place.lines->key[index])
		reader->place.lines->key[index] = cfg->line;
	text = strdup(value);
	if (!text)
		return es_conf_fail(p, cfg->line, "%s: out of memory", label);
	hidden_restore(text);
	rc = es_conf_value_set(p, cfg->line, label, &reader->section->keys[index], text, reader->place.data);
	free(text);
	reader->place.lines->wrong |= !!rc;
	return 0;
}

/* The section of @opt that ended on @line: not always the last,
 * since a repeated name replaces its section. */
static cfg_t *section_ended(cfg_opt_t *opt, int line)
{
	unsigned int i = cfg_opt_size(opt);

	while (i-- > 1)
		if (cfg_opt_getnsec(opt, i)->line == line)
			return cfg_opt_getnsec(opt, i);
	return cfg_opt_getnsec(opt, 0);
}

/* libconfuse: one of @opt's sections has been closed. */
static int on_section_end(cfg_t *cfg, cfg_opt_t *opt)
{
	cfg_t *section_cfg = section_ended(opt, cfg->line);
	char label[LABEL_SIZE];

	if (!section_is_open(section_cfg) && section_open(section_cfg, cfg->line))
		return -1;
	label_of(section_cfg, label);
	if (reader->section->titled &&
	    es_conf_section_complete(&reader->parse, reader->section, label, reader->place.lines))
		reader->place.lines->wrong = 1;
	section_close();
	return 0;
}

/* libconfuse's own errors, in our words; those without an entry are passed on as they are. */
static const struct {
	const char *format;
	const char *ours; /* one %s for the prefix, one for the argument */
} messages[] = {
	{"missing equal sign after option '%s'", "%s%.80s: expected \"=\" and a value"},
	{"missing opening brace for section '%s'", "%s%.80s: expected \"{\""},
	{"missing title for section '%s'", "%s%.80s: name is missing: expected one before \"{\""},
	{"unexpected token '%s'", "%sunexpected \"%.80s\": expected KEY = VALUE"},
};

static void on_error(cfg_t *cfg, const char *format, va_list ap)
{
	struct es_conf_parse *p = &reader->parse;
	char label[LABEL_SIZE], prefix[LABEL_SIZE + 2], text[256];
	const char *name;
	int line = cfg->line;
	size_t i;

	label_of(cfg, label);
	snprintf(prefix, sizeof(prefix), "%s%s", label, label[0] ? ": " : "");
	if (!strcmp(format, "no such option '%s'")) {
		name = va_arg(ap, const char *);
		unknown_key(cfg, name);
		unknown_note(cfg, name);
		return;
	}
	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		if (strcmp(format, messages[i].format) != 0)
			continue;
		es_conf_fail(p, line, messages[i].ours, prefix, va_arg(ap, const char *));
		return;
	}
	vsnprintf(text, sizeof(text), format, ap);
	es_conf_fail(p, line, "%s%s: expected SECTION { KEY = VALUE }", prefix, text);
}

/*
 * Appends the unknown keys of a section; lists, which take a value without braces, too. Return: @k after
 * them.
 */
static int unknown_put(int section, cfg_opt_t *keys, int k, const cfg_opt_t *option)
{
	const struct es_conf_unknown *unknown = reader->unknown;

	for (unsigned int i = 0; unknown && i < unknown->count; i++) {
		if (unknown->key[i].section != section)
			continue;
		keys[k] = *option;
		keys[k].name = unknown->key[i].name;
		keys[k++].flags |= CFGF_LIST;
	}
	return k;
}

/* The options as libconfuse wants them; it copies them, names included. */
static cfg_t *options_new(void)
{
	static const cfg_opt_t key_option = CFG_STR_CB(NULL, NULL, CFGF_NODEFAULT, on_value);
	cfg_opt_t keys[ES_CONF_SECTIONS][ES_CONF_KEYS_MAX + ES_CONF_UNKNOWN_MAX + ES_CONF_INNER_MAX + 1] = {
		0};
	cfg_opt_t sections[ES_CONF_SECTIONS + 1] = {0};
	int i, k;

	/* The last ones are made first, since sections inside others stand after these in the table. */
	for (i = ES_CONF_SECTIONS - 1; i >= 0; i--) {
		const struct es_conf_section *section = &es_conf_sections[i];

		for (k = 0; section->keys[k].name; k++) {
			keys[i][k] = key_option;
			keys[i][k].name = section->keys[k].name;
			if (es_conf_key_is_list(&section->keys[k]))
				keys[i][k].flags |= CFGF_LIST;
		}
		k = unknown_put(i, keys[i], k, &key_option);
		sections[i] = (cfg_opt_t)CFG_SEC(section->name, keys[i],
						 CFGF_MULTI | (section->titled ? CFGF_TITLE : 0));
		sections[i].validcb = on_section_end;
		for (int j = 0; j < ES_CONF_INNER_MAX && section->inner[j]; j++)
			keys[i][k + j] = sections[section->inner[j] - es_conf_sections];
	}
	sections[ES_CONF_PLUGIN] = (cfg_opt_t)CFG_END();
	return cfg_init(sections, CFGF_NONE);
}

static int parse_text(struct es_conf_parse *p, char *text, size_t size)
{
	FILE *file;
	int r;

	if (!size)
		return 0;
	reader->root = options_new();
	if (!reader->root)
		return -ENOMEM;
	cfg_set_error_function(reader->root, on_error);
	file = fmemopen(text, size, "r");
	if (!file) {
		cfg_free(reader->root);
		return -ENOMEM;
	}
	r = cfg_parse_fp(reader->root, file);
	fclose(file);
	if (r != CFG_SUCCESS && !p->failed)
		es_conf_fail(p, reader->root->line, "syntax error: expected SECTION { KEY = VALUE }");
	cfg_free(reader->root); /* also resets the lexer, which an error may have left inside a string */
	return r == CFG_SUCCESS ? 0 : -EINVAL;
}

static int parse_all(struct es_conf_parse *p, const char *text, size_t size)
{
	char *blanked;
	int r;

	if (es_conf_section_defaults(p, &es_conf_sections[ES_CONF_CLUSTER], &p->conf->cluster) ||
	    es_conf_section_defaults(p, &es_conf_sections[ES_CONF_DATAPATH], &p->conf->datapath) ||
	    es_conf_section_defaults(p, &es_conf_sections[ES_CONF_INSPECTOR], &p->conf->inspector) ||
	    es_conf_section_defaults(p, &es_conf_sections[ES_CONF_STATUS], &p->conf->status) ||
	    es_conf_section_defaults(p, &es_conf_sections[ES_CONF_LOG], &p->conf->log))
		return -EINVAL;
	blanked = malloc(size + 1);
	if (!blanked)
		return -ENOMEM;
	memcpy(blanked, text, size);
	r = es_conf_scan(p, blanked, size);
	if (!r)
		r = parse_text(p, blanked, size);
	free(blanked);
	if (!r)
		r = es_conf_check(p);
	return p->failed ? -EINVAL : r;
}

unsigned long long es_conf_digest(const char *text, size_t size)
{
	unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211ULL;
	return hash;
}

/* One parse. @errors, @unknown: may be NULL, both. */
static int parse_once(const char *text, size_t size, const char *path, struct es_conf_errors *errors,
		      struct es_conf_unknown *unknown, struct es_conf **ret_conf, struct es_conf_error *err)
{
	int r = -ENOMEM;

	es_conf_error_set(err, "%s: out of memory", path);
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->parse.path = path;
	reader->parse.err = err;
	reader->parse.errors = errors;
	reader->unknown = unknown;
	reader->parse.conf = calloc(1, sizeof(*reader->parse.conf));
	if (reader->parse.conf) {
		snprintf(reader->parse.conf->path, sizeof(reader->parse.conf->path), "%s", path);
		reader->parse.conf->digest = es_conf_digest(text, size);
		r = parse_all(&reader->parse, text, size);
	}
	if (!r) {
		err->text[0] = 0;
		*ret_conf = reader->parse.conf;
		reader->parse.conf = NULL;
	}
	es_conf_free(&reader->parse.conf);
	free(reader);
	reader = NULL;
	return r;
}

int es_conf_parse(const char *text, size_t size, const char *path, struct es_conf **ret_conf,
		  struct es_conf_error *err)
{
	struct es_conf_error unwanted;

	return parse_once(text, size, path, NULL, NULL, ret_conf, err ? err : &unwanted);
}

int es_conf_parse_all(const char *text, size_t size, const char *path, struct es_conf **ret_conf,
		      struct es_conf_errors *errors)
{
	struct es_conf_unknown unknown = {};
	struct es_conf_error first;
	int r;

	do {
		unknown.again = 0;
		memset(errors, 0, sizeof(*errors));
		r = parse_once(text, size, path, errors, &unknown, ret_conf, &first);
	} while (unknown.again);
	if (r && !errors->count)
		errors->error[errors->count++] = first;
	return r;
}

static void rule_free(struct es_conf_rule *rule)
{
	free(rule->methods.text);
	free(rule->hosts.text);
	free(rule->paths.text);
	free(rule->suffixes.text);
	free(rule->clients.text);
	free(rule->node_names.text);
	free(rule->backup_names.text);
}

static void service_free(struct es_conf_service *service)
{
	free(service->parameters.text);
	free(service->check.statuses.text);
	free(service->node_names.text);
	free(service->backup_names.text);
}

void es_conf_free(struct es_conf **conf)
{
	if (!conf || !*conf)
		return;
	for (unsigned int i = 0; i < (*conf)->rule_count; i++)
		rule_free(&(*conf)->rules[i]);
	for (unsigned int i = 0; i < (*conf)->service_count; i++)
		service_free(&(*conf)->services[i]);
	for (unsigned int i = 0; i < (*conf)->node_count; i++)
		free((*conf)->nodes[i].routes.text);
	free((*conf)->warning);
	free((*conf)->status.allow.text);
	free((*conf)->status.names.text);
	free((*conf)->plugins);
	free((*conf)->rules);
	free(*conf);
	*conf = NULL;
}
