// SPDX-License-Identifier: GPL-2.0
/*
 * file.c - an open device node: open, ioctl framing (both forms), mmap, and everything that must
 * go when the last reference on the file goes.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "event_buffer.h"
#include "host.h"
#include "memory.h"

static void bell_rang(struct front_doorbell *bell, u32 token)
{
	struct front_file *file = container_of(bell, struct front_file, bell);
	struct front_client *client;

	/* Set before the page could be mapped, and kept until release. */
	client = READ_ONCE(file->bell_client);
	if (client)
		front_ring_channels(client, file->host, token);
}

static u64 bell_time_ns(struct front_doorbell *bell)
{
	return front_host_time_ns(container_of(bell, struct front_file, bell)->host);
}

/* Tenants have channels and read no time; who has none looks after others by the card's clock. */
static bool bell_reads_time(struct front_doorbell *bell)
{
	const struct front_client *client =
		READ_ONCE(container_of(bell, struct front_file, bell)->bell_client);

	return client && list_empty_careful(&client->channels);
}

static const struct front_doorbell_ops bell_ops = {
	.rang = bell_rang,
	.time_ns = bell_time_ns,
	.reads_time = bell_reads_time,
};

static int front_open(struct inode *inode, struct file *filp)
{
	struct front_file *file;
	int err = -ENOMEM;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	INIT_LIST_HEAD(&file->clients);
	mutex_init(&file->map_lock);
	init_waitqueue_head(&file->event_wait);
	if (iminor(inode) != RM_MINOR_CTL) {
		file->host = front_host_get(iminor(inode));
		err = file->host ? front_doorbell_init(&file->bell, &bell_ops, inode) : -ENODEV;
		if (err)
			goto err_host;
		/* So that taking the page away touches nobody else's mappings. */
		filp->f_mapping = &file->bell.mapping;
	}
	err = -ENOMEM;
	file->account = front_account_create();
	if (!file->account)
		goto err_bell;
	filp->private_data = file;
	atomic_inc(&front_live.files);
	return stream_open(inode, filp);

err_bell:
	if (file->host)
		front_doorbell_fini(&file->bell);
err_host:
	if (file->host)
		front_host_put(file->host);
	filp->f_mapping = inode->i_mapping;
	kfree(file);
	return err;
}

static int front_release(struct inode *inode, struct file *filp)
{
	struct front_file *file = filp->private_data;

	if (file->host)
		front_doorbell_fini(&file->bell);
	front_os_event_destroy_all(file);
	front_file_destroy_clients(file);
	if (file->bell_client)
		front_client_put(file->bell_client);
	if (file->memory)
		front_memory_put(file->memory);
	if (file->link)
		fput(file->link);
	if (file->host)
		front_host_put(file->host);
	front_account_put(file->account);
	atomic_dec(&front_live.files);
	/* The file itself may still be looked at through f_mapping until it is freed. */
	filp->f_mapping = inode->i_mapping;
	kfree(file);
	return 0;
}

/* The card's own doorbells, or a page on which stores are noticed. */
static int map_bell(struct front_file *file, struct vm_area_struct *vma)
{
	struct sim_card *card = file->host->card;

	if (card->ops->map_bell)
		return card->ops->map_bell(card, vma);
	return front_doorbell_map(&file->bell, vma);
}

static int front_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct front_file *file = filp->private_data;
	u64 bytes = vma->vm_end - vma->vm_start;
	int err = -EINVAL;

	if (vma->vm_pgoff)
		return -EINVAL;
	mutex_lock(&file->map_lock);
	if (file->read_only && (vma->vm_flags & VM_WRITE))
		err = -EACCES;
	else if (file->memory)
		err = front_memory_map(file->memory, file->map_bytes, vma);
	else if (file->bell_client)
		err = bytes == file->map_bytes ? map_bell(file, vma) : -ENXIO;
	if (!err && file->read_only)
		vm_flags_clear(vma, VM_MAYWRITE);
	mutex_unlock(&file->map_lock);
	return err;
}

/* Takes the news: who asks again is told of the next event only. */
static __poll_t front_poll(struct file *filp, poll_table *table)
{
	struct front_file *file = filp->private_data;

	poll_wait(filp, &file->event_wait, table);
	return xchg(&file->event_pending, false) ? EPOLLIN | EPOLLPRI : 0;
}

static long front_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	u32 nr = _IOC_NR(cmd), bytes = _IOC_SIZE(cmd);
	struct rm_xfer xfer;
	void *data;
	long err;

	if (nr == RM_NR_XFER) {
		if (bytes != sizeof(xfer))
			return -EINVAL;
		if (copy_from_user(&xfer, user, sizeof(xfer)))
			return -EFAULT;
		nr = xfer.nr;
		bytes = xfer.bytes;
		user = u64_to_user_ptr(xfer.params);
		if (bytes > RM_IOCTL_BYTES_MAX)
			return -EINVAL;
	}
	data = kmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!data)
		return -ENOMEM;
	err = -EFAULT;
	if (!copy_from_user(data, user, bytes)) {
		err = front_escape(filp->private_data, nr, data, bytes);
		if (copy_to_user(user, data, bytes))
			err = -EFAULT;
	}
	kfree(data);
	return err;
}

struct file *front_file_get(int fd, bool ctl)
{
	struct file *filp = fget(fd);

	if (!filp)
		return NULL;
	if (filp->f_op == &front_fops &&
	    (!ctl || !((const struct front_file *)filp->private_data)->host))
		return filp;
	fput(filp);
	return NULL;
}

const struct file_operations front_fops = {
	.owner = THIS_MODULE,
	.open = front_open,
	.release = front_release,
	.mmap = front_mmap,
	.poll = front_poll,
	.unlocked_ioctl = front_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
