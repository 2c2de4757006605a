/* SPDX-License-Identifier: GPL-2.0 */
/*
 * core.h - the scheduling core: who may use an engine, for how long, and what was used.
 *
 * Pure decisions: time, looks at the chip and settings go in; an admitted set, its slices and an
 * end come out. turn.c feeds it and carries its answers to the chip. No lock, no I/O, and no
 * allocation after core_init(). Everything on one struct core is serialised by the caller.
 *
 *            settings      looks (who is on the engine, who has work)
 *               |                      |
 *   check.c   share.c               ledger.c ────────────► fit.c  who does not fit the rotation
 *   refusal   shares of the awake   run, error ───────────────► trim, once a second   |
 *               |                   activity.c wait.c lag.c   |                     |
 *               |                   busy, waits, lag          |                     |
 *    place.c  plan.c  places, C, T, F, b ◄──────────────────────┴─────────────────────┘
 *               |                      |
 *               └─► budget.c ◄─────────┘  who has budget, who takes turns: three queues
 *                      |
 *                    pick.c  window = admitted set, slices, end       next.c  when to look again
 *                      |
 *                    turn.c ──► image ──► chip
 *
 * WORDS. s = cost of one switch, p = cost of taking a TSG off at a window's end, M = awake TSGs,
 * phi = a tenant's share, l = loss aimed at, E = deviation aimed at over one second, P = mean
 * distance of looks. Delivered time = time the engine ran tenants; switching is charged to nobody.
 * Numbers of a card (20 ms of periods and of windows beside online) are those of
 * core_params_default().
 *
 * PLACES. By the plan each tenant rotates, takes turns by lag (ranked), has windows on the clock
 * (fixed-share, equal-share; under burst-share guarantee = ceiling below 100 %), or is online and
 * beside all others. The first two are the group: they share by delivered time what the rest
 * leaves, in one virtual time, so their shares need not add up to the whole, and T_i = C * phi_i of
 * every C on the wall.
 *
 * ROTATION (burst-share; the endless window). The hardware goes round the list; tenant i runs
 * T_i = C * phi_i of every C + M*s. In any interval of length t the rotation completes whole
 * rounds, which are exact, and one broken round. Over the broken round the worst that i can be
 * ahead is its whole slice against what all got in that time: with x <= T_i of its own in a row,
 * x - phi_i * x = (1 - phi_i) * x <= phi_i * (1 - phi_i) * C; the time s before each visit of the
 * others widens the interval in which nobody is charged, at most M*s. So
 *
 *     |run_i - phi_i * delivered| <= phi_i * (1 - phi_i) * (C + M*s) + e*t              (R)
 *
 * where e is what rounding of slices (8 significant bits) and wrong trim leave, e*t grows with t
 * until the ledger sees it. From (R): C_smooth = E / max phi(1-phi) - M*s keeps it below E.
 * Throughput is C / (C + M*s), so C_loss = M*s*(1-l)/l reaches 1 - l and 19*M*s 95 %.
 * A waker waits at most (1-phi)*C + M*s: C_wake = (50 ms - M*s) / (1-phi), a soft aim that yields
 * where it would cost more than 15 %, that is below 17/3 * M*s (for what was promised see WAITS):
 *
 *     C = min(C_loss, max(C_smooth, 19*M*s), max(C_wake, 17/3*M*s))
 *
 * and of 0.9*C ... C the value whose written slices are nearest to the shares. A lone tenant has
 * C = 20 ms, so that one who wakes beside it waits no longer.
 *
 * ROUNDS. A submit ends the running slice and scheduling restarts at the first entry. If that
 * entry were fixed, whoever changes the list often would feed it and starve the rest; if the cut
 * TSG just lost what it had left, tenants would lose in proportion to phi^2, since they are cut
 * phi of the time. So an image is the rotation continued: it begins with the TSG that was cut,
 * with what it had left, and ends with the same TSG and what it had used:
 *
 *     slot   A A A A B B C C | A A A A B B ...           used = 3/4 of A's slice at the cut
 *     image  a B C A'          a = 1/4 of A's slice, A' = 3/4: A' and a meet when the list wraps
 *
 * The period is still C, everybody has T once in it, and one image does it without a second
 * submit. While a tail is on, and images come and go, the rotation stays where it was cut. What
 * remains is the error of "used": it is known from looks to half their distance,
 * with mean zero, so n submits add a random walk of about sqrt(n) * P/4, and no pattern of
 * submits biases anyone. When the slices change, used keeps its fraction of the slice.
 *
 * MISFITS (burst-share). The rotation forgives neither who goes idle early (each gap hands the rest
 * of the slice away: launch-and-sync) nor who cannot be cut (it takes more than its slice). Who
 * is among the members, while it is busy, behind by more than 2*T + 1 ms + 3 sigma since it woke
 * gets windows of its own if its visits were seen to be shorter than its slices, by more than T and
 * 8*P together, or it is behind by twice as much, or by a quarter more and a sixteenth of what it
 * is entitled to (visits shorter than P are seldom seen), and with one sigma for three if it was
 * found without work twice, as who always has some never is; and if its gaps are 2*s + p on average
 * at most: in longer ones it paces itself, and no window would hold them. Who is as much ahead gets
 * them if it was seen computing as long while the engine was to leave it. A tail of 20 ms is
 * enough. What a member that comes and goes ran too much or too little is not what those who stay
 * lost or won. While such a tenant is busy and others are awake, windows follow each other, and the
 * rotation of the others is one server among them with the sum of their shares and a lag of its
 * own: whoever leaves it takes along what it ran, those who stay owe a cycle at most. The server
 * furthest behind for its share is next, lag_i / phi_i, so one that is ahead waits; but one that
 * had its window comes after all that are owed anything, so nobody has two in a row while others
 * who are wait. It may run
 *
 *     b_i = C * phi_i + lag_i - C * phi_i * (1 - phi_i) / 2,   within 1/2 ... 2 * C * phi_i   (S)
 *
 * and 5*s at least, but no more than phi_i * 50 ms for that: small shares come in time. A server
 * that gets its share comes with the lag C*phi_i*(1-phi_i)/2. In (S) what a window missed or took
 * too much is in the next budget, so lag stays within 2*C*phi_i and one tail. The gap of a
 * window's owner up to 2*s + p is held, not charged: all pay for it in throughput, at most as much
 * as it runs; then what it was idle of its budget is lost. Who gets windows owes what it kept from the
 * members; what it gave away is nobody's debt. At each plan lags are made to add up to nothing, so
 * that budgets stay near C * phi_i whatever those had who came and went. Seen 4,000 times
 * without gap or overrun in its windows it is tried in the rotation again, after 2 s at least,
 * twice as long each time up to 32 s. hang_ns: a kernel that keeps the engine for longer than that
 * while others wait is told of, and its tenant has windows for 32 s at least.
 *
 * EXCLUSIVE WINDOWS (fixed-share, equal-share, guarantee = ceiling). Tenant i owns b_i = phi_i *
 * F_i in each period of F_i, the least 20 ms * 2^k with phi_i * F_i >= max(2 ms, 10*s), and
 * periods lie on the card's clock, [k*F_i, (k+1)*F_i). A window admits its owner alone; among busy
 * owners with budget the earliest period end is next, ties by the shorter period, then index.
 * Since periods divide each other, saturating owners come in the same place of every period. A
 * window is not interrupted; one that held gaps for longer than its budget ends when another owner
 * would miss its period's end. What is left of it is the owner's to run later, as what the looks
 * see of a window is more or less than it ran; but if the other has missed five budgets, as it does
 * not by a tail, there is no time for the gaps, and they are lost, as they always are where
 * everybody has such windows. Beside the group owners take over when the window that is on ends, or
 * when all who have budget, one after the other, would miss the first one's period's end. Since a
 * window costs s + p, budgets are scaled by z = (1 - sum (s+p)/F_i) / sum phi_i where that is below
 * 1. By the argument for earliest deadline first with utilisation <= 1, without tails every busy
 * owner has its b_i before its period ends, except for one window that had begun (it is not
 * interrupted, at most the longest b_j); that is why a missed budget is carried and up to 2*b_i may
 * be spent in one window. A tail of work that cannot be cut takes from all others once. Between two
 * instants owner i can miss at most one budget's distance on either side:
 *
 *     lag_i <= phi_i * (2 * (F_i - b_i) + sum over j != i of tail_j)                      (W)
 *
 * and it is never ahead by more than its own tail, which is deducted from the next budget. Those
 * without a share of their own get together what is unassigned, 1 % at least, by weight. Under
 * equal-share each of N tenants that have a TSG owns 1/N.
 *
 * CEILINGS (burst-share). c of the wall: c * P in each period P, the least 20 ms * 2^k that is two
 * cycles and ten switches' worth long, or the longest with a budget of 10 ms, and 20 ms at least.
 * Who has used it leaves the admitted set, shares in nothing and is owed nothing until the period
 * ends. Half a budget may be kept, since a round may fall on a period's edge: in any t at most c *
 * t + 3/2 * c * P and a look's distance. Whenever a period's length changes, what was granted for
 * time to come is taken back and granted at the new rate, so no change gives anything.
 *
 * ONLINE. While a tenant of class online has a TSG, the group has no rotation: all are ranked, and
 * a window admits all online tenants and exactly one other, for 20 ms * phi / (least phi) of its
 * own run, 20 ... 200 ms. The other's slice is wake_within - 2*s, online's 1 s. An idle TSG is
 * skipped at no cost and a lone one is never switched, so its sleep costs nothing; a waker waits
 *
 *     other's slice + 2*s, and the tail of work that cannot be cut                        (O)
 *
 * however many others there are and whatever TSGs they have: an image lists the online ones before
 * each TSG of anybody else. (Not kept: windows on the clock that can wait no longer go without
 * online, for a budget or two.) n online tenants also wait for each other: the
 * least that can be promised is n * 200 us + (n+1) * s, what is promised beyond that lengthens
 * their slices and the other's by half each. When online has worked for 5 ms without a break the
 * other leaves. What the others together would get if all online were busy is their floor: G =
 * floor * delivered - run, kept above -E; at G >= E/2 they have windows without online until G <=
 * -E/2, ranked by their entitlement to floors. So over one second the floors are kept within E,
 * and online waits at most E / (1 - floor) when it has had more than its share. A change of the
 * one other while a tail is on may cost an online waker a second tail: the engine chooses who is
 * next when it is told of a list.
 *
 * WAITS (burst-share). What wake_within promises holds where each tenant has one context; settings
 * say no more. A member of the rotation waits for one visit of each other. While a wait is promised
 * plans are a round apart (keep_ns), so there are two at most in it: by the one the others have X
 * in sum, by the other X', and one who wakes when the most of X is over may have the most of X'.
 * Until there is a plan for it, it has 2*s. Each visit costs s. A change of plan cuts: whom it cuts
 * is loaded again, s + p, and how far it was is known to P/2; two cuts, since what was cut before
 * the wait goes on in it. With n members, m of them asleep,
 *
 *     wait <= X + X' + (n + 2*m)*s + 2*(s + p + P/2)                                   (K)
 *
 * so X is half of what the promise leaves, and n*s at least: no more than half is lost to
 * switching. Ceilings: who has used one leaves, p, and comes back, s, all on one grid of 20 ms, one
 * cut of P/2. Windows on the clock: in any t an owner has what is left of one budget, and a budget
 * at each start of a period, b * (2 + t/F). Its gaps are held for as long as it runs, so its
 * windows are up to 2*b long, and each costs s + p and s to come back. With B and U the sums of the
 * first and of the rate, a wait of t becomes (t + B) / (1 - U): longer than any if U >= 1, half a
 * card. Who has such windows waits from its budget of one period to the end of the next, or if it
 * ran two budgets at once or too much, one more:
 *
 *     wait <= 2*(F - b) + max(longest window, F - b) + s + p                            (C)
 *
 * Beside windows by lag whoever was promised a wait has windows of its own. It is noticed to have
 * work after 2*P at most; with what windows on the clock and ceilings leave of its promise w_i, n
 * such tenants, and R half of the least w_i - 2*P - n*(s+p), it takes the engine once it waited
 *
 *     w_i - 2*P - n*(s+p) - R,     for a window of R * phi_i / 2                         (P)
 *
 * from anybody but owners on the clock and others who did so, longest first. With gaps such a
 * window is twice as long, and each costs s + p: all of them are over within R + n*(s+p), which is
 * what was left. It has work again only after its window, so nobody takes the engine twice in that.
 * Where there is no room for that, R is n*s and each has s/2; the bound for all asleep, 5*n*s and
 * two cuts, is more than that needs.
 *
 * Online tenants wait (O) and B. Beside them nobody of the group is promised anything, nor anybody
 * whom the guarantees, or the normal if it is offline, may leave no share. Not kept: beside work
 * that cannot be cut; when an owner on the clock ends its windows with gaps and begins anew many
 * times in a period, each at the cost of switching; and while tenants have many contexts, each of
 * which costs s more.
 *
 * AWAKE AND BUSY. A TSG is awake when it had work within max(C, 20 ms), a tenant when one of its
 * TSGs is; shares and slices are those of the awake. A TSG that sleeps stays in the image with
 * slice 2*s. Busy = not seen without work for 2*s + p; lag accrues over the busy and windows end
 * when their owner is not. A sleeper's debt stands for a second, so that whoever wakes twice in it
 * has one tail, and goes down by its share of the time it sleeps then; what it is owed is
 * forgotten.
 *
 * LEDGER. A look finds one state. The time between two looks is split in the middle, half to the
 * state at either end; so everything is charged to somebody once and the totals add up to the
 * elapsed time. Looks lie at (k + U) * P, U uniform, so the weight of a look does not depend on
 * where in the rotation it falls: the estimate has no bias whatever the tenants' own periods
 * (strictly periodic looks would alias). A change between two looks d apart is off by a uniform
 * amount in +-d/2: variance d^2/12; a visit that only one look saw is there or not: d^2. The
 * published error is 3 standard deviations. A look whose time depends on what was seen has no
 * weight, but near a window's end, where what is seen decides when that is, and after it: tails are
 * much the same each time, so they and the switch that follows are looked at until they end. At the
 * edges of an exclusive window turn.c looks in steps of at most 0.1 % of the window; the same rule
 * then is "the middle of the last step", and the half steps are added up as a hard bound.
 *
 * LAG. lag_i = entitled - run over delivered time while i is busy. With the virtual time
 * V = integral of d(delivered) / (sum of phi of the busy), entitled = phi_i * (V - V at joining):
 * O(1) a look. A newcomer or waker joins at the present V with lag 0; sleepers forget. Since the
 * last correction a tenant busy all the time may be off by (R) with e = 0 and by 3 sigma of the
 * ledger; beyond twice that it is corrected: T_i * (1 + trim), at most 10 %, at most once a second.
 *
 * COST. A look, a change of who is busy and a pick are O(1) or O(log n) (three heaps). Periods of
 * many owners may end at once: each pick refills two at most of either heap, shortest periods
 * first; more than two windows never begin in one turn. A plan is O(n) and is made at most every
 * max(5 ms, C/4), every round while a wait is promised, and beside windows by lag whenever such a
 * tenant wakes; who has waited for as long as it may is looked for among those, when that is due.
 */
#ifndef QGPU_CORE_H
#define QGPU_CORE_H

#include "core_types.h"

/* Awake = had work within the longer of this and one cycle. */
#define CORE_LINGER_NS 20000000ull
/* The cycle of a lone tenant. */
#define CORE_CYCLE_LONE_NS 20000000ull
/* Shortest budget of a window on the clock (10 * s if that is longer). */
#define CORE_BUDGET_MIN_NS 2000000ull
/* A budget of less than this is not worth a window: it is carried. */
#define CORE_CRUMB_NS 20000
/* Periods that a busy owner may carry. */
#define CORE_CARRY_PERIODS 10
/* Awake for so long at most, whatever the cycle. */
#define CORE_LINGER_MAX_NS 100000000ull
/* Least time between two plans; C / 4 if that is longer, up to the second. */
#define CORE_REPLAN_NS 5000000ull
#define CORE_REPLAN_MAX_NS 20000000ull
/* A ceiling's budget a period, at most. */
#define CORE_CAP_BUDGET_MAX_NS 10000000ull
/* A tail as long as this shows that a tenant does not fit the rotation. */
#define CORE_TAIL_LONG_NS 20000000ull
/* Beside online tenants: the least slice of the one other, the longest cycle of its windows in
 * least ones, and after how much uninterrupted online work offline tenants leave. */
#define CORE_OTHER_SLICE_MIN_NS 200000ull
#define CORE_TENURES_MAX 100ull
#define CORE_LEAVE_NS 5000000ull
/* What is promised to an online tenant that asks for nothing, where the card can keep it. */
#define CORE_ONLINE_WAKE_NS 500000ull
/* Corrections by the ledger: distance and size. */
#define CORE_TRIM_EVERY_NS 1000000000ull
#define CORE_TRIM_MAX_PPM 100000
/* What those without a share of their own get together under fixed-share, at least. */
#define CORE_REST_MIN_PPM 10000u

struct core_tenant;

/* What a look found on the engine. */
enum core_seen {
	CORE_SEEN_IDLE,	  /* nobody computes, nothing is being switched */
	CORE_SEEN_SWITCH, /* save or load: charged to nobody */
	CORE_SEEN_NOBODY, /* work of a TSG that belongs to no tenant */
	CORE_SEEN_TSG,	  /* a tenant's TSG computes */
};

/**
 * struct core_tsg - one TSG; embedded in the caller's
 * @tenant: whose it is; NULL = nobody's: never planned, in every image
 * @next: next TSG of the same tenant
 * @listed: the driver's list has it; else it takes part in nothing
 * @awake: had work within the linger; counts in M and gets its part of the tenant's slice
 * @has_work: not seen without for 2 * s + p
 * @loud: had work at the last look
 * @work_seen_ns, @quiet_from_ns: when work was last seen, and when first none was
 * @planned_ns: its slice by the plan in force when its window is on; 0 = not admitted by any
 * @slice_ns: its slice in the slot, as the chip took it; 0 = not in the slot
 */
struct core_tsg {
	struct core_tenant *tenant;
	struct core_tsg *next;
	bool listed, awake, has_work, loud;
	u64 work_seen_ns, quiet_from_ns;
	u64 planned_ns;
	u64 slice_ns;
};

/**
 * struct core_phase - where a rotation was cut
 * @tsg: the TSG whose turn it was; NULL = from the start of the list
 * @used_ns: how much of its slice it had used
 * @slice_ns: the slice it had then
 */
struct core_phase {
	struct core_tsg *tsg;
	u64 used_ns, slice_ns;
};

/* How a tenant is scheduled. The first two share what the others leave: the group. */
enum core_place {
	CORE_ROTATES, /* a member of the rotation */
	CORE_RANKED,  /* windows of its own, the one furthest behind next */
	CORE_CLOCKED, /* windows of its own, on the card's clock */
	CORE_BESIDE,  /* online: admitted to the windows of all others */
};

/**
 * struct core_tenant - one tenant on one runlist; embedded in the caller's
 *
 * Settings and plan:
 * @asked: settings as given
 * @index: place among the tenants
 * @place: how it is scheduled by the plan
 * @share_ppm: of delivered time among the awake of the group (0 asleep), of wall time on the clock,
 *             among themselves of the online
 * @floor_ppm: of delivered time if all online tenants were busy; 0 without any
 * @shown_ppm: what it may count on now: its floor while online is awake, else its share
 * @cycle_slice_ns: T, its part of the cycle, over all its awake TSGs; 0 = asleep, or not of the
 * group
 * @period_ns, @budget_ns: F and b of its windows on the clock after scaling, or of its ceiling if
 *                         @capped; 0 = neither
 * @trim_ppm: correction of T by the ledger, -100000 ... 100000
 * @held: it is awake and its share is 0: not admitted
 *
 * Fit:
 * @misfit: does not fit the rotation
 * @excess_ns: by how much its visits of late were longer than its slices
 * @drained_ns: how long it computed when the engine was to leave it, since it woke
 * @fit_var_us2: the variance of its run time when it woke
 * @fit_joined_ns: @fit_lag_ns when it became busy; @fit_began_ns: run_ns when evidence began
 * @fit_lag_ns, @fit_v, @fit_run_ns: its lag among the members of the rotation since it woke,
 *                                 settled at @fit_v of their virtual time, and run_ns then
 * @gap_ns: time without work at its visits of late; @gap_run_ns: what it ran then, up to when
 *          run_ns was @gap_from_ns
 * @observed_ns: when work of one of its TSGs was last looked for; @loud_count: TSGs that had some;
 *               @quiet_looks: how often it was found that none had since it woke
 * @misfit_from_ns, @stay_ns: since when, and how long at least
 * @clean: looks in a row that found it running in its windows and no gap
 * @hangs: kernels that ran longer than hang_ns while others waited
 *
 * Objects and activity:
 * @tsgs: its TSGs
 * @tsg_count, @listed_count, @awake_count, @work_count: of its TSGs
 *
 * Ledger; all cumulative in ns:
 * @run_ns: time on the engine
 * @edge_ns: sum of what the measured edges may be off
 * @var_us2: variance of what was sampled, in square microseconds
 * @had_work_ns, @work_from_ns: closed spans of having work, and where the open one began
 * @wait_shown_ns: wait as last shown, so that it never goes back
 * @waiting, @wait_from_ns: not seen running since then, and had work whenever that was looked for
 * @wait_throttled_ns: what was throttled up to then
 * @wait_max_ns: the longest wait so far, the open one included
 * @throttled_ns, @throttled_from_ns: the same for having work without budget
 * @throttled: an open span
 * @sharing: entitled to a part of what the group runs: busy, not held, not out of budget
 * @press_ns: so long it may wait before it takes the engine from those who take turns by lag, so that
 *            what it was promised is kept; 0 = nothing to keep there
 * @next_promised: the next who has such a wait
 * @slept_at_ns, @slept_ppm: when it fell asleep, and its share then
 * @windows, @preempts, @overruns: windows opened, cuts, windows that ended later than p
 * @source: worst source used
 *
 * Lag, settled at @v_from:
 * @lag_ns: entitled - run up to then
 * @v_from, @floor_v_from, @run_from_ns: virtual times and run_ns at that point
 * @due_lag_ns, @due_run_ns, @due_var_us2: lag, run and variance since the last correction
 * @due_broken: was not busy all that time
 *
 * Windows:
 * @left_ns: budget left in the period that ends at @period_end_ns; < 0 = overrun
 * @deadline_ns: its key: @period_end_ns, one period less while it has a missed budget; if ranked
 *               the virtual time at which it would have what it ran
 * @heap, @heap_at: which heap it is in (CORE_HEAP_*) and where
 * @aside: budget.c's own
 * @phase: where its TSGs' rotation was cut at the end of its last window
 */
struct core_tenant {
	struct core_settings asked;
	u32 index;
	enum core_place place;
	u32 share_ppm, floor_ppm, shown_ppm;
	u64 cycle_slice_ns;
	u64 period_ns, budget_ns;
	bool capped;
	s32 trim_ppm;
	bool held;

	bool misfit;
	s64 excess_ns, fit_lag_ns, fit_joined_ns;
	u64 fit_v, fit_run_ns, fit_began_ns, levelled_v;
	u64 gap_ns, gap_run_ns, gap_from_ns, observed_ns;
	u32 loud_count, quiet_looks;
	u64 drained_ns, fit_var_us2;
	u64 misfit_from_ns, stay_ns;
	u32 clean;
	u64 hangs;

	struct core_tsg *tsgs;
	u32 tsg_count, listed_count, awake_count, work_count;

	u64 run_ns;
	u64 edge_ns, var_us2;
	u64 had_work_ns, work_from_ns, wait_shown_ns;
	bool waiting;
	u64 wait_from_ns, wait_throttled_ns, wait_max_ns;
	struct core_hist waits, tails;
	u64 throttled_ns, throttled_from_ns;
	bool throttled, sharing;
	u64 press_ns;
	struct core_tenant *next_promised;
	u64 slept_at_ns;
	u32 slept_ppm;
	u64 windows, preempts, overruns;
	enum core_source source;

	s64 lag_ns;
	u64 v_from, floor_v_from, run_from_ns;
	s64 due_lag_ns;
	u64 due_run_ns, due_var_us2;
	bool due_broken;

	s64 left_ns;
	u64 period_end_ns, deadline_ns;
	u8 heap;
	u32 heap_at;
	struct core_tenant *aside;
	struct core_phase phase;
};

/* A binary heap of tenants, earliest deadline on top, ties by shortest period, then index;
 * @budgets_ns: sum of their budgets, which change only while they are in none. */
struct core_heap {
	struct core_tenant **at;
	u32 count;
	u64 budgets_ns;
	u8 id;
};

/* On the clock with budget; without budget, on the clock or under a ceiling; taking turns by lag.
 */
enum { CORE_HEAP_NONE, CORE_HEAP_READY, CORE_HEAP_WAITING, CORE_HEAP_RANKED };

/**
 * struct core_claim - one tenant as share.c sees it
 * @weight, @guarantee_ppm, @ceiling_ppm, @class_: as asked
 * @share_ppm: what it gets
 */
struct core_claim {
	u32 weight, guarantee_ppm, ceiling_ppm;
	enum core_class class_;
	u32 share_ppm;
	u64 remainder; /* share.c's own */
};

/* Kinds of windows: which TSGs are admitted. Nobody's are always. */
enum core_window_kind {
	CORE_WINDOW_DRIVER,    /* all listed, the driver's slices and order (best-effort) */
	CORE_WINDOW_ROTATION,  /* planned slices: all tenants, endless; or the rotation's members */
	CORE_WINDOW_EXCLUSIVE, /* the owner's, until its budget is used or it has no work */
	CORE_WINDOW_ONLINE,    /* all online and the owner, whose slices are short */
	CORE_WINDOW_QUIET,     /* no busy owner has budget: those not busy who have some */
};

/**
 * struct core_window - what is on
 * @kind, @owner: owner under EXCLUSIVE and ONLINE; under ROTATION &core.rotation when it has an
 * end; or NULL: it goes on until somebody waits
 * @budget_ns: most that the owner may run in it
 * @spent_ns: what it ran in it
 * @from_ns: when it was decided, or when the tail before it was seen last
 * @idle_ns: for how long the engine was idle after somebody had run in it; @gap: and its owner came
 *           back
 * @looks: that found its owner running
 * @fresh: the chip has had no image of it yet
 * @pressed: its owner had waited for as long as it may
 */
struct core_window {
	enum core_window_kind kind;
	struct core_tenant *owner;
	s64 budget_ns, spent_ns, idle_ns;
	u64 from_ns;
	bool gap, fresh, pressed;
	u32 looks;
};

/* Why somebody is no longer on the engine. */
enum core_visit_end {
	CORE_END_SLICE,	  /* its slice was over, or it gave way to the next of the rotation */
	CORE_END_NO_WORK, /* the engine idled behind it */
	CORE_END_WINDOW,  /* somebody else's window began */
	CORE_END_BUDGET,  /* it had used up its budget or ceiling */
	CORE_END_TAIL,	  /* work that could not be cut ended, late */
};

/**
 * struct core_visit - a time in which the looks found the same on the engine
 * @seen, @tenant: what and, with CORE_SEEN_TSG, whose; NULL: it was removed meanwhile
 * @from_ns, @to_ns: halfway between the looks that differ
 * @end: with CORE_SEEN_TSG
 * @kind, @due: the window that was on at its end, and its owner; NULL: whoever is next
 */
struct core_visit {
	enum core_seen seen;
	const struct core_tenant *tenant;
	u64 from_ns, to_ns;
	enum core_visit_end end;
	enum core_window_kind kind;
	const struct core_tenant *due;
};

/**
 * struct core_totals - the runlist's, cumulative, ns: with all tenants' run_ns they add up to the
 *                      elapsed time
 */
struct core_totals {
	u64 switch_ns, idle_ns, nobody_ns;
};

/**
 * struct core - the scheduler's state for one runlist
 *
 * @params, @policy, @cycle_asked_ns: as given
 * @tenants, @tenant_count, @tenant_max: all of them; @claims: scratch of one for each
 * @rotation: the rotation as one server: share, run, lag and work_count are the sums over its busy
 *            members, those without windows of their own; not among @tenants
 *
 * Plan:
 * @cycle_ns: C in force; 0 = nobody of the group is awake
 * @online_count: tenants of class online that are there; @other_slice_ns: slice of the one other
 * @awake_tenants, @awake_tsgs: who has slices by activity; M = awake_tsgs
 * @dirty: who is awake or what was asked changed since the plan; @urgent: the policy did, so the
 *         plan in force is one of the former, or somebody woke who can wait for no later one
 * @stale: the image in the slot is not what the window and the plan say; @let_go: somebody whose
 *         ceiling's period ended is to be in it again
 * @limited: somebody awake has a budget; @turns: does not fit the rotation
 * @planned_at_ns, @trimmed_at_ns: when that was last done
 * @keep_ns: least time to the next plan, so that a wait that was promised has two at most in it
 * @promised: the first of those whose waits are kept beside windows by lag; @press_at_ns: nobody of
 *            them has waited for as long as it may before; @press_room_ns: what all of them, one after
 *            the other, may run then
 *
 * Ledger:
 * @looked_ns, @seen, @seen_tsg, @seen_tenant: the last look
 * @seen_before: the look before the last saw the same
 * @on_visit, @listener: who is told of each time on the engine when it is over; NULL: nobody; may
 *                       not sleep; @seen_from_ns: when the one that is on began
 * @tail: somebody outside the image is still computing (set by turn.c): looked at closely
 * @draining: the engine is to leave whom the look found and cannot (set by turn.c); @drain_ns: for
 *            how long; @drain_told: that was longer than it may; @hangs, @hung: how often so far,
 *            and whose it was last
 * @followed: a tail was on, and nobody has been seen on the engine since
 * @busy_tenants: how many; @contended_from_ns: since when two of the rotation are
 * @sharing_count: tenants of the group that are sharing
 * @v: virtual time; @busy_ppm: sum of shares of the sharing; @busy_recip: 10^6 * 2^20 / busy_ppm
 * @floor_v, @floor_busy_ppm, @floor_recip: the same by floors, for windows without online
 * @floor_lag_ns: what the group is behind its floors; @protecting: so it has windows without online
 * @online_busy, @online_from_ns: busy online tenants, and since when there are any
 * @member_v, @member_recip: the same of the rotation's members; the sum is @rotation.share_ppm
 * @visit, @visit_from_ns: who was last seen running, and since when without a break
 * @visit_met: a look found it running, so a switch ends the visit
 * @look_cell_ns, @look_at_ns, @rng: the cell of the grid the next look is in; when; the jitter
 */
struct core {
	struct core_params params;
	enum core_policy policy;
	u64 cycle_asked_ns;

	struct core_tenant **tenants;
	u32 tenant_count, tenant_max;
	struct core_claim *claims;
	struct core_tenant rotation;

	u64 cycle_ns;
	u32 online_count, judged;
	u64 other_slice_ns;
	u32 awake_tenants, awake_tsgs;
	bool dirty, urgent, stale, let_go, limited, turns;
	u64 planned_at_ns, trimmed_at_ns, keep_ns;
	struct core_tenant *promised;
	u64 press_at_ns, press_room_ns;

	u64 looked_ns;
	enum core_seen seen;
	struct core_tsg *seen_tsg;
	struct core_tenant *seen_tenant;
	bool seen_before, tail, draining, drain_told, followed;
	u64 drain_ns;
	u64 hangs;
	struct core_tenant *hung;
	struct core_totals totals;
	void (*on_visit)(void *listener, const struct core_visit *visit);
	void *listener;
	u64 seen_from_ns;
	u32 busy_tenants;
	u64 contended_from_ns;
	u32 sharing_count;
	u64 v, busy_recip;
	u64 floor_v, floor_recip;
	u32 floor_busy_ppm;
	s64 floor_lag_ns;
	bool protecting;
	u32 online_busy;
	u64 online_from_ns;
	u64 member_v, levelled_v, member_recip;
	u32 busy_ppm;
	struct core_tsg *visit;
	u64 visit_from_ns;
	bool visit_met;
	u64 look_cell_ns, look_at_ns, rng;

	struct core_window window;
	struct core_heap ready, waiting, ranked;
};

/* What the glue shows of a tenant. */
struct core_view {
	u32 share_ppm; /* effective */
	u64 slice_ns;  /* of each of its TSGs, as the chip took it; 0 = none in the slot */
	u64 window_ns; /* budget a period under exclusive windows; 0 = in rotation */
	bool awake;
	u32 tsgs;
};

/**
 * core_init() - an empty core; the only function that allocates
 * Return: 0, -ENOMEM.
 */
int core_init(struct core *core, const struct core_params *params, u32 tenant_max, u64 seed,
	      u64 now_ns);
void core_fini(struct core *core);

/**
 * core_params_default() - what a T4-class card is taken for until it is calibrated (architecture,
 * the scheduling rule); the caller adds what its chip can express as a slice
 */
void core_params_default(struct core_params *params);

/**
 * core_settings_default() - weight 100, no guarantee, no ceiling, class normal
 */
void core_settings_default(struct core_settings *settings);

/**
 * core_tenant_add() - @tenant takes part from now on; its former content is overwritten
 * Return: 0, -ENOSPC: tenant_max reached.
 */
int core_tenant_add(struct core *core, struct core_tenant *tenant,
		    const struct core_settings *settings);
void core_tenant_set(struct core *core, struct core_tenant *tenant,
		     const struct core_settings *settings);
/* It has no TSG any more. */
void core_tenant_remove(struct core *core, struct core_tenant *tenant);
void core_policy_set(struct core *core, enum core_policy policy, u64 cycle_ns);

/**
 * core_tenure_set() - the least window of an online tenant's neighbour from the next plan on
 */
void core_tenure_set(struct core *core, u64 tenure_ns);

/**
 * core_forgive() - nobody owes or is owed anything for what ran up to the last look, and nothing
 *                  follows from how it ran since @from_ns, when nothing could be enforced any more;
 *                  counters keep it
 */
void core_forgive(struct core *core, u64 from_ns);

/**
 * core_tsg_add() / core_tsg_remove() - @tenant NULL = nobody's; added unlisted
 * core_tsg_list() - the driver's list has it, or has it no longer
 */
void core_tsg_add(struct core *core, struct core_tsg *tsg, struct core_tenant *tenant);
void core_tsg_remove(struct core *core, struct core_tsg *tsg);
void core_tsg_list(struct core *core, struct core_tsg *tsg, bool listed);

/**
 * core_tenant_view() - what is in force for a tenant now
 */
void core_tenant_view(const struct core_tenant *tenant, struct core_view *out);

/**
 * core_tenant_counters() - its counters as of the last look; none ever goes back
 */
void core_tenant_counters(const struct core *core, struct core_tenant *tenant,
			  struct core_counters *out);

/*
 * share.c
 */

/**
 * core_share_split() - shares of claims that are all awake: guarantees, the rest by weight over
 * online and normal up to their ceilings, what is left to offline by weight
 *
 * The shares add up to @total_ppm exactly, unless all are at their ceiling. Guarantees that add up
 * to more are scaled down.
 */
void core_share_split(struct core_claim *claims, u32 count, u32 total_ppm);

/**
 * core_share_windows() - shares under fixed-share: guarantees; claims without one get what is
 * unassigned, together at least CORE_REST_MIN_PPM, by weight up to their ceilings
 */
void core_share_windows(struct core_claim *claims, u32 count);

/*
 * place.c; used between the files of the core: how each is scheduled, and then its share
 */
void core_place_all(struct core *core, u64 now_ns);
void core_place_shares(struct core *core);

/*
 * plan.c
 */

/**
 * core_plan_due() - is it time for a new plan?
 */
bool core_plan_due(const struct core *core, u64 now_ns);

/**
 * core_plan_make() - shares, cycle, slices and budgets for who is awake now; O(n)
 */
void core_plan_make(struct core *core, u64 now_ns);

/* Used between the files of the core: when the next plan may be made. */
u64 core_plan_from_ns(const struct core *core);

/*
 * bound.c: the longest waits (WAITS)
 */

/**
 * struct core_clock - the windows on the clock of a card
 * @sum_ppm: sum of their shares
 * @over_ppm: sum of what the windows cost beside them
 */
struct core_clock {
	u64 sum_ppm, over_ppm;
};

/* One more with a share of its own; the period of one; its budget, scaled where windows and their
 * costs together would pass the whole. */
void core_clock_add(struct core_clock *clock, const struct core_params *params, u32 share_ppm);
u64 core_clock_period_ns(const struct core_params *params, u32 share_ppm);
u64 core_clock_budget_ns(const struct core_clock *clock, const struct core_params *params,
			 u32 share_ppm);

/**
 * core_on_grid_ns() - the shortest period on a grid of powers of two that is @least_ns long, or the
 * longest up to @most_ns
 *
 * Whose periods divide each other's comes in the same place of each (EXCLUSIVE WINDOWS), and a
 * period that hangs on the cycle seldom changes.
 */
u64 core_on_grid_ns(const struct core_params *params, u64 least_ns, u64 most_ns);

/**
 * struct core_load - what takes the engine from those who wait for it
 * @burst_ns: what of it may come at once
 * @ppm: and how much of the wall it takes beside
 */
struct core_load {
	u64 burst_ns, ppm;
};

/* Windows of @window_ns on the wall in each @period_ns; @ceilings tenants that leave the rotation
 * when theirs is reached, and come back. */
void core_load_window(struct core_load *load, const struct core_params *params, u64 window_ns,
		      u64 period_ns);
void core_load_ceilings(struct core_load *load, const struct core_params *params, u32 ceilings);

/**
 * core_load_stretch() - what a wait of @wait_ns becomes with @load in it; U64_MAX = endless
 * core_load_spare() - what of a wait of @wait_ns is left beside @load
 */
u64 core_load_stretch(const struct core_load *load, u64 wait_ns);
u64 core_load_spare(const struct core_load *load, u64 wait_ns);

/**
 * core_wait_rotating_ns() - the longest wait among @contexts that rotate
 * @slices_ns: what the others have in it
 *
 * core_slices_within_ns() - what the others may have by one plan, so that a wait of @wait_ns is
 * kept among @awake that rotate and @asleep that may wake
 */
u64 core_wait_rotating_ns(const struct core_params *params, u32 contexts, u64 slices_ns);
/* The shortest that can be kept for @count tenants beside windows by lag. */
u64 core_wait_pressed_ns(const struct core_params *params, u32 count);
u64 core_slices_within_ns(const struct core_params *params, u32 awake, u32 asleep, u64 wait_ns);

/**
 * core_wait_clocked_ns() - the longest wait of an owner of windows on the clock
 * @longest_ns: the longest window of any other owner; 0 = there is none
 */
u64 core_wait_clocked_ns(const struct core_params *params, u64 budget_ns, u64 period_ns,
			 u64 longest_ns);

/**
 * core_online_bound_ns() - the shortest wait that can be promised to @online online tenants: the
 * other's slice and the slices of those beside it, and a switch before each and before its own
 */
u64 core_online_bound_ns(const struct core_params *params, u32 online);

/**
 * core_is_fixed() - guarantee and ceiling are one share of the wall: windows on the clock
 */
bool core_is_fixed(const struct core_settings *settings);

/**
 * struct core_crowd - all tenants of a card by their settings, under burst-share
 * @params: the card
 * @online: how many are online
 * @members: how many rotate where nobody is
 * @capped: of those, how many have a ceiling
 * @guaranteed_ppm: what comes before weights among the members
 * @claimed_ppm: and what comes before offline ones
 * @clock: windows on the clock
 * @load: what they take, with their gaps
 * @longest_ns: the longest of them
 * @second_ns: and the longest of all but that one's owner
 */
struct core_crowd {
	const struct core_params *params;
	u32 online, members, capped;
	u64 guaranteed_ppm, claimed_ppm;
	struct core_clock clock;
	struct core_load load;
	u64 longest_ns, second_ns;
};

void core_crowd_of(struct core_crowd *crowd, const struct core_params *params,
		   const struct core_settings *settings, u32 count);

/* What keeps a wait from being shorter, or from being promised at all: switches; who comes first;
 * claims that may leave it nothing; windows on the clock that may take what is left. */
enum core_hindrance {
	CORE_HINDERED_BY_SWITCHES,
	CORE_HINDERED_BY_ONLINE,
	CORE_HINDERED_BY_SHARES,
	CORE_HINDERED_BY_WINDOWS,
};

/**
 * struct core_wake_bound - what can be promised to one of a crowd
 * @ns: the shortest wait; U64_MAX = none
 * @by: why there is none
 */
struct core_wake_bound {
	u64 ns;
	enum core_hindrance by;
};

struct core_wake_bound core_wake_bound_of(const struct core_crowd *crowd,
					  const struct core_settings *settings);

/*
 * visit.c
 */

/**
 * core_visit_look() - before a look is charged: does it end what was seen last?
 */
void core_visit_look(struct core *core, u64 now_ns, enum core_seen seen,
		     const struct core_tenant *tenant);

/*
 * activity.c
 */

/**
 * core_work() - a TSG that was not seen running has work or has none
 */
void core_work(struct core *core, struct core_tsg *tsg, u64 now_ns, bool has_work);

/*
 * wait.c; used between the files of the core
 */

/* Nobody looked for @span_ns, which is long, as when the card did not answer. */
bool core_looks_missed(const struct core *core, u64 span_ns);
/* How long it had work and no budget, up to the last look. */
u64 core_throttled_ns(const struct core *core, const struct core_tenant *tenant);
/* One more that lasted so long. */
void core_hist_add(struct core_hist *hist, u64 ns);
void core_wait_begins(struct core *core, struct core_tenant *tenant, u64 from_ns);
/* A look found work of it, or none, while it was not running; @now runs, @span_ns after the look
 * before. */
void core_wait_observed(struct core *core, struct core_tenant *tenant, u64 now_ns, bool was_quiet);
void core_wait_seen(struct core *core, struct core_tenant *now, u64 span_ns);

/*
 * lag.c
 */

/**
 * core_lag_ns() - entitled minus run, as of the last look
 */
s64 core_lag_ns(const struct core *core, const struct core_tenant *tenant);

/* Used between the files of the core: settle lag before a share changes; it takes part in what is
 * shared, or no longer; places, shares or who is busy changed; it ran. */
void core_lag_settle(struct core *core, struct core_tenant *tenant);
void core_lag_join(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_lag_leave(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_lag_sum_busy(struct core *core, u64 now_ns);
void core_lag_charge(struct core *core, const struct core_tenant *tenant, u64 span_ns);
/* @times of @ns by @by; @ns may be less than nothing. */
s64 core_scaled(s64 ns, u32 times, u32 by);

/*
 * ledger.c
 */

/**
 * core_look() - charge the time since the last look
 * @tsg: who computes, with CORE_SEEN_TSG; it is observed as having work
 */
void core_look(struct core *core, u64 now_ns, enum core_seen seen, struct core_tsg *tsg);

/* Used between the files of the core: what a tenant is corrected by begins anew. */
void core_ledger_restart_due(struct core_tenant *tenant);
/* 3 standard deviations of a variance in square microseconds. */
u64 core_ledger_chance_ns(u64 var_us2);
/* Corrections from the ledger. Return: a trim changed. */
bool core_ledger_trim(struct core *core, u64 now_ns);

/*
 * fit.c
 */

/**
 * core_fit_disturbed() - visits that began before @now_ns were cut by somebody else: they say
 *                        nothing of who fits the rotation
 */
void core_fit_disturbed(struct core *core, u64 now_ns);

/**
 * core_fit_overran() - its work was not cut in time at a window's end
 */
void core_fit_overran(struct core_tenant *tenant);

/* Used between the files of the core: what was seen of it since @from_ns shows nothing; evidence
 * starts afresh, or its share is to change; work was looked for, and before that none had been seen
 * if @was_quiet; the visit that is followed ended, @next runs since; it computes though the engine
 * is to leave it; an owner's window closes; lags after a plan. */
void core_fit_forgive(struct core *core, struct core_tenant *tenant, u64 from_ns);
void core_fit_restart(const struct core *core, struct core_tenant *tenant);
void core_fit_settle(const struct core *core, struct core_tenant *tenant);
bool core_fit_goes_idle(const struct core_tenant *tenant);
s64 core_fit_debt_ns(const struct core_tenant *tenant);
void core_fit_observed(struct core_tenant *tenant, u64 now_ns, bool was_quiet);
void core_fit_visit_ended(struct core *core, const struct core_tsg *next, u64 next_from_ns);
void core_fit_drains(struct core *core, struct core_tenant *tenant, u64 span_ns, u64 now_ns);
void core_fit_window(struct core *core, u64 now_ns);
void core_fit_turn(struct core *core, u64 now_ns);

/*
 * heap.c; used by budget.c. core_heap_before() - Return: @a comes before @b; no two are equal.
 */
bool core_heap_before(const struct core_tenant *a, const struct core_tenant *b);
void core_heap_push(struct core_heap *heap, struct core_tenant *tenant);
void core_heap_remove(struct core_heap *heap, struct core_tenant *tenant);

/*
 * budget.c; used between the files of the core
 */

/* Into the queue it belongs to, if it is in none and owns no window; out of it. */
void core_budget_queue(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_unqueue(struct core *core, struct core_tenant *tenant);
/* The same after its window: what it is owed still is no reason to pass others who are. */
void core_budget_had_turn(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* It became busy, became idle, ran. */
void core_budget_busy(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_idle(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_budget_used(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* Refill one for the periods that ended; two at most of either queue whose period ended. */
void core_budget_roll(struct core_tenant *tenant, u64 now_ns);
void core_budget_refill(struct core *core, u64 now_ns);
/* New numbers. What was granted for time to come is taken back at the former rate and granted at
 * the new one, so no change of period gives or takes anything. */
void core_budget_set(struct core *core, struct core_tenant *tenant, u64 budget_ns, u64 period_ns,
		     u64 now_ns);
/* What it ran too much or too little in former periods is forgotten. */
void core_budget_forgive(struct core *core, struct core_tenant *tenant, u64 now_ns);
/* After a plan: who has used up its ceiling waits, nobody else does. */
void core_budget_settle(struct core *core, struct core_tenant *tenant, u64 now_ns);
bool core_budget_allows(const struct core_tenant *tenant, u64 now_ns);
struct core_tenant *core_budget_take_ready(struct core *core, u64 now_ns);
struct core_tenant *core_budget_take_ranked(struct core *core,
					    bool (*may)(const struct core *core,
							const struct core_tenant *tenant));

/*
 * pick.c
 */

/**
 * core_pick() - what is on from now
 *
 * Makes a plan when one is due, ends the window that is over, opens the next.
 * Return: the image in the slot must be replaced.
 */
bool core_pick(struct core *core, u64 now_ns);

/* Used between the files of the core: its share or place changed; it goes away; the owner has run
 * its budget; when offline tenants leave for online. */
void core_pick_replanned(struct core *core, struct core_tenant *tenant, u64 now_ns);
void core_pick_forget(struct core *core, struct core_tenant *tenant, u64 now_ns);
bool core_window_used_up(const struct core *core);
/* The window that is on has no owner, and nothing calls for another. */
bool core_rests(const struct core *core);
u64 core_leave_ns(const struct core *core);
/* From when on an owner on the clock would miss its period's end if it waited any longer. */
u64 core_pressed_from_ns(const struct core *core, const struct core_tenant *owner);
/* The same for all owners with budget, one after the other. */
u64 core_ready_from_ns(const struct core *core);

/*
 * admit.c
 */

/**
 * core_admits() - is it in the image of the window that is on? Nobody's always is.
 */
bool core_admits(const struct core *core, const struct core_tsg *tsg);

/**
 * core_slice_ns() - the slice of a tenant's TSG in the window that is on
 */
u64 core_slice_ns(const struct core *core, const struct core_tsg *tsg);

/**
 * core_cut() - where the rotation of the window that is on is to go on
 */
void core_cut(const struct core *core, u64 now_ns, struct core_phase *out);

/**
 * core_cut_other() - beside online tenants: where the TSGs of the others are to go on
 */
void core_cut_other(const struct core *core, u64 now_ns, struct core_phase *out);

/**
 * core_taken() - the chip took the image: it starts with @first, @used_ns of its slice used
 */
void core_taken(struct core *core, u64 now_ns, struct core_tsg *first, u64 used_ns);

/* Used between the files of the core: the window closes. */
void core_cut_keep(struct core *core, u64 now_ns);

/*
 * next.c
 */

/**
 * core_next_ns() - when to look again: the next sample, the window's end, a refill, a plan
 */
u64 core_next_ns(struct core *core, u64 now_ns);

/**
 * core_samples() - is a look at @now_ns one of the ledger's? Not one that only asks whether a gap
 *                  of a window's owner goes on: it depends on what was seen, so it has no weight
 */
bool core_samples(const struct core *core, u64 now_ns);

/*
 * check.c: what is refused at configuration time
 */

enum core_field {
	CORE_FIELD_NONE,
	CORE_FIELD_POLICY,
	CORE_FIELD_CYCLE,
	CORE_FIELD_WEIGHT,
	CORE_FIELD_GUARANTEE,
	CORE_FIELD_CEILING,
	CORE_FIELD_CLASS,
	CORE_FIELD_WAKE,
	CORE_FIELD_HANG,
};

/**
 * struct core_refusal - why a plan is refused
 * @error: negative errno, what core_check() returned
 * @tenant: index into the settings given; U32_MAX = the card's own settings
 * @field: the guilty setting
 * @sum_ppm: with -ENOSPC and a guarantee, what they add up to with @tenant's
 * @bound: with -ENOSPC and a wait, the shortest that could be promised
 */
struct core_refusal {
	int error;
	u32 tenant;
	enum core_field field;
	u64 sum_ppm;
	struct core_wake_bound bound;
};

/**
 * core_check() - may this be set? Looks at settings only; changes nothing.
 * @settings: @count settings as they would be after the change, in the order of which the first
 *            one that goes over is named
 *
 * Return: 0; -ERANGE a number outside its range; -EOPNOTSUPP not enforced under this policy;
 * -ENOSPC guarantees over 100 %, or a wait that no plan can keep. @refusal (may be NULL) says
 * which.
 */
int core_check(const struct core_params *params, enum core_policy policy, u64 cycle_ns,
	       const struct core_settings *settings, u32 count, struct core_refusal *refusal);

/* Has it anything that may have work? */
static inline bool core_tenant_present(const struct core_tenant *tenant)
{
	return tenant->listed_count != 0;
}

static inline bool core_tenant_awake(const struct core_tenant *tenant)
{
	return tenant->awake_count != 0;
}

static inline bool core_tenant_busy(const struct core_tenant *tenant)
{
	return tenant->work_count != 0;
}

/* Is the rotation on until somebody waits who is not of it? */
static inline bool core_rotates_endlessly(const struct core *core)
{
	return core->window.kind == CORE_WINDOW_ROTATION && !core->window.owner;
}

/* A gap this long is one that a window's owner is waited for. */
static inline u64 core_hold_ns(const struct core *core)
{
	return 2 * core->params.switch_ns + core->params.takeoff_ns;
}

/* What a window costs beside its budget. */
static inline u64 core_window_cost_ns(const struct core *core)
{
	return core->params.switch_ns + core->params.takeoff_ns;
}

/* A server's held gaps may be as long as its run, not more: all others pay for them. */
static inline u64 core_gaps_end_ns(const struct core *core)
{
	return core->window.from_ns + core_window_cost_ns(core) + 2 * (u64)core->window.budget_ns;
}

/* Does everybody have windows on the card's clock? */
static inline bool core_on_clock(const struct core *core)
{
	return core->policy == CORE_FIXED_SHARE || core->policy == CORE_EQUAL_SHARE;
}

/* Does it share what the others leave? */
static inline bool core_in_group(const struct core_tenant *tenant)
{
	return tenant->place == CORE_ROTATES || tenant->place == CORE_RANKED;
}

/* From when on it takes the engine from those who take turns by lag. */
static inline u64 core_presses_from_ns(const struct core_tenant *tenant)
{
	return tenant->press_ns && tenant->waiting ? tenant->wait_from_ns + tenant->press_ns :
						     U64_MAX;
}

/* In whose turn is what runs in the window that is on? */
static inline struct core_tenant *core_server(struct core *core)
{
	return core->window.owner ? core->window.owner : &core->rotation;
}

/* Is what it runs the owner's of the window that is on? */
static inline bool core_owns_window(const struct core *core, const struct core_tenant *tenant)
{
	const struct core_tenant *owner = core->window.owner;

	return owner &&
	       (owner == tenant || (owner == &core->rotation && tenant->place == CORE_ROTATES));
}

#endif
