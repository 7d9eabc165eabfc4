// A domain that ends as its arguments say: mortal server NAMESERVER NAME, or mortal client NAMESERVER NAME GATE ENDING.
// mortal static-server NAMESERVER NAME: exit(3) destroys its Server.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/server.h"
#include "mortal_service.h"

namespace {

using namespace testing_lrpc;

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

int serve(lrpc::Server& server, MortalService& service, const std::string& name) {
  if (auto exported = Mortal::export_to(server, name, service); !exported) {
    std::fprintf(stderr, "%s\n", exported.error().message().c_str());
    return 1;
  }
  say("ready");
  wait_for_the_end();
}

/// Ends while it has a handle, a call that the server holds (surely, if it is the server's only client), and two
/// threads that call back to back. Negative `ending`: ends while it imports.
int call(const std::string& nameserver, const std::string& name, lrpc::Gate gate, int ending) {
  const lrpc::ImportOptions options{.nameserver = nameserver, .timeout = std::chrono::minutes(4), .gate = gate};
  if (ending < 0) {
    say("ready");
    for (;;) (void)Mortal::Client::import(name, options);
  }
  auto client = Mortal::Client::import(name, options);
  if (!client || !client->Own()) {
    if (!client) std::fprintf(stderr, "%s\n", client.error().message().c_str());
    return 1;
  }
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] { (void)client->Hold(); });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (client->Null()) ++calls;
    });
  }
  const auto all_call = [&] {
    const auto held = client->Held();
    return calls >= 200 && (!held || *held > 0);
  };
  while (!all_call()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  say("ready");
  meet(static_cast<Ending>(ending));
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == kStay) wait_for_the_end();
  if (what == "server" && argc == 4) {
    MortalService service;
    lrpc::Server server({.nameserver = argv[2]});
    return serve(server, service, argv[3]);
  }
  if (what == "static-server" && argc == 4) {
    static MortalService service;
    static lrpc::Server server({.nameserver = argv[2]});
    return serve(server, service, argv[3]);
  }
  if (what == "client" && argc == 6)
    return call(argv[2], argv[3], static_cast<lrpc::Gate>(std::stoi(argv[4])), std::stoi(argv[5]));
  return 64;
}
