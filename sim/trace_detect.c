// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tells what a file is by its first bytes. A format that cannot be read is called by its name, with what to
 * do about it: a log that is taken for something else would be answered from without anybody noticing.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "sim/trace.h"

/* 1998, the year of the championship. */
#define ES_WC98_FIRST_S 883612800u
#define ES_WC98_LAST_S	915148799u

static const struct {
	const char *bytes;
	size_t len;
	size_t at;
	struct es_trace_foreign is;
} es_signatures[] = {
	{"\xfd"
	 "7zXZ",
	 6,
	 0,
	 {"data compressed by xz", "xz -dc", NULL}},
	{"\x28\xb5\x2f\xfd", 4, 0, {"data compressed by zstd", "zstd -dc", NULL}},
	{"1AY&SY", 6, 4, {"data compressed by bzip2", "bzip2 -dc", NULL}},
	{"\x04\x22\x4d\x18", 4, 0, {"data compressed by lz4", "lz4 -dc", NULL}},
	{"LZIP\x01", 5, 0, {"data compressed by lzip", "lzip -dc", NULL}},
	{"\x1f\x9d", 2, 0, {"data compressed by compress", "gzip -dc", NULL}},
	{"PK\x03\x04", 4, 0, {"a zip archive", "unzip -p", NULL}},
	{"PK\x05\x06", 4, 0, {"a zip archive without files", NULL, NULL}},
	{"7z\xbc\xaf\x27\x1c", 6, 0, {"a 7z archive", "7z x -so", NULL}},
	{"Rar!\x1a\x07", 6, 0, {"a rar archive", "unrar p -inul", NULL}},
	{"ustar\0", 6, 257, {"a tar archive", "tar -xOf", NULL}},
	{"ustar  ", 7, 257, {"a tar archive", "tar -xOf", NULL}},
	{"LPKSHHRH", 8, 0, {"a journal of systemd", "journalctl -o cat --file", NULL}},
	{"\xff\xfe", 2, 0, {"text in UTF-16", "iconv -f UTF-16 -t UTF-8", NULL}},
	{"\xfe\xff", 2, 0, {"text in UTF-16", "iconv -f UTF-16 -t UTF-8", NULL}},
	{"\xd4\xc3\xb2\xa1", 4, 0, {"captured packets", NULL, "an access log is needed"}},
	{"\x0a\x0d\x0d\x0a", 4, 0, {"captured packets", NULL, "an access log is needed"}},
	{"SQLite format 3", 15, 0, {"a database of SQLite", NULL, "an access log is needed"}},
	{"%PDF-", 5, 0, {"a PDF document", NULL, "an access log is needed"}},
	{"\x7f"
	 "ELF",
	 4,
	 0,
	 {"a program", NULL, "an access log is needed"}},
};

static const struct es_trace_foreign es_utf16_without_mark = {"text in UTF-16", "iconv -f UTF-16LE -t UTF-8",
							      NULL};
static const struct es_trace_foreign es_json = {
	"a log in JSON", NULL,
	"have the server write the combined log format, or convert it, with your names of the fields: "
	"jq -r '\"\\(.remote_addr) - - [\\(.time_iso8601)] \\\"\\(.request)\\\" \\(.status) "
	"\\(.body_bytes_sent)\"'"};
static const struct es_trace_foreign es_w3c = {
	"a log in W3C's extended format, as IIS and CloudFront write it", NULL,
	"have the server write the common or combined log format (IIS: NCSA), or convert it"};
static const struct es_trace_foreign es_markup = {"a document in HTML or XML", NULL,
						  "an access log is needed"};
static const struct es_trace_foreign es_binary = {
	"binary data", NULL, "if they are a WorldCup98 log, say so: --trace-format=wc98"};

const struct es_trace_foreign *es_trace_foreign(const char *data, size_t len)
{
	for (size_t i = 0; i < sizeof(es_signatures) / sizeof(es_signatures[0]); i++)
		if (es_signatures[i].at + es_signatures[i].len <= len &&
		    !memcmp(data + es_signatures[i].at, es_signatures[i].bytes, es_signatures[i].len))
			return &es_signatures[i].is;
	return NULL;
}

/* A record's first two numbers are its time and a client below 2^24. */
static int es_is_wc98(const char *data, size_t len)
{
	const __u8 *bytes = (const __u8 *)data;
	struct es_trace_record record;
	char uri[16];

	return len >= ES_WC98_RECORD_BYTES && !bytes[4] &&
	       es_trace_wc98_record(bytes, uri, &record) != ES_SKIP_BAD_CODE &&
	       record.time_s >= ES_WC98_FIRST_S && record.time_s <= ES_WC98_LAST_S;
}

static int es_begins_with_one_of(const char *data, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (len >= strlen(*words) && !strncasecmp(data, *words, strlen(*words)))
			return 1;
	return 0;
}

static const struct es_trace_foreign *es_foreign_text(const char *data, size_t len)
{
	static const char *const w3c[] = {"#Software:", "#Version:", "#Fields:", "#Date:", "#Remark:", NULL};
	static const char *const markup[] = {"<!DOCTYPE", "<html", "<?xml", NULL};

	if (len >= 3 && !memcmp(data, "\xef\xbb\xbf", 3)) {
		data += 3;
		len -= 3;
	}
	while (len && isspace((unsigned char)*data)) {
		data++;
		len--;
	}
	if (es_begins_with_one_of(data, len, w3c))
		return &es_w3c;
	if (es_begins_with_one_of(data, len, markup))
		return &es_markup;
	if (len && *data == '[') { /* an array of records */
		do {
			data++;
			len--;
		} while (len && isspace((unsigned char)*data));
	}
	return len && *data == '{' ? &es_json : NULL;
}

/* A log may have a hole of zeros; text in UTF-16 has one at every second byte, and other data have many kinds
 * of bytes that no text has. */
static const struct es_trace_foreign *es_foreign_bytes(const char *data, size_t len)
{
	size_t alone = 0, control = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		control += c < ' ' && c && !isspace(c) && c != '\033';
		alone += !c && i && data[i - 1] && (i + 1 == len || data[i + 1]);
	}
	if (len >= 8 && alone * 4 > len && control * 25 <= len)
		return &es_utf16_without_mark;
	return control * 25 > len ? &es_binary : NULL;
}

enum es_trace_format es_trace_detect(const char *data, size_t len,
				     const struct es_trace_foreign **ret_foreign)
{
	*ret_foreign = es_trace_foreign(data, len);
	if (*ret_foreign)
		return ES_TRACE_AUTO;
	if (es_is_wc98(data, len))
		return ES_TRACE_WC98;
	*ret_foreign = es_foreign_bytes(data, len);
	if (!*ret_foreign)
		*ret_foreign = es_foreign_text(data, len);
	return *ret_foreign ? ES_TRACE_AUTO : ES_TRACE_LOG;
}
