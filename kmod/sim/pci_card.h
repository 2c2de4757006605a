/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pci_card.h - cards on the PCI bus whose chip is the model: found, claimed and driven as the
 * CPU-side driver of a T4 does. Address spaces are in pci_space.c, what they share of the bus in
 * pci_page.c.
 */
#ifndef SIM_PCI_CARD_H
#define SIM_PCI_CARD_H

#include <linux/dma-mapping.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>

#include "sim/card.h"

/**
 * struct pci_card - a claimed card
 * @registers: BAR 0
 * @judge: BAR 5 (judge.h)
 * @judge_lock: two reads make a number of the judge's
 * @stopped: see struct sim_card_ops.stop
 * @pages: [pages_lock] page frame number -> what pci_page.c has of it
 * @pages_lock: under client->lock and host->mutex
 */
struct pci_card {
	struct sim_card card;
	void __iomem *registers, *judge;
	spinlock_t judge_lock;
	bool stopped;
	struct mutex pages_lock;
	struct xarray pages;
};

static inline struct pci_card *to_pci_card(struct sim_card *card)
{
	return container_of(card, struct pci_card, card);
}

/**
 * struct pci_card_events - what befalls a device
 * @gone: it is taken off its driver: returns when nobody uses its card any more and it was
 * destroyed
 * @sleeps, @wakes: the machine goes to sleep, with all programs frozen, and comes back
 */
struct pci_card_events {
	void (*gone)(struct pci_dev *pdev);
	void (*sleeps)(struct pci_dev *pdev);
	void (*wakes)(struct pci_dev *pdev);
};

/**
 * pci_cards_register() - claim what is there
 * @events: may come from now on until pci_cards_unregister() returned
 * Return: how many cards, or -errno.
 */
int pci_cards_register(const struct pci_card_events *events);
/* All that are left are gone then. */
void pci_cards_unregister(void);
/* The card with this index, or NULL. */
struct sim_card *pci_card_find(u32 index);
/* The card of a device of the driver's; NULL: it was destroyed. */
struct sim_card *pci_card_of(struct pci_dev *pdev);

/* ---- pci_page.c ---- */

void pci_pages_init(struct pci_card *card);
void pci_pages_fini(struct pci_card *card); /* none is left */

/**
 * pci_page_share() - let the card reach a page that others look at all the time
 * @addr: where it is on the bus, the same for all who share it
 * Return: 0, or -ENOMEM.
 */
int pci_page_share(struct pci_card *card, struct page *page, dma_addr_t *addr);
/* Once for each that shared it; with the last the card reaches it no more. */
void pci_page_unshare(struct pci_card *card, struct page *page);

/* ---- pci_space.c: struct sim_card_ops; contracts there ---- */

struct sim_space *pci_space_create(struct sim_card *card);
void pci_space_destroy(struct sim_card *card, struct sim_space *space);
int pci_space_map(struct sim_card *card, struct sim_space *space, u64 first,
		  struct page *const *pages, u64 count);
void pci_space_unmap(struct sim_card *card, struct sim_space *space, u64 first,
		     struct page *const *pages, u64 count);

#endif
