// lrpc-files-server: exports a directory until it is told to stop (SIGINT, SIGTERM).
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <string>

#include "file_service.h"

int main(int argc, char** argv) {
  std::string directory;
  std::string name = "files";
  lrpc::ServerOptions options;
  bool read_only = false;
  CLI::App app{"Exports a directory to other domains under a name."};
  app.add_option("directory", directory, "The directory to export")->required();
  app.add_option("--name", name, "The name to export it under")->capture_default_str();
  app.add_option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  app.add_flag("--read-only", read_only, "Refuse every change");
  CLI11_PARSE(app, argc, argv);

  auto confined = files::ConfinedDirectory::open(directory);
  if (!confined) {
    fmt::print(stderr, "lrpc-files-server: {}\n", confined.error().message());
    return 1;
  }
  // Blocked before any thread exists, so that sigwait below is the only place where they arrive.
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
