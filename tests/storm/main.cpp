// lrpc-storm: dozens of domains that call one another, and a conductor that kills them. `lrpc-bench storm` runs it.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>

#include "conductor.h"
#include "lrpc/command_line.h"

int main(int argc, char** argv) {
  using lrpc::storm::Fault;
  lrpc::command_line::Program program(
      "Domains that call one another while they are killed at random and at each step of the call path",
      "lrpc-bench storm");
  lrpc::storm::StormOptions options;
  options.lrpcd = LRPCD;
  options.netd = LRPC_NETD;
  options.seed = static_cast<std::uint64_t>(std::time(nullptr));
  bool no_debugger = false;
  program.option("--minutes", options.minutes, "Minutes to run").positive().show_default();
  program.option("--kills", options.kills, "End earlier, when this many processes have been killed");
  program.option("--least-kills", options.least_kills,
                 "Go on until this many have been killed; fail if that takes six times the minutes");
  program.option("--seed", options.seed, "The seed of all random choices (default: another one each time)");
  program
      .option("--round", options.round_seconds,
              "Seconds between two checks of everything, at which nothing is under way")
      .positive()
      .show_default();
  program.option("--clients", options.clients, "Client processes at a time").in_range(1, 40).show_default();
  program.option("--servers", options.servers, "Server processes at a time").in_range(1, 40).show_default();
  program.flag("--no-debugger", no_debugger, "Kill at random only, not at the steps of the call path");
  program.flag("--must-hit", options.must_hit, "Fail if a step is never reached, as storms of a minute or more do");
  program.flag("--network", options.network,
               "Two machines, joined by two lrpc-netds over the loopback interface, which are killed, too");
  program.choice("--fault", options.fault, "Do something wrong on purpose; the storm must find it",
                 {{"none", Fault::none},
                  {"wrong-answer", Fault::wrong_answer},
                  {"executed-twice", Fault::executed_twice},
                  {"kept-binding", Fault::kept_binding},
                  {"hang", Fault::hang},
                  {"kept-descriptor", Fault::kept_descriptor},
                  {"lrpcd-kept-descriptor", Fault::lrpcd_kept_descriptor},
                  {"leaked-account", Fault::leaked_account},
                  {"shut-out", Fault::shut_out},
                  {"lost-astack", Fault::lost_astack},
                  {"kept-growth", Fault::kept_growth},
                  {"lost-tell", Fault::lost_tell},
                  {"step-not-hit", Fault::step_not_hit},
                  {"kept-path", Fault::kept_path},
                  {"netd-hang", Fault::netd_hang},
                  {"netd-lost-calls", Fault::netd_lost_calls},
                  {"netd-lost-name", Fault::netd_lost_name}});
  if (const auto status = program.parse(argc, argv)) return *status;
  options.debugger = !no_debugger;
  signal(SIGPIPE, SIG_IGN);

  std::string directory = (std::filesystem::temp_directory_path() / "lrpc-storm-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    std::perror("lrpc-storm: mkdtemp");
    return 2;
  }
  options.directory = directory;
  options.repeat = "./do bench storm --seed " + std::to_string(options.seed);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--seed") {
      ++i;
    } else if (!argument.starts_with("--seed=")) {
      options.repeat += " " + argument;
    }
  }
  std::printf("The storm: %u clients and %u servers at a time, seed %llu.\nTo repeat: %s\n", options.clients,
              options.servers, static_cast<unsigned long long>(options.seed), options.repeat.c_str());
  std::fflush(stdout);
  const std::optional<bool> good = lrpc::storm::Conductor(options).run();
  std::error_code ignored;
  if (good.value_or(true)) std::filesystem::remove_all(directory, ignored);
  return !good ? 77 : *good ? 0 : 1;
}
