// Client processes for the tests of callbacks, concurrency and growth: lrpc-test-client WHAT ARGUMENTS...
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "busy_calls.h"
#include "chatter_service.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;

[[noreturn]] void stay() {
  std::puts("ready");
  std::fflush(stdout);
  for (;;) pause();
}

template <class Outcome>
int failed(const char* what, const Outcome& outcome) {
  std::fprintf(stderr, "lrpc-test-client: %s: %s\n", what, outcome.error().message().c_str());
  return 1;
}

/// busy NAMESERVER GATE NUMBER: two threads, each with its own binding, and both also over a shared one. Prints the
/// results.
int busy(const std::string& nameserver, lrpc::Gate gate, std::uint32_t number) {
  const lrpc::ImportOptions options{.nameserver = nameserver, .timeout = 4min, .gate = gate};
  auto shared = Conformance::Client::import("busy", options);
  if (!shared) return 1;
  std::array<BusyReport, 2> parts;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      parts[t].wrong = 1;
      auto own = Conformance::Client::import("busy", options);
      if (!own) return;
      parts[t].wrong = static_cast<std::uint64_t>(wrong_answers(*own, number * 2 + t, 100));
      for (int i = 0; i < 200; ++i) {
        const auto counted = (i % 2 == 0 ? *own : *shared).Count();
        parts[t].wrong += counted ? 0U : 1U;
        ++parts[t].calls;
        if (counted) parts[t].sum += *counted;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%lu %lu %lu\n", parts[0].wrong + parts[1].wrong, parts[0].calls + parts[1].calls,
              parts[0].sum + parts[1].sum);
  return 0;
}

/// crowd NAMESERVER NAME CALLERS MILLISECONDS: that many threads make sleeping calls one after another, on A-stacks
/// that are grown as needed.
int crowd(const std::string& nameserver, const std::string& name, int callers, std::uint32_t milliseconds) {
  auto client = Conformance::Client::import(
      name, {.nameserver = nameserver, .timeout = 4min, .supply = lrpc::AStackSupply::grow});
  if (!client) return 1;
  for (int i = 0; i < callers; ++i) {
    std::thread([&] {
      for (;;) (void)client->SleepFor(milliseconds);
    }).detach();
  }
  stay();
}

/// chatter NAMESERVER stay|hang|sum: subscribes; then stays, or never answers a question, or makes many calls.
int chatter(const std::string& nameserver, std::string_view then) {
  ChatterListener listener;
  auto client = Chatter::Client::import("chatter", {.nameserver = nameserver, .timeout = 4min});
  if (!client) return failed("import", client);
  listener.server = &*client;
  lrpc::Server own;
  if (auto served = client->serve_callbacks(own, listener); !served) return failed("serve_callbacks", served);
  if (auto subscribed = client->Subscribe(); !subscribed) return failed("Subscribe", subscribed);
  for (int i = 0; i < (then == "sum" ? 100 : 1); ++i) {
    const auto sum = client->Sum(10);
    if (!sum) return failed("Sum", sum);
    if (*sum != 90) return 3;
  }
  if (then != "hang") stay();
  std::puts("ready");
  std::fflush(stdout);
  (void)client->Ask("hang", 240'000, 0);
  return 4;
}

/// serve FD: serves Chatter's callback over an inherited socket.
int serve(int socket) {
  ChatterListener listener;
  lrpc::Server own;
  const auto served = own.serve_over(lrpc::UniqueFd(socket), Chatter::Callback::kPdl,
                                     Chatter::Callback::Entry_<ChatterListener>::kStubs_, &listener);
  if (!served) return 1;
  stay();
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "busy" && argc == 5) {
    return busy(argv[2], static_cast<lrpc::Gate>(std::stoi(argv[3])), static_cast<std::uint32_t>(std::stoul(argv[4])));
  }
  if (what == "crowd" && argc == 6) {
    return crowd(argv[2], argv[3], std::stoi(argv[4]), static_cast<std::uint32_t>(std::stoul(argv[5])));
  }
  if (what == "chatter" && argc == 4) return chatter(argv[2], argv[3]);
  if (what == "serve" && argc == 3) return serve(std::stoi(argv[2]));
  return 64;
}
