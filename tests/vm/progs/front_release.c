// SPDX-License-Identifier: GPL-2.0
/*
 * front_release BRANCH - a tenant built for one driver release: its calls have the sizes and
 * offsets of that branch, written out here apart from the driver's side. It does some work, and
 * finds calls of another release's size refused or without effect. TAP.
 */
#include "rm.h"

/* As the headers of the release have them; bytes. */
static const struct layout {
  unsigned branch;
  size_t alloc_status, rights, rights_status, memory, channel, vaspace, schedule;
  size_t map, map_va, map_status, unmap, unmap_status;
} layouts[] = {
    {525, 24, 40, 36, 120, 304, 48, 2, 56, 40, 48, 40, 32},
    {535, 28, 48, 40, 120, 360, 48, 2, 56, 40, 48, 40, 32},
    {550, 28, 48, 40, 128, 360, 48, 2, 56, 40, 48, 48, 40},
    {580, 28, 48, 40, 128, 368, 56, 3, 64, 48, 56, 48, 40},
};

static const struct layout *l;
static struct rm_tenant t;

#define GUARD 0xa5

static uint32_t word(const void *data, size_t at) {
  uint32_t value;

  memcpy(&value, (const char *)data + at, sizeof(value));
  return value;
}

/* NVOS21, or NVOS64 with @wide. What is behind the parameters is not to be touched. */
static uint32_t alloc_as(bool wide, uint32_t parent, uint32_t *object, uint32_t klass, void *params,
                         size_t bytes) {
  struct rm_alloc head = {.client = t.client, .parent = parent, .object = *object, .klass = klass};
  uint8_t call[64] = {0}, buffer[512];
  uint32_t failed;

  memset(buffer, GUARD, sizeof(buffer));
  if (bytes) memcpy(buffer, params, bytes);
  head.params = bytes ? (uintptr_t)buffer : 0;
  memcpy(call, &head, offsetof(struct rm_alloc, params_bytes));
  failed = rm_call(t.ctl, RM_NR_ALLOC, call, wide ? l->rights : sizeof(struct rm_alloc));
  if (failed) return failed;
  *object = word(call, offsetof(struct rm_alloc, object));
  if (bytes) memcpy(params, buffer, bytes);
  if (buffer[bytes] != GUARD) return RM_GENERIC;
  return word(call, wide ? l->rights_status : l->alloc_status);
}

static uint32_t alloc(uint32_t parent, uint32_t *object, uint32_t klass, void *params,
                      size_t bytes) {
  return alloc_as(false, parent, object, klass, params, bytes);
}

static uint32_t map_dma(uint32_t memory, uint64_t bytes, uint64_t *va) {
  struct rm_map_dma head = {
      .client = t.client, .device = t.device, .dma = t.virtual, .memory = memory, .length = bytes};
  uint8_t call[64] = {0};
  uint32_t failed;

  memcpy(call, &head, offsetof(struct rm_map_dma, pad0));
  failed = rm_call(t.ctl, RM_NR_MAP_DMA, call, l->map);
  memcpy(va, call + l->map_va, sizeof(*va));
  return failed ? failed : word(call, l->map_status);
}

static uint32_t unmap_dma(uint64_t va) {
  struct rm_unmap_dma head = {.client = t.client, .device = t.device, .dma = t.virtual, .va = va};
  uint8_t call[64] = {0};
  uint32_t failed;

  memcpy(call, &head, offsetof(struct rm_unmap_dma, bytes));
  failed = rm_call(t.ctl, RM_NR_UNMAP_DMA, call, l->unmap);
  return failed ? failed : word(call, l->unmap_status);
}

/* Parameters that are longest in any release; what is behind a release's own stays zero. */
union params {
  struct rm_device_params device;
  struct rm_subdevice_params subdevice;
  struct rm_vaspace_params vaspace;
  struct rm_virtual_params virtual;
  struct rm_memory_params memory;
  struct rm_tsg_params tsg;
  struct rm_channel_params channel;
  uint8_t bytes[400];
};

static void open_card(void) {
  struct rm_register_fd link;

  t.ctl = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  t.card = open("/dev/nvidia0", O_RDWR | O_CLOEXEC);
  link.ctl_fd = t.ctl;
  tap(t.ctl >= 0 && t.card >= 0 && !rm_call(t.card, RM_NR_REGISTER_FD, &link, sizeof(link)),
      "the card opens");
}

/* Everything up to a TSG; every other call with the longer form. */
static void make_objects(void) {
  union params p = {.bytes = {0}};

  tap_status(alloc(0, &t.client, RM_CLASS_ROOT_CLIENT, NULL, 0), 0, "a client");
  t.device = rm_next_handle(&t);
  tap_status(alloc_as(true, t.client, &t.device, RM_CLASS_DEVICE, &p, sizeof(p.device)), 0,
             "a device, by the longer form");
  t.subdevice = rm_next_handle(&t);
  p = (union params){.bytes = {0}};
  tap_status(alloc(t.device, &t.subdevice, RM_CLASS_SUBDEVICE, &p, sizeof(p.subdevice)), 0,
             "a subdevice");
  t.usermode = rm_next_handle(&t);
  tap_status(alloc(t.subdevice, &t.usermode, RM_CLASS_USERMODE, NULL, 0), 0, "a usermode");
  t.vaspace = rm_next_handle(&t);
  p = (union params){.bytes = {0}};
  tap_status(alloc_as(true, t.device, &t.vaspace, RM_CLASS_VASPACE, &p, l->vaspace), 0,
             "an address space");
  t.virtual = rm_next_handle(&t);
  p = (union params){.virtual.vaspace = t.vaspace};
  tap_status(alloc(t.device, &t.virtual, RM_CLASS_MEMORY_VIRTUAL, &p, sizeof(p.virtual)), 0,
             "a range of it");
  t.tsg = rm_next_handle(&t);
  p = (union params){.tsg = {.vaspace = t.vaspace, .engine_type = RM_ENGINE_GRAPHICS}};
  tap_status(alloc(t.device, &t.tsg, RM_CLASS_TSG, &p, sizeof(p.tsg)), 0, "a TSG");
  tap_status(alloc(t.device, &t.tsg, RM_CLASS_TSG, &p, sizeof(p.tsg)), RM_INSERT_DUPLICATE_NAME,
             "a handle in use is refused, where the status is");
}

static void make_memory(struct rm_channel *c) {
  union params p = {.bytes = {0}};

  c->entries = 64;
  c->memory.handle = rm_next_handle(&t);
  rm_init_memory_params(&p.memory, 16384);
  tap_status(alloc(t.device, &c->memory.handle, RM_CLASS_MEMORY_SYSTEM, &p, l->memory), 0,
             "memory");
  c->memory.bytes = 16384;
  c->memory.fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
  tap_status(rm_map(t.ctl, t.client, t.device, c->memory.handle, 16384, c->memory.fd), 0,
             "mapped for the program");
  c->memory.cpu = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, c->memory.fd, 0);
  tap(c->memory.cpu != MAP_FAILED, "which sees it");
  tap_status(map_dma(c->memory.handle, 16384, &c->memory.va), 0, "and for the card");
  tap(c->memory.va != 0, "at an address");
}

static void make_channel(struct rm_channel *c) {
  struct rm_token_params token = {0};
  union params p = {.bytes = {0}};

  p.channel.engine_type = RM_ENGINE_GRAPHICS;
  p.channel.gpfifo_va = c->memory.va + 4096;
  p.channel.gpfifo_entries = c->entries;
  p.channel.userd_memory[0] = c->memory.handle;
  c->handle = rm_next_handle(&t);
  tap_status(alloc_as(true, t.tsg, &c->handle, RM_CLASS_CHANNEL, &p, l->channel), 0, "a channel");
  tap_status(
      rm_control(t.ctl, t.client, c->handle, RM_CTRL_CHANNEL_GET_TOKEN, &token, sizeof(token)), 0,
      "its token");
  c->token = token.token;
}

static void work(struct rm_channel *c) {
  uint8_t schedule[4] = {1};

  tap_status(rm_control(t.ctl, t.client, t.tsg, RM_CTRL_TSG_SCHEDULE, schedule, 5 - l->schedule),
             RM_INVALID_ARGUMENT, "another release's schedule is refused");
  tap_status(rm_control(t.ctl, t.client, t.tsg, RM_CTRL_TSG_SCHEDULE, schedule, l->schedule), 0,
             "this one's is not");
  tap_status(rm_bell_open(&t, 0, &t.bell_fd, &t.bell), 0, "doorbells");
  rm_push(c, 1000000, 2);
  rm_ring(&t, c);
  tap(rm_wait(c, 0, 20000000000), "work completes");
}

static void put_back(const struct rm_channel *c) {
  uint8_t call[64] = {0};

  tap_status(rm_call(t.ctl, RM_NR_MAP_DMA, call, 120 - l->map), RM_IOCTL_FAILED | EINVAL,
             "another release's mapping is refused");
  tap_status(rm_call(t.ctl, RM_NR_UNMAP_DMA, call, 88 - l->unmap), RM_IOCTL_FAILED | EINVAL,
             "and its unmapping");
  tap_status(rm_call(t.ctl, RM_NR_ALLOC, call, 88 - l->rights), RM_IOCTL_FAILED | EINVAL,
             "and its longer alloc");
  tap_status(rm_free(t.ctl, t.client, t.tsg), 0, "the TSG goes");
  tap_status(unmap_dma(c->memory.va), 0, "unmapped");
  tap_status(unmap_dma(c->memory.va), RM_OBJECT_NOT_FOUND, "once, where the status is");
  tap_status(rm_free(t.ctl, t.client, t.client), 0, "and all of it");
}

int main(int argc, char **argv) {
  const unsigned branch = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
  static struct rm_channel c;

  for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
    if (layouts[i].branch == branch) l = &layouts[i];
  if (!l) {
    fprintf(stderr, "usage: front_release 525 | 535 | 550 | 580\n");
    return 2;
  }
  open_card();
  make_objects();
  make_memory(&c);
  make_channel(&c);
  work(&c);
  put_back(&c);
  return tap_failed;
}
