// lrpc: look at what a nameserver knows, and run programs sealed.
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "lrpc/command_line.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"

namespace {

int run(int argc, char** argv) {
  lrpc::command_line::Program program(
      "Lightweight Remote Procedure Call: look at what a nameserver knows, run programs sealed", "lrpc");
  program.version("lrpc " LRPC_VERSION);
  program.require_subcommand();
  std::string nameserver;
  program
      .option("--nameserver", nameserver,
              std::string("The nameserver's socket (default: ") + lrpc::shim::kWhereSocketsAre + ")")
      .help_text("SOCKET")
      .not_empty();
  int status = 0;

  program.subcommand("list", "List the names that are exported").on_use([&] {
    status = lrpc::tools::list_names(nameserver);
  });

  std::string name;
  const auto describe = program.subcommand("describe", "Print the declaration of the interface behind a name");
  describe.option("NAME", name, "The exported name").required();
  describe.on_use([&] { status = lrpc::tools::describe_name(nameserver, name); });

  program.subcommand("groups", "List your bindings to groups of hosts, and which members are bound").on_use([&] {
    status = lrpc::tools::list_groups(nameserver);
  });

  lrpc::SealedOptions run_options;
  std::string timeout = "0";
  std::vector<std::string> command;
  bool sealed = false;
  const auto sealed_run = program.subcommand("run", "Run a program whose only way out is the call to one server");
  sealed_run.flag("--sealed", sealed, "Run it under a filter that refuses every other system call").required();
  sealed_run.option("--bind", run_options.name, "The exported name of the server; the program imports it (required)")
      .help_text("NAME")
      .required();
  sealed_run.option("--timeout", timeout, "Seconds to wait for the name, or no-limit (default: 0)")
      .non_negative_or(lrpc::shim::kNoLimitWord)
      .help_text("SECONDS|no-limit");
  sealed_run
      .option("--allow", run_options.allow,
              "A further system call that it may make, which weakens the sealing (may be repeated)")
      .help_text("SYSCALL");
  sealed_run
      .option("--env", run_options.environment,
              "NAME: pass this variable on; NAME=VALUE: set it (may be repeated; always: PATH, HOME, LANG, LC_*, TERM, "
              "TZ)")
      .help_text("NAME[=VALUE]");
  sealed_run.flag("--kill", run_options.kill_on_refusal, "Kill the program at the first refused system call");
  sealed_run.option("PROGRAM", command, "The program, linked with -static-pie, and its arguments, behind --")
      .required();
  sealed_run.on_use([&] {
    run_options.nameserver = nameserver;
    status = lrpc::tools::run_sealed(std::move(run_options), timeout, command);
  });

  if (const auto ended = program.parse(argc, argv))
    return *ended != 0 && sealed_run.parsed() ? lrpc::tools::kNotStarted : *ended;
  return program.printed(status);
}

}  // namespace

int main(int argc, char** argv) {
  lrpc::shim::open_standard_streams();  // else a socket could get descriptor 1 or 2, and our output
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lrpc: %s\n", error.what());
    return lrpc::tools::kFailed;
  }
}
