// SPDX-License-Identifier: GPL-2.0
/*
 * doorbell.c - notices a plain store into a user-mapped page.
 *
 *   not writable --write fault--> writable, timer armed --timer--> pass --> not writable
 *
 * The fault makes the page writable and arms the timer; the store is then retried and succeeds.
 * A pass, on a worker, takes the page away from every mapping and only then reads and clears the
 * word: what was stored before is seen now, what is stored later faults again. So no ring is lost.
 *
 * Why a timer: with immediate work a single CPU runs the worker before it retries the store, for
 * ever. Why the delay doubles while passes find nothing: a slow or loaded machine may need longer
 * than the first delay to come back from the fault.
 *
 * Order: the page table entry first, then arm(). A pass clears @armed first, then unmaps. Hence
 * whoever finds @armed set has an entry that the coming pass takes away. The generic upgrade
 * after .pfn_mkwrite runs after arm() and would break this, so both handlers write the entry
 * themselves.
 */
#include "doorbell.h"

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "compat.h"

#define DELAY_NS 10000u	   /* first delay, within the 3 ... 20 us that rings may be late */
#define DELAY_DOUBLINGS 7u /* at most 1.28 ms */
#define CLOCK_NS 200000u   /* the time in the page is at most so old, where it is read at all */

static struct workqueue_struct *pass_queue;

static u32 *bell_word(struct front_doorbell *bell, u32 offset)
{
	return (u32 *)((u8 *)page_address(bell->page) + offset);
}

static void write_time(struct front_doorbell *bell)
{
	u64 now = bell->ops->time_ns(bell);

	WRITE_ONCE(*bell_word(bell, DOORBELL_TIME_1), upper_32_bits(now));
	WRITE_ONCE(*bell_word(bell, DOORBELL_TIME_0), lower_32_bits(now));
}

static enum hrtimer_restart clock_fired(struct hrtimer *clock)
{
	struct front_doorbell *bell = container_of(clock, struct front_doorbell, clock);

	if (!bell->ops->reads_time(bell))
		return HRTIMER_NORESTART;
	write_time(bell);
	hrtimer_forward_now(clock, ns_to_ktime(CLOCK_NS));
	return HRTIMER_RESTART;
}

static void arm(struct front_doorbell *bell)
{
	unsigned long flags;

	spin_lock_irqsave(&bell->lock, flags);
	if (!bell->armed) {
		bell->armed = true;
		hrtimer_start(&bell->timer, ns_to_ktime((u64)DELAY_NS << bell->quiet),
			      HRTIMER_MODE_REL);
	}
	spin_unlock_irqrestore(&bell->lock, flags);
}

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct front_doorbell *bell = container_of(timer, struct front_doorbell, timer);

	queue_work(pass_queue, &bell->work);
	return HRTIMER_NORESTART;
}

static void pass(struct work_struct *work)
{
	struct front_doorbell *bell = container_of(work, struct front_doorbell, work);
	u32 token;

	spin_lock_irq(&bell->lock);
	bell->armed = false;
	spin_unlock_irq(&bell->lock);

	unmap_mapping_range(&bell->mapping, 0, PAGE_SIZE, 1);
	token = xchg(bell_word(bell, DOORBELL_RING), 0);
	write_time(bell);

	spin_lock_irq(&bell->lock);
	bell->quiet = token ? 0 : min(bell->quiet + 1u, DELAY_DOUBLINGS);
	spin_unlock_irq(&bell->lock);

	bell->ops->rang(bell, token);
}

static vm_fault_t insert(struct front_doorbell *bell, struct vm_fault *vmf, pgprot_t prot)
{
	return vmf_insert_pfn_prot(vmf->vma, vmf->address, page_to_pfn(bell->page), prot);
}

static vm_fault_t insert_writable(struct front_doorbell *bell, struct vm_fault *vmf)
{
	vm_fault_t result = insert(bell, vmf, vm_get_page_prot(vmf->vma->vm_flags));

	arm(bell);
	return result;
}

static vm_fault_t bell_fault(struct vm_fault *vmf)
{
	struct front_doorbell *bell = vmf->vma->vm_private_data;

	/* The class has 64 KiB; the words that exist are in the first page. */
	if (vmf->pgoff != 0)
		return VM_FAULT_SIGBUS;
	if (vmf->flags & FAULT_FLAG_WRITE)
		return insert_writable(bell, vmf);
	/* Not writable, because the mapping has .pfn_mkwrite. */
	return insert(bell, vmf, vmf->vma->vm_page_prot);
}

/* Nothing is inserted where an entry is; if a reader is faster with one, the store faults again. */
static vm_fault_t bell_pfn_mkwrite(struct vm_fault *vmf)
{
	zap_vma_ptes(vmf->vma, vmf->address, PAGE_SIZE);
	return insert_writable(vmf->vma->vm_private_data, vmf);
}

static const struct vm_operations_struct bell_vm_ops = {
	.fault = bell_fault,
	.pfn_mkwrite = bell_pfn_mkwrite,
};

int front_doorbell_map(struct front_doorbell *bell, struct vm_area_struct *vma)
{
	/* A private mapping would copy the page: its stores would reach nobody. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_private_data = bell;
	vma->vm_ops = &bell_vm_ops;
	hrtimer_start(&bell->clock, ns_to_ktime(CLOCK_NS), HRTIMER_MODE_REL);
	return 0;
}

int front_doorbell_init(struct front_doorbell *bell, const struct front_doorbell_ops *ops,
			struct inode *inode)
{
	bell->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!bell->page)
		return -ENOMEM;
	address_space_init_once(&bell->mapping);
	bell->mapping.host = inode;
	bell->mapping.a_ops = &empty_aops;
	mapping_set_gfp_mask(&bell->mapping, GFP_KERNEL);
	bell->ops = ops;
	spin_lock_init(&bell->lock);
	bell->armed = false;
	bell->quiet = 0;
	hrtimer_init(&bell->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	bell->timer.function = timer_fired;
	hrtimer_init(&bell->clock, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	bell->clock.function = clock_fired;
	INIT_WORK(&bell->work, pass);
	write_time(bell);
	return 0;
}

void front_doorbell_fini(struct front_doorbell *bell)
{
	hrtimer_cancel(&bell->clock);
	hrtimer_cancel(&bell->timer);
	cancel_work_sync(&bell->work);
	__free_page(bell->page);
}

int front_doorbell_module_init(void)
{
	pass_queue = alloc_workqueue("qgpu_sim_doorbell", WQ_HIGHPRI, 0);
	return pass_queue ? 0 : -ENOMEM;
}

void front_doorbell_module_exit(void)
{
	destroy_workqueue(pass_queue);
}
