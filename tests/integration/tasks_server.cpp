// lrpc-tasks-server SOCKET [ERROR [comes-and-goes]]: serves Tasks over the socket until its parent ends. If ERROR is
// not 0, membarrier(2) fails with that errno. With comes-and-goes, poller and E-stacks leave as soon as they can.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "refused_membarrier.h"
#include "tasks_service.h"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc < 2 || argc > 4) return 2;
  if (const int error = argc > 2 ? std::atoi(argv[2]) : 0; error != 0 && !testing_lrpc::refuse_membarrier(error)) {
    std::fputs("no filter can be set\n", stderr);
    return 1;
  }
  lrpc::ServerOptions options;
  if (argc > 3) {
    options.estack_idle = std::chrono::milliseconds(1);
    // Not zero, which means no poller: the poller leaves when one call comes later than this.
    options.poll_window = std::chrono::microseconds(100);
  }
  static testing_lrpc::TasksService service;
  lrpc::Server server(options);
  if (auto served = Tasks::serve_over(server, lrpc::UniqueFd(std::atoi(argv[1])), service); !served) {
    std::fprintf(stderr, "serve_over: %s\n", served.error().message().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
