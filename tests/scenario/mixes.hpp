// SPDX-License-Identifier: GPL-2.0
//
// mixes.hpp - random mixes of tenants that always want the card, drawn from a seed, and what became
// of one: 2 ... 10 tenants, weights 1 ... 30 (log-uniform), work that is queued, launch-and-sync or
// cannot be cut, one TSG or two, some of them at a fixed share. Used by the tests and bench/mixes.
#ifndef QGPU_TESTS_SCENARIO_MIXES_HPP
#define QGPU_TESTS_SCENARIO_MIXES_HPP

#include <string>

#include "scenario/verdict.hpp"

namespace qgpu::scenario {

struct Member {
  enum Kind { kQueued, kSync, kUncuttable } kind = kQueued;
  uint32_t weight = 1;
  uint32_t fixed_percent = 0;  // of wall time, guarantee = ceiling; 0 = by weight
  uint64_t kernel_ns = kMilli, gap_ns = 0;
  unsigned tsgs = 1;
};
using Mix = std::vector<Member>;

struct MixOptions {
  bool fixed = true;
  uint64_t longest_uncuttable_ns = 50 * kMilli;
};

inline Mix drawMix(uint64_t seed, const MixOptions &options = {}) {
  std::mt19937_64 random(seed);
  const auto part = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto between = [&](double low, double high) {  // log-uniform
    return std::exp(std::log(low) + part() * std::log(high / low));
  };
  Mix mix(2 + random() % 9);
  uint32_t fixed_percent = 0;
  for (Member &m : mix) {
    m.weight = static_cast<uint32_t>(between(1, 30.999));
    const double kind = part();
    if (kind < 0.55) {
      m.kind = Member::kQueued;
      m.kernel_ns = static_cast<uint64_t>(between(50e3, 20e6));
    } else if (kind < 0.85) {
      m.kind = Member::kSync;
      m.kernel_ns = static_cast<uint64_t>(between(200e3, 5e6));
      m.gap_ns = static_cast<uint64_t>(between(8e3, 50e3));
    } else {
      m.kind = Member::kUncuttable;
      m.kernel_ns =
          static_cast<uint64_t>(between(1e6, static_cast<double>(options.longest_uncuttable_ns)));
    }
    if (m.kind != Member::kUncuttable && part() < 0.15) m.tsgs = 2;
    const bool fixed = part() < 0.2;
    const auto percent = static_cast<uint32_t>(1 + part() * 24);
    if (options.fixed && fixed && fixed_percent + percent <= 50) {
      m.fixed_percent = percent;
      fixed_percent += percent;
    }
  }
  return mix;
}

// "q12/1ms s3/0.7ms+20us u5/30ms Fq20%/1ms q4/1msx2"
inline std::string textOf(const Mix &mix) {
  std::string text;
  for (const Member &m : mix) {
    char part[96], gap[24] = "";
    if (m.kind == Member::kSync)
      std::snprintf(gap, sizeof(gap), "+%uus", static_cast<unsigned>(m.gap_ns / kMicro));
    std::snprintf(part, sizeof(part), "%s%s%c%u%s/%.2gms%s%s", text.empty() ? "" : " ",
                  m.fixed_percent ? "F" : "", "qsu"[m.kind],
                  m.fixed_percent ? m.fixed_percent : m.weight, m.fixed_percent ? "%" : "",
                  static_cast<double>(m.kernel_ns) / 1e6, gap, m.tsgs > 1 ? "x2" : "");
    text += part;
  }
  return text;
}

struct MixResult {
  double error_pp = 0;   // the worst of all: of what the weights share, or fixed ones of wall time
  size_t member = 0;     // whose
  double ledger_pp = 0;  // how much of it the ledger does not see: it billed that much less
  double delivered = 0;
  // The longest time that one who shares by weight and whose work can be cut did not run.
  uint64_t wait_ns = 0;
  uint64_t tails_ns = 0;  // sum of the kernels that cannot be cut
};

inline std::vector<double> billedNs(World &world) {
  std::vector<double> ns;
  for (size_t i = 0; i < world.tenantCount(); i++)
    ns.push_back(static_cast<double>(world.counters(world.tenant(i)).run_ns));
  return ns;
}

// Run it for 30 s and judge the last 25.
inline MixResult runMix(const Mix &mix, uint64_t seed) {
  World world({.seed = seed});
  MixResult result;
  double weights = 0;
  for (const Member &m : mix) {
    auto &tenant =
        world.addTenant(m.fixed_percent ? fixedAt(m.fixed_percent * 10'000, m.tsgs)
                                        : TenantOptions{.weight = 100 * m.weight, .tsgs = m.tsgs});
    const fakes::Kernel kernel = {
        .duration_ns = m.kernel_ns,
        .preemption = m.kind == Member::kUncuttable ? uint32_t{CHIP_WFI} : uint32_t{CHIP_CILP}};
    for (unsigned i = 0; i < m.tsgs; i++)
      if (m.kind == Member::kSync)
        tenant.channel(i).syncLaunch(kernel, m.gap_ns);
      else
        tenant.channel(i).saturate(kernel, 2);
    if (!m.fixed_percent) weights += m.weight;
    if (m.kind == Member::kUncuttable) result.tails_ns += m.kernel_ns;
  }
  world.start();
  world.runFor(5 * kSecond);
  const uint64_t from = world.nowNs();
  const std::vector<double> billed_before = billedNs(world);
  world.runFor(25 * kSecond);
  const std::vector<double> billed_after = billedNs(world);
  const Verdict verdict(world, from, world.nowNs());
  result.delivered = verdict.delivered();
  double ran_ns = 0, billed_ns = 0;
  for (size_t i = 0; i < mix.size(); i++) {
    if (mix[i].fixed_percent) continue;
    ran_ns += static_cast<double>(verdict.runNs(i));
    billed_ns += billed_after[i] - billed_before[i];
  }
  for (size_t i = 0; i < mix.size(); i++) {
    const Member &m = mix[i];
    const bool fixed = m.fixed_percent;
    const double share = fixed ? m.fixed_percent / 100.0 : m.weight / weights;
    const double ran = static_cast<double>(verdict.runNs(i)) / (fixed ? 25e9 : ran_ns);
    if (std::abs(ran - share) > std::abs(result.error_pp) / 100) {
      result.error_pp = 100 * (ran - share);
      result.member = i;
      result.ledger_pp =
          100 * (ran - (billed_after[i] - billed_before[i]) / (fixed ? 25e9 : billed_ns));
    }
    if (!fixed && m.kind != Member::kUncuttable)
      result.wait_ns = std::max(result.wait_ns, verdict.longestGapNs(i));
  }
  return result;
}

}  // namespace qgpu::scenario

#endif
