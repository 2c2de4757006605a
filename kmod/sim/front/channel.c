// SPDX-License-Identifier: GPL-2.0
/*
 * channel.c - channels (class 0xc46f): instance block, PCCSR, doorbells. A channel belongs to a
 * TSG; its ids are global to the card, lowest first and reused at once, 0 kept by the driver for
 * itself (so no tenant's token is 0).
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "host.h"
#include "regs.h"

#define DOORBELL 0xbb0090u

/* RAMFC and instance block words (hardware page 6.1, 6.2). */
#define RAMFC_USERD_LO 2
#define RAMFC_USERD_HI 3
#define RAMFC_SIGNATURE 4
#define RAMFC_GP_BASE_LO 18
#define RAMFC_GP_BASE_HI 19
#define RAMFC_CHANNEL_INFO 63
#define RAMIN_PDB_LO 128
#define RAMIN_PDB_HI 129
#define PDB_VERSION_2 BIT(10)
#define PDB_BIG_PAGE_64K BIT(11)

#define USERD_BYTES 512u
#define GPFIFO_ENTRY_BYTES 8u
#define GPFIFO_ENTRIES_MAX (1u << 16)
#define TSG_CHANNELS_MAX 128u

static void write_instance(struct front_channel *channel, const struct rm_channel_params *p)
{
	__le32 *word = channel->instance.cpu;
	u64 pdb = channel->tsg->vaspace->space->pdb;

	word[RAMFC_USERD_LO] =
		cpu_to_le32(lower_32_bits(channel->userd_addr) | HW_TARGET_SYSMEM_COHERENT);
	word[RAMFC_USERD_HI] = cpu_to_le32(upper_32_bits(channel->userd_addr));
	word[RAMFC_SIGNATURE] = cpu_to_le32(0xface);
	word[RAMFC_GP_BASE_LO] = cpu_to_le32(lower_32_bits(p->gpfifo_va));
	word[RAMFC_GP_BASE_HI] =
		cpu_to_le32(upper_32_bits(p->gpfifo_va) | (u32)ilog2(p->gpfifo_entries) << 16);
	word[RAMFC_CHANNEL_INFO] = cpu_to_le32((u32)channel->id << 16);
	word[RAMIN_PDB_LO] = cpu_to_le32(lower_32_bits(pdb) | PDB_VERSION_2 | PDB_BIG_PAGE_64K |
					 HW_TARGET_SYSMEM_COHERENT);
	word[RAMIN_PDB_HI] = cpu_to_le32(upper_32_bits(pdb));
}

void front_channel_describe(const struct front_channel *channel, struct hw_channel *out)
{
	*out = (struct hw_channel){
		.id = channel->id,
		.inst_target = HW_TARGET_SYSMEM_COHERENT,
		.userd_target = HW_TARGET_SYSMEM_COHERENT,
		.inst_addr = channel->instance.addr,
		.userd_addr = channel->userd_addr,
	};
}

u32 front_channel_instance(const struct front_channel *channel)
{
	return (u32)(channel->instance.addr >> 12) | (u32)HW_TARGET_SYSMEM_COHERENT << 28 |
	       PCCSR_INST_BIND;
}

u32 front_channel_token(const struct front_channel *channel)
{
	return (u32)channel->tsg->runlist << 16 | channel->id;
}

/* One store of NEXT as read and one of the two bits: a plain write of the value read would clear
 * fault bits. */
static void set_enable(struct front_channel *channel, u32 bit)
{
	struct sim_card *card = channel->tsg->host->card;
	u32 reg = PCCSR_CHANNEL(channel->id);

	sim_card_write32(card, reg, (sim_card_read32(card, reg) & PCCSR_NEXT) | bit);
}

void front_channel_enable_locked(struct front_channel *channel)
{
	set_enable(channel, PCCSR_ENABLE_SET);
	sim_card_write32(channel->tsg->host->card, DOORBELL, front_channel_token(channel));
}

void front_channel_disable_locked(struct front_channel *channel)
{
	set_enable(channel, PCCSR_ENABLE_CLR);
}

void front_channel_resume_locked(struct front_channel *channel, bool look)
{
	set_enable(channel, PCCSR_ENABLE_SET);
	/* After it is enabled: a ring is either seen here or by the card. */
	look |= xchg(&channel->rang, false);
	if (look)
		sim_card_write32(channel->tsg->host->card, DOORBELL, front_channel_token(channel));
}

void front_tsg_look_locked(struct front_tsg *tsg)
{
	struct front_channel *channel;

	list_for_each_entry(channel, &tsg->channels, node) {
		if (channel->scheduled && channel->gate == GATE_OPEN)
			sim_card_write32(tsg->host->card, DOORBELL, front_channel_token(channel));
	}
}

/* Nobody rings it from here on. */
static void silence(struct front_channel *channel)
{
	spin_lock(&channel->client->ring_lock);
	list_del(&channel->ring_node);
	spin_unlock(&channel->client->ring_lock);
}

/* Tokens that are rung at one moment: a model that is behind is given its time once. */
#define RING_BATCH 64u

/* Return: @token is a channel's of the client's. A ring of a gated channel is kept: see gate.c. */
static bool ring_all_locked(struct front_client *client, struct front_host *host, u32 token)
{
	struct sim_card *card = host->card;
	struct front_channel *channel;
	u32 tokens[RING_BATCH], count = 0;
	bool own = false;

	list_for_each_entry(channel, &client->channels, ring_node) {
		if (channel->tsg->host != host)
			continue;
		WRITE_ONCE(channel->rang, true);
		tokens[count] = front_channel_token(channel);
		own |= tokens[count] == token;
		if (++count == RING_BATCH) {
			card->ops->ring(card, tokens, count);
			count = 0;
		}
	}
	card->ops->ring(card, tokens, count);
	return own;
}

static void ring_card(struct front_host *host)
{
	struct front_tsg *tsg;

	mutex_lock(&host->mutex);
	list_for_each_entry(tsg, &host->tsgs, node)
		front_tsg_look_locked(tsg);
	mutex_unlock(&host->mutex);
}

void front_ring_channels(struct front_client *client, struct front_host *host, u32 token)
{
	bool own;

	spin_lock(&client->ring_lock);
	own = ring_all_locked(client, host, token);
	spin_unlock(&client->ring_lock);
	if (token && !own)
		ring_card(host);
}

static void free_parts(struct front_channel *channel)
{
	struct front_tsg *tsg = channel->tsg;
	struct sim_card *card = tsg->host->card;

	ida_free(&tsg->host->channel_ids, channel->id);
	sim_mem_free(card, &channel->instance);
	card->ops->page_unmap(card, channel->userd_page, channel->userd_addr & PAGE_MASK);
	front_memory_put(channel->userd);
	atomic_dec(&tsg->account->channels);
	atomic_dec(&front_live.channels);
	kfree(channel);
}

void front_channel_release_locked(struct front_channel *channel)
{
	sim_card_write32(channel->tsg->host->card, PCCSR_INST(channel->id), 0);
	list_del(&channel->node);
	channel->tsg->channel_count--;
	free_parts(channel);
}

static u32 check_params(struct front_object *object, const struct rm_channel_params *p,
			struct front_memory **userd)
{
	struct front_object *memory;

	if (p->engine_type != RM_ENGINE_NULL && p->engine_type != RM_ENGINE_GRAPHICS)
		return RM_INVALID_ARGUMENT;
	if (p->vaspace || p->context_share)
		return RM_INVALID_ARGUMENT; /* the TSG's address space is the channel's */
	if (!is_power_of_2(p->gpfifo_entries) || p->gpfifo_entries > GPFIFO_ENTRIES_MAX)
		return RM_INVALID_ARGUMENT;
	if (p->gpfifo_va % GPFIFO_ENTRY_BYTES || p->gpfifo_va >> 40)
		return RM_INVALID_ARGUMENT;
	memory = front_object_find(object->client, p->userd_memory[0]);
	if (!memory || memory->klass != &front_class_memory || memory->host != object->host)
		return RM_INVALID_OBJECT_HANDLE;
	*userd = memory->memory;
	if (p->userd_offset[0] % USERD_BYTES || p->userd_offset[0] >= (u64)(*userd)->page_count
									      << PAGE_SHIFT)
		return RM_INVALID_ARGUMENT;
	return RM_OK;
}

/* What the card itself reads of a channel. Return: 0, -ENOSPC, -ENOMEM. */
static int map_channel(struct front_channel *channel, struct sim_card *card, u64 userd_offset)
{
	int err = sim_mem_alloc(card, PAGE_SIZE, &channel->instance);

	if (err)
		return err;
	channel->userd_page = channel->userd->pages[userd_offset >> PAGE_SHIFT];
	err = card->ops->page_map(card, channel->userd_page, &channel->userd_addr);
	if (err)
		sim_mem_free(card, &channel->instance);
	channel->userd_addr += offset_in_page(userd_offset);
	return err;
}

static u32 channel_create(struct front_object *object, union front_params *params)
{
	struct rm_channel_params *p = &params->channel;
	struct front_client *client = object->client;
	struct front_host *host = object->host;
	struct front_tsg *tsg = object->parent->tsg;
	struct front_channel *channel;
	struct front_memory *userd;
	u32 status;
	int id;

	status = check_params(object, p, &userd);
	if (status)
		return status;
	if (!front_account_take(&client->account->channels, FRONT_MAX_CHANNELS))
		return RM_INSUFFICIENT_RESOURCES;
	status = RM_NO_MEMORY;
	channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);
	if (!channel)
		goto err_account;
	channel->tsg = tsg;
	channel->userd = userd;
	if (map_channel(channel, host->card, p->userd_offset[0]))
		goto err_channel;
	id = ida_alloc_range(&host->channel_ids, 1, CHIP_CHANNELS - 1, GFP_KERNEL);
	if (id < 0) {
		status = RM_NO_FREE_FIFOS;
		goto err_instance;
	}
	channel->id = id;
	front_memory_get(userd);
	channel->client = client;
	atomic_inc(&front_live.channels);
	write_instance(channel, p);

	mutex_lock(&host->mutex);
	if (tsg->channel_count == TSG_CHANNELS_MAX) {
		mutex_unlock(&host->mutex);
		free_parts(channel);
		return RM_INSUFFICIENT_RESOURCES;
	}
	sim_card_write32(host->card, PCCSR_INST(id), front_channel_instance(channel));
	list_add_tail(&channel->node, &tsg->channels);
	tsg->channel_count++;
	if (front_tell_channel_created_locked(channel)) {
		front_channel_release_locked(channel);
		mutex_unlock(&host->mutex);
		return RM_NO_MEMORY;
	}
	mutex_unlock(&host->mutex);

	spin_lock(&client->ring_lock);
	list_add_tail(&channel->ring_node, &client->channels);
	spin_unlock(&client->ring_lock);
	object->channel = channel;
	p->cid = channel->id;
	return RM_OK;

err_instance:
	sim_mem_free(host->card, &channel->instance);
	host->card->ops->page_unmap(host->card, channel->userd_page,
				    channel->userd_addr & PAGE_MASK);
err_channel:
	kfree(channel);
err_account:
	atomic_dec(&client->account->channels);
	return status;
}

/* STATUS says neither on a PBDMA nor on the engine (hardware page 2.3). */
bool front_channel_off_locked(const struct front_channel *channel)
{
	u32 value = sim_card_read32(channel->tsg->host->card, PCCSR_CHANNEL(channel->id));

	return ((value >> 24) & 0xf) < 5;
}

/*
 * It leaves the list first, so that it can't come back, then the card. If what it runs can't be cut
 * it stays in the TSG, disabled and unlisted, and goes with it. Of a TSG that goes as a whole no
 * channel is waited for: tsg_leave() has waited for all of them.
 */
static void channel_destroy(struct front_object *object)
{
	struct front_channel *channel = object->channel, *other;
	struct front_tsg *tsg = channel->tsg;
	struct front_host *host = object->host;

	silence(channel);
	mutex_lock(&host->mutex);
	channel->leaving = true;
	front_tell_call_begins_locked(tsg);
	front_channel_disable_locked(channel);
	if (channel->scheduled) {
		channel->scheduled = false;
		tsg->scheduled = false;
		list_for_each_entry(other, &tsg->channels, node)
			tsg->scheduled |= other->scheduled;
		front_runlist_publish_locked(host);
	}
	front_tell_channel_destroyed_locked(channel);
	if (!tsg->leaving)
		front_tell_call_ended_locked(tsg);
	if (tsg->leaving ? front_channel_off_locked(channel) : front_tsg_evict_locked(tsg, channel))
		front_channel_release_locked(channel);
	mutex_unlock(&host->mutex);
}

const struct front_class front_class_channel = {
	.id = RM_CLASS_CHANNEL,
	.parents = { RM_CLASS_TSG },
	.params_bytes = sizeof(struct rm_channel_params),
	.create = channel_create,
	.destroy = channel_destroy,
};
