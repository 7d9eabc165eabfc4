// lrpc: look at what a nameserver knows, and run programs sealed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "commands.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Lightweight Remote Procedure Call: look at what a nameserver knows, run programs sealed", "lrpc");
  app.set_version_flag("--version", "lrpc " LRPC_VERSION);
  app.require_subcommand(1);
  std::string nameserver;
  app.add_option("--nameserver", nameserver,
                 "The nameserver's socket (default: $LRPC_SOCKET, else $XDG_RUNTIME_DIR/lrpc/lrpcd.sock, else "
                 "/run/lrpc/lrpcd.sock)");
  int status = 0;

  app.add_subcommand("list", "List the names that are exported")->callback([&] {
    status = lrpc::tools::list_names(nameserver);
  });

  std::string name;
  auto* describe = app.add_subcommand("describe", "Print the declaration of the interface behind a name");
  describe->add_option("NAME", name, "The exported name")->required();
  describe->callback([&] { status = lrpc::tools::describe_name(nameserver, name); });

  lrpc::tools::RunOptions run_options;
  bool sealed = false;
  auto* sealed_run = app.add_subcommand("run", "Run a program whose only way out is the call to one server");
  sealed_run->add_flag("--sealed", sealed, "Under a filter that refuses every other way out")->required();
  sealed_run->add_option("--bind", run_options.name, "What it is bound to, and imports: an exported name")->required();
  sealed_run->add_option("--timeout", run_options.timeout_seconds, "Seconds to wait for the name; negative: for ever");
  sealed_run
      ->add_option("--allow", run_options.allow, "One more system call that it may make (may be repeated; a hole each)")
      ->expected(1)
      ->take_all();
  sealed_run->add_flag("--kill", run_options.kill, "Kill it at the first refused system call");
  sealed_run
      ->add_option("PROGRAM", run_options.command, "The program, linked with -static-pie, and its arguments, behind --")
      ->required();
  sealed_run->callback([&] {
    run_options.nameserver = nameserver;
    status = lrpc::tools::run_sealed(run_options);
  });

  CLI11_PARSE(app, argc, argv);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lrpc: %s\n", error.what());
    return lrpc::tools::kFailed;
  }
}
