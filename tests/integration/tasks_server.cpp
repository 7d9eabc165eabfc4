// lrpc-tasks-server SOCKET: serves Tasks over the socket until its parent goes.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tasks_service.h"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 2) return 2;
  static testing_lrpc::TasksService service;
  lrpc::Server server;
  if (auto served = Tasks::serve_over(server, lrpc::UniqueFd(std::atoi(argv[1])), service); !served) {
    std::fprintf(stderr, "serve_over: %s\n", served.error().message().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
