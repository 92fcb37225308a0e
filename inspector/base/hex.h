/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HEX_H
#define ES_HEX_H

/* es_hex_digit() - the value of a hexadecimal digit in either case, or -1 */
static inline int es_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

#endif
