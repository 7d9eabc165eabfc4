// The server process of the integration tests: exports Conformance under the names it is given, until its parent goes.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "conformance_service.h"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string nameserver;
  std::size_t max_estacks = 256;
  bool refuse = false;
  std::string socket;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--nameserver") nameserver = argv[++i];
    else if (argument == "--socket") socket = argv[++i];
    else if (argument == "--max-estacks") max_estacks = std::stoul(argv[++i]);
    else if (argument == "--refuse") refuse = true;
    else names.push_back(argument);
  }
  lrpc::Server server({.nameserver = nameserver, .max_estacks = max_estacks});
  testing_lrpc::ConformanceService service(&server, nameserver);
  lrpc::ExportOptions options;
  if (refuse) {
    options.authorise = [](const lrpc::shim::Credentials&) -> lrpc::Status {
      return lrpc::Error{lrpc::Errc::not_permitted, "not today"};
    };
  }
  if (!socket.empty()) {
    if (auto served = Conformance::serve_over(server, lrpc::UniqueFd(std::stoi(socket)), service, options); !served) {
      std::fprintf(stderr, "serve_over: %s\n", served.error().message().c_str());
      return 1;
    }
  }
  for (const std::string& name : names) {
    if (auto exported = Conformance::export_to(server, name, service, options); !exported) {
      std::fprintf(stderr, "export of %s: %s\n", name.c_str(), exported.error().message().c_str());
      return 1;
    }
  }
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}
