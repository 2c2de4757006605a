// SPDX-License-Identifier: GPL-2.0
#include "manual.hpp"

#include <fstream>
#include <memory>
#include <vector>

#include "man_page.hpp"
#include "names.hpp"
#include "screen.hpp"
#include "verb.hpp"

namespace qgpu::ctl {

namespace {

// Tenants as the daemon knows them, for the words that name one; the same in every shell.
constexpr const char *kTenants =
    "qgpuctl tenant list 2>/dev/null | awk 'NR > 1 { sub(/\\*$/, \"\", $1); print $1 }' | sort -u";

// Those of no group are for whoever builds packages.
bool isShown(const CLI::App *app) { return !app->get_group().empty(); }

// A verb with the words that lead to it: "tenant set".
struct VerbPath {
  std::string path;
  const CLI::App *app;
};

void collect(const CLI::App &app, const std::string &path, std::vector<VerbPath> &verbs) {
  for (const CLI::App *verb : app.get_subcommands(isShown)) {
    const std::string own = path.empty() ? verb->get_name() : path + " " + verb->get_name();
    verbs.push_back({own, verb});
    collect(*verb, own, verbs);
  }
}

std::vector<VerbPath> verbsOf(const CLI::App &app) {
  std::vector<VerbPath> verbs;
  collect(app, "", verbs);
  return verbs;
}

bool namesATenant(const CLI::Option &option) {
  const std::string name = option.get_name(true);
  return name == "NAME" || name == "TENANT" || option.check_lname("tenant");
}

// Long names of options that people are shown.
std::vector<std::string> longNamesOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option : optionsOf(app))
    if (!option->get_group().empty())
      for (const std::string &name : option->get_lnames()) names.push_back(name);
  return names;
}

bool wantsPolicy(const CLI::App &app) { return app.get_name() == "policy"; }

// Of the enumeration, until it has no name for a number.
std::string wordsOf(std::string (*name)(uint32_t)) {
  std::string out;
  for (uint32_t i = 0; !name(i).starts_with("unknown"); ++i) out += (i ? " " : "") + name(i);
  return out;
}

// All that may stand behind these words: verbs, then long options.
std::string wordsAfter(const CLI::App &app) {
  std::string out;
  const auto add = [&](const std::string &word) { out += (out.empty() ? "" : " ") + word; };
  for (const CLI::App *verb : app.get_subcommands(isShown)) add(verb->get_name());
  for (const std::string &name : longNamesOf(app)) add("--" + name);
  // Help is of a verb.
  if (app.get_name() == "help")
    for (const CLI::App *verb : app.get_parent()->get_subcommands(isShown)) add(verb->get_name());
  return out;
}

bool wantsTenant(const CLI::App &app) {
  for (const CLI::Option *option : optionsOf(app))
    if (option->get_positional() && namesATenant(*option)) return true;
  return false;
}

std::string synopsisOf(const VerbPath &verb) {
  std::string out = verb.path;
  for (const CLI::Option *option : optionsOf(*verb.app))
    if (option->get_positional()) out += " " + option->get_name(true);
  return out;
}

}  // namespace

std::string manPage(const CLI::App &app) {
  const std::vector<std::string> but = {"help", "socket"};
  std::string out =
      manHead("qgpuctl", 1, "show and change how this machine's GPUs are shared") +
      ".SH SYNOPSIS\n\\fBqgpuctl\\fR [\\fB\\-\\-socket\\fR \\fIPATH\\fR] \\fIVERB\\fR "
      "[...]\n.SH DESCRIPTION\n" +
      manEscaped(app.get_description()) + "\n.PP\n" + manEscaped(kWhoIsStarvedText) +
      "\n.SH VERBS\n";
  for (const VerbPath &verb : verbsOf(app)) {
    if (verb.app->get_name() == "help") continue;
    out += ".SS \"" + manEscaped(synopsisOf(verb)) + "\"\n" +
           manEscaped(verb.app->get_description()) + "\n" + manOptions(*verb.app, but);
    if (!verb.app->get_footer().empty())
      out += ".PP\n.nf\n" + manEscaped(verb.app->get_footer()) + "\n.fi\n";
  }
  return out +
         ".SH OPTIONS\n.TP\n\\fB\\-\\-socket\\fR \\fIPATH\\fR\nqgpud's control socket, before or "
         "behind the verb\n" +
         manOptions(app, but) + ".SH \"EXIT STATUS\"\n.nf\n" + manEscaped(kExitCodesText) +
         "\n.fi\n.SH FILES\n/etc/qgpu/qgpud.toml, /run/qgpu/qgpud.sock\n"
         ".SH \"SEE ALSO\"\n\\fBqgpud\\fR(8)\n";
}

std::string bashCompletion(const CLI::App &app) {
  std::string out =
      "# bash completion for qgpuctl; made from its own definition\n"
      "_qgpuctl()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "\tlocal path= words= tenants= i\n"
      "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
      "\t\tcase \"$path ${COMP_WORDS[i]}\" in\n";
  for (const VerbPath &verb : verbsOf(app))
    out += "\t\t\" " + verb.path + "\") path=\" " + verb.path + "\" ;;\n";
  out += "\t\tesac\n\tdone\n\tcase \"$path\" in\n\t\"\") words=\"" + wordsAfter(app) + "\" ;;\n";
  for (const VerbPath &verb : verbsOf(app))
    out += "\t\" " + verb.path + "\") words=\"" + wordsAfter(*verb.app) + "\"" +
           (wantsTenant(*verb.app) ? "; tenants=1" : "") +
           (wantsPolicy(*verb.app)
                ? "; [[ $prev == policy ]] || words+=\" " + wordsOf(policyName) + "\""
                : "") +
           " ;;\n";
  out +=
      "\tesac\n"
      "\tcase $prev in\n\t--tenant|--prove) words=; tenants=1 ;;\n\t--class) words=\"" +
      wordsOf(className) +
      "\" ;;\n"
      "\t--out|--socket) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n\tesac\n"
      "\t[[ -n $tenants && $cur != -* ]] && words+=\" $(" +
      std::string(kTenants) +
      ")\"\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -F _qgpuctl qgpuctl\n";
  return out;
}

std::string zshCompletion(const CLI::App &app) {
  std::string out =
      "#compdef qgpuctl\n# made from qgpuctl's own definition\nlocal path_= word\n"
      "for word in ${words[2,CURRENT-1]}; do\n\tcase \"$path_ $word\" in\n";
  for (const VerbPath &verb : verbsOf(app))
    out += "\t\" " + verb.path + "\") path_=\" " + verb.path + "\" ;;\n";
  out +=
      "\tesac\ndone\n"
      "case ${words[CURRENT-1]} in\n(--out|--socket) _files; return ;;\n(--class) compadd -- " +
      wordsOf(className) +
      "; return ;;\n"
      "(--tenant|--prove) compadd -- ${(f)\"$(" +
      std::string(kTenants) + ")\"}; return ;;\nesac\ncase \"$path_\" in\n(\"\") compadd -- " +
      wordsAfter(app) + " ;;\n";
  for (const VerbPath &verb : verbsOf(app))
    out += "(\" " + verb.path + "\") compadd -- " + wordsAfter(*verb.app) +
           (wantsTenant(*verb.app) ? " ${(f)\"$(" + std::string(kTenants) + ")\"}" : "") +
           (wantsPolicy(*verb.app)
                ? "; [[ ${words[CURRENT-1]} == policy ]] || compadd -- " + wordsOf(policyName)
                : "") +
           " ;;\n";
  return out + "esac\n";
}

std::string fishCompletion(const CLI::App &app) {
  std::string out =
      "# fish completion for qgpuctl; made from its own definition\n"
      "complete -c qgpuctl -f\n";
  for (const CLI::App *verb : app.get_subcommands(isShown))
    out += "complete -c qgpuctl -n __fish_use_subcommand -a " + verb->get_name() + " -d " +
           shellQuoted(verb->get_description()) + "\n";
  for (const VerbPath &verb : verbsOf(app)) {
    std::string condition = "__fish_seen_subcommand_from " + verb.path;
    if (const size_t blank = verb.path.find(' '); blank != std::string::npos)
      condition = "__fish_seen_subcommand_from " + verb.path.substr(0, blank) +
                  "; and __fish_seen_subcommand_from " + verb.path.substr(blank + 1);
    const std::string head = "complete -c qgpuctl -n " + shellQuoted(condition) + " ";
    for (const CLI::App *part : verb.app->get_subcommands(isShown))
      out += head + "-a " + part->get_name() + " -d " + shellQuoted(part->get_description()) + "\n";
    for (const std::string &name : longNamesOf(*verb.app)) {
      const CLI::Option *option = verb.app->get_option("--" + name);
      out += head + "-l " + name + (option->get_items_expected_max() > 0 ? " -r" : "") +
             (name == "class" ? " -a " + shellQuoted(wordsOf(className)) : "") + " -d " +
             shellQuoted(option->get_description()) + "\n";
    }
    if (wantsPolicy(*verb.app)) out += head + "-a " + shellQuoted(wordsOf(policyName)) + "\n";
    if (wantsTenant(*verb.app))
      out += head + "-a " + shellQuoted("(" + std::string(kTenants) + ")") + "\n";
  }
  return out;
}

namespace {

Result<void> writeManual(const CLI::App &app, const std::string &folder) {
  const std::pair<const char *, std::string> files[] = {
      {"/qgpuctl.1", manPage(app)},
      {"/qgpuctl", bashCompletion(app)},
      {"/_qgpuctl", zshCompletion(app)},
      {"/qgpuctl.fish", fishCompletion(app)},
  };
  for (const auto &[name, text] : files) {
    std::ofstream file(folder + name);
    file << text;
    file.close();
    if (!file) return Error{EIO, "cannot be written", folder + name};
  }
  return {};
}

}  // namespace

void addManual(CLI::App &app, Context &context) {
  auto *verb = app.add_subcommand("manual", "writes man page and completions into a folder");
  verb->group("");
  auto folder = std::make_shared<std::string>();
  verb->add_option("FOLDER", *folder, "where")->required();
  verb->footer("example: qgpuctl manual .");
  verb->callback([&app, &context, folder] {
    if (auto written = writeManual(app, *folder); !written)
      context.exit_code = complain(written.error());
  });
}

}  // namespace qgpu::ctl
