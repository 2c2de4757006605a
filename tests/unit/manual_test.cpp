// SPDX-License-Identifier: GPL-2.0
// Man page and completions against the command line that is parsed.
#include "manual.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "fakes/temp_folder.hpp"
#include "man_page.hpp"
#include "program.hpp"
#include "verb.hpp"

namespace qgpu::ctl {
namespace manual_test {

class Manual : public ::testing::Test {
 protected:
  Manual() { defineProgram(app, context); }

  // Calls see(path, verb) for all that people are shown.
  template <class See>
  void eachVerb(const CLI::App &of, const std::string &path, See see) {
    for (const CLI::App *verb : of.get_subcommands([](const CLI::App *) { return true; })) {
      if (verb->get_group().empty()) continue;
      const std::string own = path + (path.empty() ? "" : " ") + verb->get_name();
      see(own, *verb);
      eachVerb(*verb, own, see);
    }
  }

  CLI::App app;
  Context context;
};

TEST_F(Manual, EveryVerbHasAnExampleInItsHelp) {
  eachVerb(app, "", [](const std::string &path, const CLI::App &verb) {
    if (path == "help" || path == "tenant list") return;
    EXPECT_NE(verb.get_footer().find("example: qgpuctl " + path.substr(0, path.find(' '))),
              std::string::npos)
        << path;
  });
}

TEST_F(Manual, EveryVerbAndOptionIsInAllOfThem) {
  const std::string page = manPage(app), bash = bashCompletion(app), zsh = zshCompletion(app),
                    fish = fishCompletion(app);
  eachVerb(app, "", [&](const std::string &path, const CLI::App &verb) {
    const auto in = [&](const std::string &text, const std::string &what) {
      EXPECT_NE(text.find(what), std::string::npos) << path << ": " << what;
    };
    in(bash, "\" " + path + "\") words=");
    in(zsh, "(\" " + path + "\") compadd");
    if (path != "help") in(page, ".SS \"" + path.substr(0, path.find(' ')));
    in(fish, "-a " + verb.get_name() + " ");
    for (const CLI::Option *option : verb.get_options([](const CLI::Option *) { return true; }))
      for (const std::string &name : option->get_lnames()) {
        if (option->get_group().empty()) {
          EXPECT_EQ(bash.find("--" + name), std::string::npos) << name;
          EXPECT_EQ(zsh.find("--" + name), std::string::npos) << name;
          EXPECT_EQ(fish.find("-l " + name), std::string::npos) << name;
          continue;
        }
        in(bash, "--" + name);
        in(zsh, "--" + name);
        in(fish, "-l " + name);
      }
  });
  EXPECT_EQ(page.find("manual FOLDER"), std::string::npos);
}

TEST_F(Manual, EveryExitCodeIsUnderExitStatus) {
  const std::string page = manPage(app), head = ".SH \"EXIT STATUS\"";
  const size_t begin = page.find(head), end = page.find(".SH FILES");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin + head.size(), end - begin - head.size());
  for (int code : {0, 1, 2, 3, 4, 5, 6, 125, 126, 127})
    EXPECT_NE(section.find(std::to_string(code) + " "), std::string::npos) << code;
  EXPECT_EQ(section.find("starved"), std::string::npos);
  EXPECT_LT(page.find("Who is starved"), page.find(".SH VERBS"));
}

// Every option that people are shown, and the exit codes.
TEST(DaemonManual, PageSaysWhatIsParsed) {
  CLI::App daemon;
  ProgramOptions options;
  qgpu::defineProgram(daemon, options);
  const std::string page = programManPage(daemon);
  EXPECT_EQ(page.find(".TH QGPUD 8 "), 0u);
  for (const CLI::Option *option : optionsOf(daemon))
    for (const std::string &name : option->get_lnames()) {
      const bool is_shown = name != "help" && name != "man-page";
      EXPECT_EQ(page.find("\\-\\-" + manEscaped(name)) != std::string::npos, is_shown) << name;
    }
  for (const char *part :
       {".SH NAME", ".SH SYNOPSIS", ".SH \"EXIT STATUS\"", "SIGHUP", "4 another"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST_F(Manual, ShellsUnderstandTheirCompletions) {
  fakes::TempFolder folder;
  std::ofstream(folder / "bash")
      << bashCompletion(app)
      << "COMP_WORDS=(qgpuctl tenant s); COMP_CWORD=2; _qgpuctl\n"
         "[[ ${COMPREPLY[*]} == 'show set' ]]\n"
         "COMP_WORDS=(qgpuctl tenant set web --wei); COMP_CWORD=4; _qgpuctl\n"
         "[[ ${COMPREPLY[*]} == --weight ]]\n"
         "COMP_WORDS=(qgpuctl help tra); COMP_CWORD=2; _qgpuctl\n"
         "[[ ${COMPREPLY[*]} == trace ]]\n"
         "COMP_WORDS=(qgpuctl tenant set web --class o); COMP_CWORD=5; _qgpuctl\n"
         "[[ ${COMPREPLY[*]} == 'online offline' ]]\n"
         "COMP_WORDS=(qgpuctl policy b); COMP_CWORD=2; _qgpuctl || true\n"
         "[[ ${COMPREPLY[*]} == '' ]]\n"
         "COMP_WORDS=(qgpuctl policy 0 b); COMP_CWORD=3; _qgpuctl\n"
         "[[ ${COMPREPLY[*]} == 'best-effort burst-share' ]]\n";
  EXPECT_EQ(std::system(("bash -e " + (folder / "bash")).c_str()), 0);
  for (const auto &[shell, text] :
       {std::pair{"zsh", zshCompletion(app)}, std::pair{"fish", fishCompletion(app)}}) {
    if (std::system((std::string("command -v ") + shell + " >/dev/null").c_str()) != 0) continue;
    std::ofstream(folder / shell) << text;
    EXPECT_EQ(std::system((std::string(shell) + " -n " + (folder / shell)).c_str()), 0) << shell;
  }
}

}  // namespace manual_test
}  // namespace qgpu::ctl
