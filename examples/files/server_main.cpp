// lrpc-files-server: exports a directory until SIGINT or SIGTERM.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "file_service.h"
#include "lrpc/command_line.h"

int main(int argc, char** argv) {
  std::string directory;
  std::string name = "files";
  lrpc::ServerOptions options;
  bool read_only = false;
  lrpc::command_line::Program program("Exports a directory to other domains under a name.");
  program.option("directory", directory, "The directory to export").required();
  program.option("--name", name, "The name to export it under").show_default();
  program.option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  program.flag("--read-only", read_only, "Refuse every change");
  if (const auto status = program.parse(argc, argv)) return *status;

  auto confined = files::ConfinedDirectory::open(directory);
  if (!confined) {
    fmt::print(stderr, "lrpc-files-server: {}\n", confined.error().message());
    return 1;
  }
  // Block them before any thread exists, so that only sigwait() below receives them.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  files::FileService service(*std::move(confined), read_only);
  lrpc::Server server(options);
  if (auto exported = Files::export_to(server, name, service); !exported) {
    fmt::print(stderr, "lrpc-files-server: cannot export '{}': {}\n", name, exported.error().message());
    return 1;
  }
  fmt::print("exporting {} as '{}'\n", directory, name);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop, &signal);
  return 0;
}
