// SPDX-License-Identifier: GPL-2.0
// quantile.hpp - the value below which a part @q of @v lies; 0 for an empty @v. Reorders @v.
#ifndef QGPU_BENCH_QUANTILE_HPP
#define QGPU_BENCH_QUANTILE_HPP

#include <algorithm>
#include <cstddef>
#include <vector>

namespace qgpu::bench {

inline double quantile(std::vector<double> &v, double q) {
  if (v.empty()) return 0;
  const size_t at = std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())));
  std::nth_element(v.begin(), v.begin() + static_cast<long>(at), v.end());
  return v[at];
}

}  // namespace qgpu::bench

#endif
