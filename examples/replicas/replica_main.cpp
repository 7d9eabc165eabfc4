// lrpc-replica: a member of a replicated store and counter. Runs until SIGINT or SIGTERM.
#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <string>

#include "lrpc/command_line.h"
#include "replica.h"

int main(int argc, char** argv) {
  std::string directory;
  lrpc::ServerOptions options;
  lrpc::command_line::Program program("Exports 'store' and 'counter', which keep what they are told in a directory.");
  program.option("directory", directory, "Where the journals are").required();
  program.option("--nameserver", options.nameserver,
                 "Nameserver socket (default: $LRPC_SOCKET, then the usual places)");
  if (const auto status = program.parse(argc, argv)) return *status;

  // Block them before any thread exists, so that only sigwait() below receives them.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);

  replicas::StoreReplica store;
  replicas::CounterReplica counter;
  lrpc::Server server(options);
  lrpc::Status ready = store.open(directory + "/store");
  if (ready) ready = counter.open(directory + "/counter");
  const auto serve = [&](const auto& exported) {
    if (!exported) ready = exported.error();
  };
  if (ready) serve(Store::export_to(server, "store", store));
  if (ready) serve(Counter::export_to(server, "counter", counter));
  if (!ready) {
    fmt::print(stderr, "lrpc-replica: {}\n", ready.error().message());
    return 1;
  }
  fmt::print("serving from {}\n", directory);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop, &signal);
  return 0;
}
