// SPDX-License-Identifier: GPL-2.0
/*
 * fit.c - who does not fit the rotation: work that goes idle early gives the rest of every slice
 * away, work that cannot be cut takes more than its slice. Told by ledger.c of the visits it saw
 * and by pick.c of windows that closed; says only who should have windows (theory.rst, MISFITS).
 */
#include "core/core_inside.h"

/* Evidence below this many distances of looks may be chance. */
#define EXCESS_LOOKS 8
/* Evidence counts for 32 visits: so many bits of it go at each. */
#define EXCESS_SHIFT 5
/* Found without work so often, a tenant goes idle in its slices. */
#define QUIET_LOOKS 2u
/* A lag below two slices and this may be a round that was cut. */
#define LAG_SLACK_NS 1000000
/* Who fits loses less than such a part of what it is entitled to. */
#define LOST_PART 16
/* Who ran less than such a part of what so many rounds had for it is seldom seen when it does. */
#define UNSEEN_ROUNDS 6
#define UNSEEN_PART 3
/* So many looks in what it is behind by miss who runs with a chance of e^-16. */
#define UNSEEN_LOOKS 16
/* So often it has to be seen running in its windows, and no gap, before it may go back to the
 * rotation: gaps of a thousandth of its time are seen by then. */
#define CLEAN_LOOKS 4000u
/* The mean of gaps in windows is of the last eight or so. */
#define GAPS_MEAN 8
#define STAY_MIN_NS 2000000000ull
#define STAY_MAX_NS 32000000000ull

/* By what it is behind the other members of the rotation, by their own virtual time: those in
 * windows may be behind or ahead of all of them. */
static s64 lag_among_members(const struct core *core, const struct core_tenant *tenant)
{
	s64 entitled_ns = 0;

	if (tenant->sharing)
		entitled_ns = core_scaled((s64)(core->member_v - tenant->fit_v), tenant->share_ppm,
					  CORE_PPM);
	return tenant->fit_lag_ns + entitled_ns - (s64)(tenant->run_ns - tenant->fit_run_ns);
}

void core_fit_settle(const struct core *core, struct core_tenant *tenant)
{
	s64 lag_ns = lag_among_members(core, tenant);

	tenant->due_lag_ns += lag_ns - tenant->fit_lag_ns;
	if (tenant->sharing) {
		tenant->due_lag_ns -= core_scaled((s64)(core->levelled_v - tenant->levelled_v),
						  tenant->share_ppm, CORE_PPM);
		tenant->fit_shared_v += core->member_v - tenant->fit_v;
	}
	tenant->levelled_v = core->levelled_v;
	tenant->fit_lag_ns = lag_ns;
	tenant->fit_v = core->member_v;
	tenant->fit_run_ns = tenant->run_ns;
}

static u32 ppm_of(u64 part, u64 whole)
{
	return (u32)env_mul_div(part, CORE_PPM, max(whole, 1ull));
}

/* For how long it was one of the members since its evidence began, in their virtual time. */
static u64 shared_v(const struct core *core, const struct core_tenant *tenant)
{
	s64 since_v = tenant->sharing ? (s64)(core->member_v - tenant->fit_v) : 0;

	return (u64)max((s64)tenant->fit_shared_v + since_v, 0ll);
}

/* What it lost is credited to those who stay, by their shares (lag.c); but who came later did not
 * gain by it. */
void core_fit_leaves(const struct core *core, const struct core_tenant *leaver)
{
	s64 lost_ns = leaver->fit_lag_ns - leaver->fit_joined_ns;
	u32 rest_ppm = core->rotation.share_ppm - min(core->rotation.share_ppm, leaver->share_ppm);
	u64 whole_v = shared_v(core, leaver), part_v;
	struct core_tenant *tenant;
	u32 i;

	for (i = 0; i < core->tenant_count; i++) {
		tenant = core->tenants[i];
		if (tenant == leaver || tenant->place != CORE_ROTATES || !tenant->sharing)
			continue;
		part_v = min(shared_v(core, tenant), whole_v);
		tenant->fit_lag_ns -= core_scaled(core_scaled(lost_ns, tenant->share_ppm, rest_ppm),
						  ppm_of(whole_v - part_v, whole_v), CORE_PPM);
	}
}

void core_fit_restart(const struct core *core, struct core_tenant *tenant)
{
	tenant->excess_ns = 0;
	tenant->gap_ns = 0;
	tenant->quiet_looks = 0;
	tenant->gap_run_ns = 0;
	tenant->gap_from_ns = tenant->run_ns;
	tenant->drained_ns = 0;
	tenant->fit_var_us2 = tenant->var_us2;
	tenant->fit_lag_ns = 0;
	tenant->fit_joined_ns = 0;
	tenant->fit_left_ns = 0;
	tenant->fit_began_ns = tenant->run_ns;
	tenant->fit_shared_v = 0;
	tenant->fit_v = core->member_v;
	tenant->fit_run_ns = tenant->run_ns;
}

void core_fit_forgive(struct core *core, struct core_tenant *tenant, u64 from_ns)
{
	core_fit_restart(core, tenant);
	if (!tenant->misfit || tenant->misfit_from_ns < from_ns)
		return;
	tenant->misfit = false;
	core->dirty = true;
}

void core_fit_observed(struct core_tenant *tenant, u64 now_ns, bool was_quiet)
{
	u64 span_ns = now_ns > tenant->observed_ns ? now_ns - tenant->observed_ns : 0;
	u64 half_ns = span_ns >> 1;

	tenant->observed_ns = now_ns;
	if (was_quiet)
		tenant->gap_ns += span_ns - half_ns;
	if (!tenant->loud_count)
		tenant->gap_ns += half_ns;
}

/* Who always has work is never found without. */
bool core_fit_goes_idle(const struct core_tenant *tenant)
{
	return tenant->quiet_looks != 0;
}

bool core_fit_gaps_are_many(const struct core_tenant *tenant)
{
	return tenant->gaps_ppm > CORE_GAPS_MANY_PPM;
}

/* Who was just found not to fit owes the others what it kept from them. What it gave away is
 * nobody's debt, unless it was known not to fit and tried in the rotation once more. */
s64 core_fit_debt_ns(const struct core_tenant *tenant)
{
	s64 most_ns = (s64)(tenant->drained_ns + 2 * tenant->cycle_slice_ns);
	bool was_tried = tenant->stay_ns > STAY_MIN_NS;

	return clamp(tenant->fit_lag_ns, -most_ns, was_tried ? (s64)tenant->cycle_slice_ns : 0ll);
}

/* Gaps longer than a window would be held: it asks for no more than it gets, and windows would
 * only take from others what it cannot use. Visits shorter than the distance of looks are seldom
 * seen: there are at least as many as it ran such distances. */
static bool paces_itself(const struct core *core, const struct core_tenant *tenant)
{
	u64 looks = env_div(tenant->gap_run_ns, core->params.sample_ns);

	return tenant->gap_ns > core_hold_ns(core) * max(1ull << EXCESS_SHIFT, looks);
}

static void give_windows(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	tenant->misfit = true;
	tenant->misfit_from_ns = now_ns;
	tenant->stay_ns = max(tenant->stay_ns, STAY_MIN_NS);
	tenant->clean = 0;
	tenant->gaps_ppm = 0;
	core->dirty = true;
}

/* Visits shorter than the distance of looks are seldom seen: being behind by far tells by itself,
 * and so does being behind a little longer by a part that nobody who fits would lose. */
static bool is_far_behind(const struct core_tenant *tenant, s64 lag_ns, s64 limit_ns)
{
	s64 entitled_ns = (s64)(tenant->run_ns - tenant->fit_began_ns) + lag_ns;

	return lag_ns > 2 * limit_ns ||
	       (lag_ns > limit_ns + (limit_ns >> 2) && LOST_PART * lag_ns > entitled_ns);
}

/* What of its lag may be chance: 3 sigma. */
static s64 chance_of(const struct core_tenant *tenant)
{
	return (s64)core_ledger_chance_ns(tenant->var_us2 - tenant->fit_var_us2);
}

/* What rounds and chance explain. */
static s64 limit_of(const struct core_tenant *tenant)
{
	return 2 * (s64)tenant->cycle_slice_ns + LAG_SLACK_NS + chance_of(tenant);
}

/* Off by more than rounds and chance explain, and its visits say why? */
static void judge(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	s64 slice_ns = (s64)tenant->cycle_slice_ns;
	s64 sure_ns = max(slice_ns, (s64)(EXCESS_LOOKS * core->params.sample_ns));
	s64 chance_ns = chance_of(tenant);
	s64 lag_ns = lag_among_members(core, tenant);
	bool found_idle = tenant->quiet_looks >= QUIET_LOOKS;
	s64 limit_ns = limit_of(tenant);
	bool short_visits = tenant->excess_ns < -sure_ns || is_far_behind(tenant, lag_ns, limit_ns);
	bool is_behind = lag_ns > (found_idle ? limit_ns - chance_ns + chance_ns / 3 : limit_ns);

	if (is_behind ? (found_idle || short_visits) && !paces_itself(core, tenant) :
			lag_ns < -limit_ns && (s64)tenant->drained_ns > sure_ns)
		give_windows(core, tenant, now_ns);
}

/* Does the visit that is followed say anything about its tenant? */
static bool tells(const struct core *core)
{
	const struct core_tsg *tsg = core->visit;

	return core->policy == CORE_BURST_SHARE && core->window.kind == CORE_WINDOW_ROTATION &&
	       tsg->slice_ns && tsg->tenant->place == CORE_ROTATES &&
	       core->rotation.work_count >= 2 && core->visit_from_ns >= core->contended_from_ns;
}

void core_fit_visit_ended(struct core *core, const struct core_tsg *next, u64 next_from_ns)
{
	const struct core_tsg *tsg = core->visit;
	struct core_tenant *tenant = tsg->tenant;
	s64 excess_ns;

	excess_ns = (s64)(next_from_ns - core->visit_from_ns) - (s64)core->params.switch_ns -
		    (s64)tsg->slice_ns;
	/* Between TSGs of the owner of a window: early ends are gaps that the other filled. */
	if (core->window.owner == tenant && next->tenant == tenant &&
	    excess_ns < -(s64)(tsg->slice_ns >> 1))
		tenant->clean = 0;
	/* A tail of somebody outside the image says nothing about whoever was to run. */
	if (!tells(core) || !next->slice_ns)
		return;
	tenant->excess_ns += excess_ns - (tenant->excess_ns >> EXCESS_SHIFT);
	tenant->gap_ns -= tenant->gap_ns >> EXCESS_SHIFT;
	tenant->gap_run_ns -= tenant->gap_run_ns >> EXCESS_SHIFT;
	tenant->gap_run_ns += tenant->run_ns - tenant->gap_from_ns;
	tenant->gap_from_ns = tenant->run_ns;
	judge(core, tenant, next_from_ns);
}

/* Of several rounds it had next to nothing, and looks would have found it had it run. */
static bool is_hardly_seen(const struct core *core, const struct core_tenant *tenant, s64 lag_ns)
{
	s64 ran_ns = (s64)(tenant->run_ns - tenant->fit_began_ns);

	return ran_ns + lag_ns > (s64)(UNSEEN_ROUNDS * tenant->cycle_slice_ns) &&
	       lag_ns > (s64)(UNSEEN_LOOKS * core->params.sample_ns) &&
	       UNSEEN_PART * ran_ns < lag_ns;
}

/* Visits so short that no look finds them never end: one member a turn is judged without. */
void core_fit_turn(struct core *core, u64 now_ns)
{
	struct core_tenant *tenant;

	if (core->policy != CORE_BURST_SHARE || core->rotation.work_count < 2)
		return;
	core->judged = core->judged + 1 < core->tenant_count ? core->judged + 1 : 0;
	tenant = core->tenants[core->judged];
	if (tenant->place != CORE_ROTATES || !tenant->sharing || tenant->misfit)
		return;
	if (is_hardly_seen(core, tenant, lag_among_members(core, tenant)))
		judge(core, tenant, now_ns);
}

/* One kernel has kept the engine from all others for longer than it may. */
static bool is_hung(const struct core *core, const struct core_tenant *tenant)
{
	return tenant->asked.hang_ns && core->drain_ns > tenant->asked.hang_ns && !core->drain_told;
}

static void quarantine(struct core *core, struct core_tenant *tenant, u64 now_ns)
{
	core->drain_told = true;
	core->hangs++;
	core->hung = tenant;
	tenant->hangs++;
	give_windows(core, tenant, now_ns);
	tenant->stay_ns = STAY_MAX_NS;
}

void core_fit_drains(struct core *core, struct core_tenant *tenant, u64 span_ns, u64 now_ns)
{
	if (!core->drain_ns)
		span_ns >>= 1; /* it began somewhere in between */
	core->drain_ns += span_ns;
	tenant->drained_ns += span_ns;
	if (is_hung(core, tenant))
		quarantine(core, tenant, now_ns);
	if (tenant->place != CORE_ROTATES || tenant->misfit || core->policy != CORE_BURST_SHARE)
		return;
	if (core->drain_ns > CORE_TAIL_LONG_NS)
		give_windows(core, tenant, now_ns);
	else
		judge(core, tenant, now_ns);
}

void core_fit_disturbed(struct core *core, u64 now_ns)
{
	core->contended_from_ns = max(core->contended_from_ns, now_ns);
}

void core_fit_overran(struct core_tenant *tenant)
{
	tenant->overruns++;
	tenant->clean = 0;
}

/* Gaps that take so much of its windows are looked at more closely, and rounds are shorter. */
static void measure_gaps(struct core *core, struct core_tenant *owner)
{
	s64 idle_ns = clamp(core->window.idle_ns, 0ll, core->window.spent_ns);
	bool were_many = core_fit_gaps_are_many(owner);
	u32 ppm;

	/* Whoever has a trace guesses no edges. */
	if (core->window.spent_ns <= 0 || core->params.window_look_ns == U64_MAX)
		return;
	ppm = ppm_of((u64)idle_ns, (u64)(idle_ns + core->window.spent_ns));
	if (!owner->gaps_ppm)
		owner->gaps_ppm = ppm;
	owner->gaps_ppm = owner->gaps_ppm - owner->gaps_ppm / GAPS_MEAN + ppm / GAPS_MEAN;
	core->dirty |= core_fit_gaps_are_many(owner) != were_many;
}

void core_fit_window(struct core *core, u64 now_ns)
{
	struct core_tenant *owner = core->window.owner;

	measure_gaps(core, owner);
	/* Gaps that the owner came back from are what the rotation does not forgive. */
	if (core->window.gap)
		owner->clean = 0;
	else
		owner->clean += core->window.looks;
	if (owner->clean < CLEAN_LOOKS || now_ns < owner->misfit_from_ns + owner->stay_ns)
		return;
	owner->misfit = false;
	core_fit_restart(core, owner);
	owner->stay_ns = min(2 * owner->stay_ns, STAY_MAX_NS);
	core->dirty = true;
}
