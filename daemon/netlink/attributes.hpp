// SPDX-License-Identifier: GPL-2.0
// Attributes as they lie in a message, checked before they are believed.
#pragma once

#include <linux/netlink.h>
#include <netlink/attr.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace qgpu::netlink {

// Attributes of one nest, by type; lengths are checked when they are read.
class Attributes {
 public:
  explicit Attributes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  // Calls visit(type, payload) for each attribute; false when the bytes are not well formed.
  template <class Visit>
  bool each(Visit visit) const {
    std::span<const uint8_t> rest = bytes_;
    while (rest.size() >= NLA_HDRLEN) {
      nlattr head;
      memcpy(&head, rest.data(), sizeof(head));
      if (head.nla_len < NLA_HDRLEN || head.nla_len > rest.size()) return false;
      visit(head.nla_type & NLA_TYPE_MASK, rest.subspan(NLA_HDRLEN, head.nla_len - NLA_HDRLEN));
      rest = rest.subspan(std::min<size_t>(NLA_ALIGN(head.nla_len), rest.size()));
    }
    return true;
  }

 private:
  std::span<const uint8_t> bytes_;
};

}  // namespace qgpu::netlink
