// SPDX-License-Identifier: GPL-2.0
/*
 * pci_page.c - pages that a PCI card reaches and others look at all the time: tables, and pages of
 * tenants, each mapped for DMA once, however often its owner has it in address spaces. Nobody hands
 * such a page over, so there is nothing to synchronise.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "pci_card.h"

/**
 * struct shared_page - a page that the card reaches
 * @addr: where; set once
 * @uses: [pages_lock] how many share it; it goes with the last
 */
struct shared_page {
	dma_addr_t addr;
	unsigned long uses;
};

void pci_pages_init(struct pci_card *card)
{
	mutex_init(&card->pages_lock);
	xa_init_flags(&card->pages, XA_FLAGS_ACCOUNT);
}

void pci_pages_fini(struct pci_card *card)
{
	WARN_ON_ONCE(!xa_empty(&card->pages));
	xa_destroy(&card->pages);
	mutex_destroy(&card->pages_lock);
}

static void unmap(struct pci_card *card, dma_addr_t addr)
{
	dma_unmap_page_attrs(&card->card.pdev->dev, addr, PAGE_SIZE, DMA_BIDIRECTIONAL,
			     DMA_ATTR_SKIP_CPU_SYNC);
}

/* NULL when out of memory. */
static struct shared_page *add_locked(struct pci_card *card, struct page *page)
{
	struct shared_page *shared = kzalloc(sizeof(*shared), GFP_KERNEL_ACCOUNT);
	struct device *dev = &card->card.pdev->dev;

	if (!shared)
		return NULL;
	shared->addr = dma_map_page_attrs(dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL,
					  DMA_ATTR_SKIP_CPU_SYNC);
	if (dma_mapping_error(dev, shared->addr))
		goto err_shared;
	if (xa_err(xa_store(&card->pages, page_to_pfn(page), shared, GFP_KERNEL_ACCOUNT)))
		goto err_mapping;
	return shared;

err_mapping:
	unmap(card, shared->addr);
err_shared:
	kfree(shared);
	return NULL;
}

int pci_page_share(struct pci_card *card, struct page *page, dma_addr_t *addr)
{
	struct shared_page *shared;

	mutex_lock(&card->pages_lock);
	shared = xa_load(&card->pages, page_to_pfn(page));
	if (!shared)
		shared = add_locked(card, page);
	if (shared) {
		shared->uses++;
		*addr = shared->addr;
	}
	mutex_unlock(&card->pages_lock);
	return shared ? 0 : -ENOMEM;
}

void pci_page_unshare(struct pci_card *card, struct page *page)
{
	struct shared_page *shared;

	mutex_lock(&card->pages_lock);
	shared = xa_load(&card->pages, page_to_pfn(page));
	if (!--shared->uses) {
		xa_erase(&card->pages, page_to_pfn(page));
		unmap(card, shared->addr);
		kfree(shared);
	}
	mutex_unlock(&card->pages_lock);
}
