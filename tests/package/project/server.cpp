// Exports Hello over a nameserver of its own, runs the client as a second process, and ends as that did.
#include <lrpc/nameserver.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "hello.server.h"

namespace {

class Greeter {
 public:
  lrpc::Result<std::uint32_t, Hello::Unknown> Greet(lrpc::CallContext&, const lrpc::String<32>& name) {
    if (name.view() == "nobody") return lrpc::raise(Hello::Unknown{name});
    const int length = std::printf("hello, %.*s\n", static_cast<int>(name.view().size()), name.view().data());
    return static_cast<std::uint32_t>(length);
  }
  std::int32_t Add(lrpc::CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
};

int run_client(const std::string& socket) {
  std::string program = HELLO_CLIENT;
  std::string argument = socket;
  char* arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return 1;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int serve(const std::string& socket) {
  auto nameserver = lrpc::nameserver::Nameserver::start({.socket_path = socket});
  if (!nameserver) {
    std::fprintf(stderr, "nameserver: %s\n", nameserver.error().message().c_str());
    return 1;
  }
  Greeter greeter;
  lrpc::Server server({.nameserver = socket});
  if (auto exported = Hello::export_to(server, "hello", greeter); !exported) {
    std::fprintf(stderr, "export: %s\n", exported.error().message().c_str());
    return 1;
  }
  return run_client(socket);
}

}  // namespace

int main() {
  char directory[] = "/tmp/hello.XXXXXX";
  if (mkdtemp(directory) == nullptr) return 1;
  const int status = serve(std::string(directory) + "/socket");
  rmdir(directory);
  return status;
}
