// SPDX-License-Identifier: GPL-2.0
// What `qgpuctl top` shows, as a model: statuses and keys in, lines of styled text out. Knows no
// terminal and no clock, so a test draws it into a buffer of any size.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qgpu::ctl {

// What a piece of text means; told by a letter or a word as well, never by colour alone.
enum class TopStyle { kPlain, kTitle, kHead, kGot, kTrouble, kFaint };

struct TopSpan {
  TopStyle style = TopStyle::kPlain;
  std::string text;
};
using TopLine = std::vector<TopSpan>;
std::string plainText(const TopLine &line);

enum class TopKey { kOther, kUp, kDown, kPageUp, kPageDown };

// Pids of each tenant by name, of each card by index.
using TopPids = std::map<uint32_t, std::map<std::string, std::vector<uint32_t>>>;

class TopView {
 public:
  // While paused a status is dropped.
  void update(nlohmann::json status, TopPids pids = {});
  // Why there is no news; empty: there is.
  void setTrouble(const std::string &sentence) { trouble_ = sentence; }

  // False: it is to end.
  bool press(char key);
  void press(TopKey key);

  // Exactly `height` lines of at most `width` characters each.
  std::vector<TopLine> draw(size_t width, size_t height);
  // All of it, however long: for a file or a pipe.
  std::vector<TopLine> drawAll(size_t width) const;

 private:
  enum class Sort { kGot, kEntitled, kWait, kName };
  TopLine titleLine() const;
  std::vector<TopLine> body(size_t width) const;
  void addCard(std::vector<TopLine> &lines, const nlohmann::json &card, size_t width) const;
  TopLine tenantLine(const nlohmann::json &tenant, uint32_t card, size_t bar_width) const;
  std::vector<const nlohmann::json *> sorted(const nlohmann::json &tenants) const;
  void cycleCard();

  nlohmann::json status_;
  TopPids pids_;
  std::string trouble_;
  Sort sort_ = Sort::kGot;
  int64_t card_ = -1;  // -1: all
  bool paused_ = false;
  bool help_ = false;
  size_t scroll_ = 0, page_ = 1;
};

}  // namespace qgpu::ctl
