// Hello, world across a protection boundary: the server and the client of README's example, as two processes.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "hello.client.h"
#include "hello.server.h"

struct Greeter {
  std::uint32_t times = 0;
  Hello::GreetResults Greet(lrpc::CallContext&, const lrpc::String<64>& name) {
    return {.greeting = "hello, " + name.str(), .times = ++times};
  }
};

int greet(lrpc::UniqueFd socket) {
  auto hello = Hello::Client::import_over(std::move(socket));
  if (!hello) return std::fprintf(stderr, "%s\n", hello.error().message().c_str()), 1;
  for (int i = 0; i < 3; ++i) {
    const auto reply = hello->Greet("world");
    if (!reply) return std::fprintf(stderr, "%s\n", reply.error().message().c_str()), 1;
    std::printf("%s (%u)\n", reply->greeting.str().c_str(), reply->times);
  }
  return 0;
}

int main() {
  auto ends = lrpc::make_socket_pair();
  if (!ends) return 1;
  const pid_t server = fork();
  if (server < 0) return std::perror("fork"), 1;
  if (server == 0) {
    ends->second.reset();
    Greeter greeter;
    lrpc::Server domain;
    if (!Hello::serve_over(domain, std::move(ends->first), greeter)) _exit(1);
    for (;;) pause();
  }
  ends->first.reset();
  const int status = greet(std::move(ends->second));
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
  return status;
}
