// SPDX-License-Identifier: GPL-2.0
/*
 * heap.c - tenants by deadline: O(log n), no allocation, each knows its place. Called by
 * budget.c only; what a deadline means is budget.c's.
 */
#include "core/core_inside.h"

bool core_heap_before(const struct core_tenant *a, const struct core_tenant *b)
{
	if (a->deadline_ns != b->deadline_ns)
		return a->deadline_ns < b->deadline_ns;
	if (a->period_ns != b->period_ns)
		return a->period_ns < b->period_ns;
	return a->index < b->index;
}

static void heap_put(struct core_heap *heap, u32 at, struct core_tenant *tenant)
{
	heap->at[at] = tenant;
	tenant->heap_at = at;
}

static void sift_up(struct core_heap *heap, u32 at)
{
	struct core_tenant *tenant = heap->at[at];
	u32 parent;

	for (; at; at = parent) {
		parent = (at - 1) >> 1;
		if (!core_heap_before(tenant, heap->at[parent]))
			break;
		heap_put(heap, at, heap->at[parent]);
	}
	heap_put(heap, at, tenant);
}

static void sift_down(struct core_heap *heap, u32 at)
{
	struct core_tenant *tenant = heap->at[at];
	u32 child;

	for (child = 2 * at + 1; child < heap->count; at = child, child = 2 * at + 1) {
		if (child + 1 < heap->count &&
		    core_heap_before(heap->at[child + 1], heap->at[child]))
			child++;
		if (!core_heap_before(heap->at[child], tenant))
			break;
		heap_put(heap, at, heap->at[child]);
	}
	heap_put(heap, at, tenant);
}

void core_heap_push(struct core_heap *heap, struct core_tenant *tenant)
{
	tenant->heap = heap->id;
	heap->budgets_ns += tenant->budget_ns;
	heap->at[heap->count] = tenant;
	sift_up(heap, heap->count++);
}

void core_heap_remove(struct core_heap *heap, struct core_tenant *tenant)
{
	u32 at = tenant->heap_at;
	struct core_tenant *last = heap->at[--heap->count];

	tenant->heap = CORE_HEAP_NONE;
	heap->budgets_ns -= tenant->budget_ns;
	if (last == tenant)
		return;
	heap_put(heap, at, last);
	sift_up(heap, at);
	sift_down(heap, last->heap_at);
}
