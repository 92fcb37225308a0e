/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_CONTROL_H
#define ES_MODULE_CONTROL_H

/* The generic netlink family of kmod/core/control.h. Return 0 or -errno. */
int es_control_init(void);
void es_control_fini(void);

/* The character device of kmod/core/control.h. */
int es_device_init(void);
void es_device_fini(void);

#endif
