/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_CONFIG_INTERNAL_H
#define ES_INSPECTOR_CONFIG_INTERNAL_H

/* Shared by the parts of the configuration parser; nobody else includes this. */
#include "inspector/config/config.h"

#define ES_CONF_KEYS_MAX 24 /* keys of the largest section */

enum es_conf_section_id {
	ES_CONF_CLUSTER,
	ES_CONF_DATAPATH,
	ES_CONF_INSPECTOR,
	ES_CONF_STATUS,
	ES_CONF_LOG,
	ES_CONF_NODE,
	ES_CONF_SERVICE,
	ES_CONF_RULE,
	ES_CONF_LOCATION,
	ES_CONF_PLUGIN, /* this and the next ones inside a service */
	ES_CONF_CHECK,
	ES_CONF_OUTLIER,
	ES_CONF_PAGE,
	ES_CONF_TLS,
	ES_CONF_SECTIONS
};

enum es_conf_kind {
	ES_CONF_KIND_NUMBER,
	ES_CONF_KIND_CHOICE,
	ES_CONF_KIND_TEXT,
	ES_CONF_KIND_PATH,
	ES_CONF_KIND_FILE,   /* a path, or a name */
	ES_CONF_KIND_CONFIG, /* any text */
	ES_CONF_KIND_IFNAME,
	ES_CONF_KIND_ADDRESS,
	ES_CONF_KIND_ADDRESSES, /* of a service: one, or one of each family with a comma between them */
	ES_CONF_KIND_LOCAL,	/* an address, perhaps of lo */
	ES_CONF_KIND_LOCALS,	/* likewise, or one of each family: a server's */
	ES_CONF_KIND_MAC,
	ES_CONF_KIND_POLICY,
	ES_CONF_KIND_HEADER,
	ES_CONF_KIND_TOKEN,
	ES_CONF_KIND_BODY, /* of an answer */
	ES_CONF_KIND_RATE,
	ES_CONF_KIND_ALPN,
	ES_CONF_KIND_CIPHERS,  /* OpenSSL's words */
	ES_CONF_KIND_ENDPOINT, /* where a server listens */
	ES_CONF_KIND_FILES,    /* a list of paths, in an array of them */
	ES_CONF_KIND_LIST,
};

/* The kinds of values that a list may have. */
enum es_conf_item {
	ES_CONF_ITEM_NODE,
	ES_CONF_ITEM_METHOD,
	ES_CONF_ITEM_HOST,
	ES_CONF_ITEM_PATH,
	ES_CONF_ITEM_SUFFIX,
	ES_CONF_ITEM_NETWORK,
	ES_CONF_ITEM_PEERS,  /* a network of machines that are no clients, this one perhaps */
	ES_CONF_ITEM_CALLED, /* what a node is called: a host name, *.DOMAIN or an address */
	ES_CONF_ITEM_PARAMETER,
	ES_CONF_ITEM_STATUS, /* of an answer, or FIRST..LAST */
	ES_CONF_ITEM_ROUTE,  /* as a value of a cookie has it */
};

struct es_conf_choice {
	const char *name;
	int value;
};

/*
 * Must nodes be alike in a key? MUST: a node that differs is refused; SHOULD: the difference is shown;
 * LISTED: likewise, in the list of the nodes; OWN: it is a node's own affair.
 */
enum es_conf_alike {
	ES_CONF_MUST = 1,
	ES_CONF_SHOULD,
	ES_CONF_LISTED,
	ES_CONF_OWN,
};

/**
 * struct es_conf_key - one key of a section; its meaning stands before its line of the table (keys.h)
 * @offset, @size: of the field in the section's structure
 * @line, @lead, @is_numbered: of a key that should be alike, how nodes tell it each other (alike.c): @line
 * follows the section's name in the line that it is in, NULL: in one of its own; @lead precedes its value
 * there, NULL: its name;
 * @is_numbered: of a choice, the number
 * @min, @max, @unit, @zero: for numbers; @zero is the meaning of a 0 outside the range, NULL if there is none
 * @def: default as it would stand in the file; NULL: required, "": optional, nothing is stored
 */
struct es_conf_key {
	const char *name;
	enum es_conf_kind kind;
	enum es_conf_item item; /* of a list */
	size_t offset;
	size_t size;
	enum es_conf_alike alike;
	int is_numbered;
	const char *line;
	const char *lead;
	const char *def;
	unsigned int min;
	unsigned int max;
	const char *unit;
	const char *zero;
	const struct es_conf_choice *choices;
};

#define ES_CONF_INNER_MAX 5

/* @keys ends with a nameless one; @inner: the sections that it may have inside, NULL after them */
struct es_conf_section {
	const char *name;
	int titled;
	const struct es_conf_key *keys;
	const struct es_conf_section *inner[ES_CONF_INNER_MAX];
};

extern const struct es_conf_section es_conf_sections[ES_CONF_SECTIONS];

/* Does the file give such a key a list? */
static inline int es_conf_key_is_list(const struct es_conf_key *key)
{
	return key->kind == ES_CONF_KIND_LIST || key->kind == ES_CONF_KIND_FILES;
}

/* Index of the key @name in @section, or -1. */
int es_conf_key_index(const struct es_conf_section *section, const char *name);

/* Where things stand in the file; a line is 0 for what is not there. @wrong: a value is, or one is missing */
struct es_conf_lines {
	int open;
	int wrong;
	int key[ES_CONF_KEYS_MAX];
};

/* struct es_conf_parse - a parse under way */
struct es_conf_parse {
	const char *path;
	struct es_conf *conf;
	struct es_conf_error *err;     /* gets the first one */
	struct es_conf_errors *errors; /* gets all of them, unless NULL */
	int failed;
	struct es_conf_lines cluster, datapath, inspector, status, log;
	struct es_conf_lines nodes[ES_CONF_NODES_MAX];
	struct es_conf_lines services[ES_CONF_SERVICES_MAX];
	struct es_conf_lines checks[ES_CONF_SERVICES_MAX];
	struct es_conf_lines outliers[ES_CONF_SERVICES_MAX];
	struct es_conf_lines pages[ES_CONF_SERVICES_MAX];
	struct es_conf_lines tls[ES_CONF_SERVICES_MAX];
	struct es_conf_lines plugins[ES_CONF_PLUGINS_MAX];
	struct es_conf_lines rules[ES_CONF_RULES_MAX];
};

/* struct es_conf_place - where an open section's lines are noted, and where its values go */
struct es_conf_place {
	struct es_conf_lines *lines;
	void *data;
};

/**
 * es_conf_section_open() - makes room for the section that begins on @line, with its defaults (sections.c)
 * @label: of it, for messages; @title: its name or path, NULL if it has none
 * Return: 0; -EINVAL if it may not be there, which is noted.
 */
int es_conf_section_open(struct es_conf_parse *p, const struct es_conf_section *section, const char *label,
			 const char *title, int line, struct es_conf_place *ret_place);

/* errors.c: notes an error, "path:line: what"; line 0 is left out. Return: -EINVAL. */
int es_conf_fail(struct es_conf_parse *p, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Notes a warning, "path:line: what"; without memory for it, nothing. */
void es_conf_warn(struct es_conf_parse *p, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Stands for a backslash while libconfuse, which takes that for an escape, has the text. */
#define ES_CONF_BACKSLASH '\001'

/*
 * Stand for a comma outside of a list, and for the blanks before and after it: it makes one value of two
 * words.
 */
#define ES_CONF_COMMA '\002'
#define ES_CONF_BLANK '\003'

/* scan.c: refuses what libconfuse would silently accept or drop, blanks comments in @text, and puts
 * ES_CONF_BACKSLASH and ES_CONF_COMMA where there is one. */
int es_conf_scan(struct es_conf_parse *p, char *text, size_t size);

/* value.c: stores @value into @section_data. @label ("service web") is for the message. */
int es_conf_value_set(struct es_conf_parse *p, int line, const char *label, const struct es_conf_key *key,
		      const char *value, void *section_data);

/* Appends one of the accepted words to @why, " | " between them; what does not fit is left out. */
void es_conf_alternative(char *why, size_t size, int *alternatives, const char *word);

/**
 * es_conf_item_read() - a value of a list, in the form in which requests are compared with it (item.c)
 * @ret_value: has room for ES_CONF_PATH_SIZE bytes; of a path, it is decoded
 * Return: 1; 0 if @text is none of these, and @ret_expected says what would be.
 */
int es_conf_item_read(enum es_conf_item item, const char *text, char *ret_value, const char **ret_expected);

/* "200" or "200..299": statuses of answers that are no interim ones. 0 or -EINVAL. */
int es_conf_statuses_parse(const char *text, unsigned int *ret_first, unsigned int *ret_last);

int es_conf_token_is_valid(const char *text, size_t len);
#define ES_CONF_TOKEN_EXPECTED "1..63 characters without space or any of ()<>@,;:/[]?={}"

/* Has the path or suffix @text a %XX that is a character of ASCII, and need not be written so? */
int es_conf_item_is_escaped(enum es_conf_item item, const char *text);
#define ES_CONF_ESCAPED "is \"%.80s\": %%XX is decoded, and a percent sign itself is %%25"

int es_conf_name_is_valid(const char *name);
#define ES_CONF_NAME_EXPECTED "1..63 letters, digits, '.', '_' or '-', starting with a letter or digit"

/* sections.c: the defaults of a section where it begins, and what it lacks at its end. */
int es_conf_section_defaults(struct es_conf_parse *p, const struct es_conf_section *section,
			     void *section_data);
int es_conf_section_complete(struct es_conf_parse *p, const struct es_conf_section *section,
			     const char *label, const struct es_conf_lines *lines);

/* lines.c: the line of @key, or that of its section; does the file set it? */
int es_conf_line_of(const struct es_conf_lines *lines, enum es_conf_section_id section, const char *key);
int es_conf_has(const struct es_conf_lines *lines, enum es_conf_section_id section, const char *key);

/*
 * The nodes that @list names. Returns NULL; or the first name that no node has, and @ret_known, the names
 * that there are.
 */
const char *es_conf_nodes_of(const struct es_conf *conf, const struct es_conf_list *list,
			     struct es_node_set *ret_nodes, char *ret_known, size_t size);

/* check.c: checks the sections against each other. */
int es_conf_check(struct es_conf_parse *p);

/* health.c: checks a service's check { }, and finds the statuses that are right to it. */
void es_conf_check_health(struct es_conf_parse *p, unsigned int service);

/*
 * tls.c: checks a service's tls { }. Its inspect becomes earshot-tls's business, and the server to which
 * connections are handed over is earshot-tls itself.
 */
void es_conf_check_tls(struct es_conf_parse *p, unsigned int service);

/* netfilter.c: refuses what the netfilter datapath does not do, if the file asks for that datapath. */
int es_conf_check_netfilter(struct es_conf_parse *p);

/*
 * backup.c: checks and finds the nodes that serve a service only while none of the others can; checks its
 * page.
 */
void es_conf_check_backup(struct es_conf_parse *p, unsigned int service);

/* rules.c: checks rules and locations, and the parameters that a service gives to its policy. */
int es_conf_check_rules(struct es_conf_parse *p);
int es_conf_check_parameters(struct es_conf_parse *p, unsigned int service);

#endif
