/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MACHINE_INTERFACE_H
#define ES_MACHINE_INTERFACE_H

/*
 * Names of network interfaces: as the operator writes them, which may be an alternative name (`ip link
 * property add dev eth0 altname …`) of up to 127 characters, and as the kernel's files and ioctls know them.
 */
#include <net/if.h>
#include <stddef.h>

/*
 * es_interface_index() - of the interface with this name, alternative or not. Returns it, or 0 if there is
 * none.
 */
unsigned int es_interface_index(const char *name);

/* es_interface_real_name() - under which /proc has it; @name itself if there is no such interface */
void es_interface_real_name(const char *name, char ret_name[IF_NAMESIZE]);

/* es_interfaces_text() - "lo, eth0, eth1", as far as it fits: what there is, for a message */
void es_interfaces_text(char *ret_text, size_t size);

#endif
