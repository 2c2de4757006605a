/* SPDX-License-Identifier: GPL-2.0 */
/*
 * qgpu_trace.h - tracepoints: qgpu:qgpu_visit, a time on the engine that is over, the same as the
 * scheduler's log has. Off they cost a branch that is patched out.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM qgpu

#if !defined(QGPU_QGPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define QGPU_QGPU_TRACE_H

#include <linux/tracepoint.h>
#include "core/core.h"

TRACE_EVENT(qgpu_visit,
	TP_PROTO(u32 card, const struct core_visit *visit, u32 tenant_id, u32 due_id),
	TP_ARGS(card, visit, tenant_id, due_id),
	TP_STRUCT__entry(
		__field(u32, card)
		__field(u32, seen)
		__field(u32, tenant_id)
		__field(u32, end)
		__field(u32, window)
		__field(u32, due_id)
		__field(u64, from_ns)
		__field(u64, to_ns)
	),
	TP_fast_assign(
		__entry->card = card;
		__entry->seen = visit->seen;
		__entry->tenant_id = tenant_id;
		__entry->end = visit->end;
		__entry->window = visit->kind;
		__entry->due_id = due_id;
		__entry->from_ns = visit->from_ns;
		__entry->to_ns = visit->to_ns;
	),
	TP_printk("card=%u seen=%s tenant=%u from=%llu to=%llu end=%s window=%u due=%u",
		__entry->card,
		__print_symbolic(__entry->seen, { 0, "idle" }, { 1, "switch" }, { 2, "nobody" },
				 { 3, "tenant" }),
		__entry->tenant_id, (unsigned long long)__entry->from_ns,
		(unsigned long long)__entry->to_ns,
		__print_symbolic(__entry->end, { 0, "slice" }, { 1, "no-work" }, { 2, "window" },
				 { 3, "budget" }, { 4, "tail" }),
		__entry->window, __entry->due_id)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE qgpu_trace
#include <trace/define_trace.h>
