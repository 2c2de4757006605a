// SPDX-License-Identifier: GPL-2.0
/*
 * judge DEVICE COMMAND... - the judge's page of a card on the PCI bus whose chip is the model
 * (kmod/sim/judge.h); DEVICE is its folder in sysfs.
 *
 *   writes            how many registers were written so far, doorbells left out
 *   presence N        0 there, 1 off the bus, 2 without power
 *   boot0 N           what PMC_BOOT_0 reads
 *   firmware N        1: firmware on the card runs it
 */
#include "sim/judge.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static volatile uint32_t *map_page(const char *device) {
  char path[256];
  void *at;
  int fd;

  snprintf(path, sizeof(path), "%s/resource%d", device, JUDGE_BAR);
  fd = open(path, O_RDWR | O_SYNC);
  at = fd < 0 ? MAP_FAILED : mmap(NULL, JUDGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    perror(path);
    exit(1);
  }
  return at;
}

static int set(volatile uint32_t *page, const char *what, const char *value) {
  static const struct {
    const char *name;
    uint32_t offset;
  } words[] = {{"presence", JUDGE_PRESENCE}, {"boot0", JUDGE_BOOT_0}, {"firmware", JUDGE_FIRMWARE}};

  for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    if (strcmp(what, words[i].name)) continue;
    page[words[i].offset / 4] = (uint32_t)strtoul(value, NULL, 0);
    return 0;
  }
  return 2;
}

int main(int argc, char **argv) {
  volatile uint32_t *page = argc > 2 ? map_page(argv[1]) : NULL;
  uint64_t low;

  if (argc == 4) return set(page, argv[2], argv[3]);
  if (argc != 3 || strcmp(argv[2], "writes")) {
    fprintf(stderr, "usage: judge DEVICE writes | presence N | boot0 N | firmware N\n");
    return 2;
  }
  low = page[JUDGE_NUMBER(JUDGE_WRITES) / 4];
  printf("%llu\n",
         (unsigned long long)(low | (uint64_t)page[JUDGE_NUMBER(JUDGE_WRITES) / 4 + 1] << 32));
  return 0;
}
