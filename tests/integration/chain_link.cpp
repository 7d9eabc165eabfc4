// One domain of a chain: chain_link NAMESERVER INDEX [GATE] exports link-INDEX until its parent ends.
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>

#include "chain_service.h"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 3 && argc != 4) return 2;
  const auto gate = argc == 4 ? static_cast<lrpc::Gate>(std::stoi(argv[3])) : lrpc::Gate::adaptive;
  testing_lrpc::ChainLink link(argv[1], static_cast<std::uint32_t>(std::stoul(argv[2])), gate);
  lrpc::Server server({.nameserver = argv[1]});
  if (auto exported = Chain::export_to(server, std::string("link-") + argv[2], link); !exported) {
    std::fprintf(stderr, "%s\n", exported.error().message().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
