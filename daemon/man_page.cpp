// SPDX-License-Identifier: GPL-2.0
#include "man_page.hpp"

#include <algorithm>

namespace qgpu {

namespace {

std::string optionText(const CLI::Option &option) {
  if (option.get_positional()) return ".TP\n\\fI" + manEscaped(option.get_name(true)) + "\\fR\n";
  std::string names;
  for (const std::string &name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string &name : option.get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  std::string out = ".TP\n\\fB" + manEscaped(names) + "\\fR";
  if (option.get_items_expected_max() > 0)
    out += " \\fI" + manEscaped(option.get_type_name()) + "\\fR";
  return out + "\n";
}

}  // namespace

std::string manEscaped(const std::string &text) {
  std::string out;
  for (char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n'))
      (out += "\\&") += c;
    else
      out += c;
  }
  return out;
}

std::string manHead(const std::string &name, int section, const std::string &what) {
  std::string title = name;
  std::transform(title.begin(), title.end(), title.begin(), ::toupper);
  return ".TH " + manEscaped(title) + " " + std::to_string(section) + " \"\" \"qgpu\"" +
         "\n.SH NAME\n" + manEscaped(name) + " \\- " + manEscaped(what) + "\n";
}

std::vector<const CLI::Option *> optionsOf(const CLI::App &app) {
  return app.get_options([](const CLI::Option *) { return true; });
}

std::string manOptions(const CLI::App &app, const std::vector<std::string> &but) {
  std::string out;
  for (const CLI::Option *option : optionsOf(app)) {
    const bool is_left_out = std::any_of(
        but.begin(), but.end(), [&](const std::string &name) { return option->check_lname(name); });
    if (is_left_out || option->get_group().empty()) continue;
    out += optionText(*option) + manEscaped(option->get_description());
    if (!option->get_default_str().empty())
      out += " (" + manEscaped(option->get_default_str()) + ")";
    out += "\n";
  }
  return out;
}

std::string manPageOf(const CLI::App &app, const std::string &name, int section,
                      const std::string &description, const std::string &more) {
  const std::string begin = name + ": ";
  std::string what = app.get_description();
  if (what.starts_with(begin)) what.erase(0, begin.size());
  return manHead(name, section, what) + ".SH SYNOPSIS\n\\fB" + manEscaped(name) +
         "\\fR [\\fIOPTION\\fR...]\n.SH DESCRIPTION\n" + manEscaped(description) +
         "\n.SH OPTIONS\n" + manOptions(app) + more + ".SH \"EXIT STATUS\"\n.nf\n" +
         manEscaped(app.get_footer()) + "\n.fi\n";
}

}  // namespace qgpu
