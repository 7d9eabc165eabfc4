// A server that calls its clients back: lrpc-calling-server NAMESERVER exports "chatter".
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "chatter_service.h"
#include "lrpc/server.h"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 2) return 64;
  testing_lrpc::ChatterService service;
  lrpc::Server server({.nameserver = argv[1], .estack_idle = std::chrono::milliseconds(20)});
  if (!Chatter::export_to(server, "chatter", service)) return 1;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
