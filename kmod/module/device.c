// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/earshot: shared memory for the daemon. A file holds its table or queue, not the node, so a node may go
 * while files are open. Each open file holds a reference to the module.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>

#include "compat.h"
#include "control.h"
#include "download.h"
#include "kept.h"
#include "node.h"

/* struct es_file - one of the two, once ES_IOC_TABLE has said which; it never changes again */
struct es_file {
	struct mutex lock;
	struct es_table *table;
	struct es_ringbuf *ring;
};

static int es_file_open(struct inode *inode, struct file *file)
{
	struct es_file *f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);

	if (!f)
		return -ENOMEM;
	mutex_init(&f->lock);
	file->private_data = f;
	return 0;
}

static int es_file_release(struct inode *inode, struct file *file)
{
	struct es_file *f = file->private_data;

	es_table_put(f->table);
	es_ringbuf_put(f->ring);
	kfree(f);
	return 0;
}

static int es_file_bind(struct es_file *f, struct es_node *node, unsigned long what)
{
	struct es_ringbuf *ring;
	struct es_table *table;
	int rc;

	/* mmap() and poll() do not take the lock: take the reference first, then publish what they see. */
	switch (what) {
	case ES_TABLE_STATE:
	case ES_TABLE_DECISIONS:
		table = what == ES_TABLE_STATE ? node->state_table : node->decision_table;
		es_table_get(table);
		smp_store_release(&f->table, table);
		return 0;
	case ES_TABLE_KEPTS:
		rc = es_kept_table(node, &table);
		if (rc)
			return rc;
		es_table_get(table);
		smp_store_release(&f->table, table);
		return 0;
	case ES_TABLE_DOWNLOADS:
		rc = es_downloads_ring(node, &ring);
		if (rc)
			return rc;
		es_ringbuf_get(ring);
		smp_store_release(&f->ring, ring);
		return 0;
	default:
		ring = rcu_dereference_protected(
			node->queue[what == ES_TABLE_RESPONSES ? ES_RINGBUF_LENGTHS : what], 1);
		if (!ring)
			return -ENOENT;
		es_ringbuf_get(ring);
		smp_store_release(&f->ring, ring);
		return 0;
	}
}

static long es_file_ioctl(struct file *file, unsigned int command, unsigned long what)
{
	struct net *net = current->nsproxy->net_ns;
	struct es_net *en = es_net_of(net);
	struct es_file *f = file->private_data;
	int rc = -EBUSY;

	if (command != ES_IOC_TABLE)
		return -ENOTTY;
	if (what >= ES_TABLE_COUNT)
		return -EINVAL;
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	mutex_lock(&f->lock);
	mutex_lock(&en->lock);
	if (!f->table && !f->ring)
		rc = en->node ? es_file_bind(f, en->node, what) : -ENOENT;
	mutex_unlock(&en->lock);
	mutex_unlock(&f->lock);
	return rc;
}

static int es_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct es_file *f = file->private_data;
	struct es_ringbuf *ring = smp_load_acquire(&f->ring);
	struct es_table *table = smp_load_acquire(&f->table);

	if (ring)
		return es_ringbuf_mmap(ring, vma);
	return table ? es_table_mmap(table, vma) : -ENXIO;
}

static __poll_t es_file_poll(struct file *file, struct poll_table_struct *poll)
{
	struct es_ringbuf *ring = smp_load_acquire(&((struct es_file *)file->private_data)->ring);

	return ring ? es_ringbuf_poll(ring, file, poll) : EPOLLERR;
}

static const struct file_operations es_file_operations = {
	.owner = THIS_MODULE,
	.open = es_file_open,
	.release = es_file_release,
	.unlocked_ioctl = es_file_ioctl,
	.mmap = es_file_mmap,
	.poll = es_file_poll,
	.llseek = noop_llseek,
};

static struct miscdevice es_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "earshot",
	.mode = 0600,
	.fops = &es_file_operations,
};

int es_device_init(void)
{
	return misc_register(&es_device);
}

void es_device_fini(void)
{
	misc_deregister(&es_device);
}
