// SPDX-License-Identifier: GPL-2.0
/*
 * card.c - what all kinds of card have in common: the engine table says where graphics is.
 */
#include "card.h"

#define PTOP_DEVICE_INFO(i) (0x22700u + 4u * (i))
#define PTOP_SLOTS 64u
#define PTOP_KIND_ENUM 2u
#define PTOP_KIND_TYPE 3u
#define PTOP_TYPE_GRAPHICS 0u

int sim_card_find_graphics(struct sim_card *card)
{
	u32 engine = 0, runlist = 0, i;
	bool type_found = false, enum_found = false;

	for (i = 0; i < PTOP_SLOTS; i++) {
		u32 word = sim_card_read32(card, PTOP_DEVICE_INFO(i));

		switch (word & 3u) {
		case PTOP_KIND_ENUM:
			engine = (word >> 26) & 0xfu;
			runlist = (word >> 21) & 0xfu;
			enum_found = (word & BIT(5)) && (word & BIT(4));
			break;
		case PTOP_KIND_TYPE:
			type_found = ((word >> 2) & 0x1fffffffu) == PTOP_TYPE_GRAPHICS;
			break;
		}
		if (word & BIT(31))
			continue; /* the next word belongs to the same device */
		if (type_found && enum_found) {
			card->gr_engine = engine;
			card->gr_runlist = runlist;
			return 0;
		}
		type_found = false;
		enum_found = false;
	}
	return -ENODEV;
}
