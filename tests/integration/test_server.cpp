// The server process of the integration tests: exports Conformance under the given names until its parent ends.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "conformance_service.h"
#include "refused_membarrier.h"

namespace {

void limit_descriptors(std::size_t most) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string nameserver;
  lrpc::ServerOptions options_of_server;
  bool refuse = false;
  std::string socket;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--nameserver")
      nameserver = argv[++i];
    else if (argument == "--socket")
      socket = argv[++i];
    else if (argument == "--max-estacks")
      options_of_server.max_estacks = std::stoul(argv[++i]);
    else if (argument == "--estack-idle")  // ms
      options_of_server.estack_idle = std::chrono::milliseconds(std::stoul(argv[++i]));
    else if (argument == "--max-bindings")
      options_of_server.max_bindings = std::stoul(argv[++i]);
    else if (argument == "--max-bindings-per-client")
      options_of_server.max_bindings_per_client_process = std::stoul(argv[++i]);
    else if (argument == "--max-bindings-per-user")
      options_of_server.max_bindings_per_user = std::stoul(argv[++i]);
    else if (argument == "--max-region-bytes-per-user")
      options_of_server.max_region_bytes_per_user = std::stoul(argv[++i]);
    else if (argument == "--max-descriptors-per-user")
      options_of_server.max_descriptors_per_user = std::stoul(argv[++i]);
    else if (argument == "--max-descriptors")
      limit_descriptors(std::stoul(argv[++i]));
    else if (argument == "--occupied-descriptors")
      for (auto left = std::stoul(argv[++i]); left != 0; --left) (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    else if (argument == "--one-table") {  // one table of descriptors, as in a sandbox: no thread can have its own
      if (!testing_lrpc::refuse_call(SYS_pidfd_getfd, ENOSYS)) return 1;
    } else if (argument == "--refuse")
      refuse = true;
    else
      names.push_back(argument);
  }
  options_of_server.nameserver = nameserver;
  lrpc::Server server(options_of_server);
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
