// A client that does all that a client can do, whenever the test wants it: lrpc-restless-client NAMESERVER. Or one that
// starts a sealed program: lrpc-restless-client NAMESERVER PROGRAM [untraced]; untraced: it may not trace it. Each step
// may fail, by an error or by std::bad_alloc. It counts its lives where the test reads them (allocation_faults.h).
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "allocation_faults.h"
#include "chatter_service.h"
#include "conformance.client.h"
#include "lrpc/sealed.h"
#include "own_faults.h"
#include "refused_calls.h"

namespace {

using namespace std::chrono_literals;
using namespace testing_lrpc;

bool all_well = true;

/// Tries one step. The program survives std::bad_alloc.
template <class Step>
void attempt(Step&& step) {
  bool done = false;
  try {
    done = static_cast<bool>(step());
  } catch (const std::bad_alloc&) {
  }
  all_well = all_well && done;
}

void call(Conformance::Client& client) {
  attempt([&] { return client.Greet("you"); });
  std::array<std::byte, 3'000> bytes{};
  attempt([&] { return client.Sum(bytes); });
  attempt([&] { return client.Check(13).raised<Conformance::Refused>() != nullptr; });
  attempt([&] {
    const auto counter = client.Open(1);
    return counter && client.Shut(*counter);
  });
  attempt([&] {
    lrpc::Cancellation cancellation;
    const lrpc::CallScope scope(4min, cancellation);
    return client.SleepFor(1);
  });
  attempt([&] {
    const lrpc::CallScope brief(1ms);
    return client.SleepFor(3).code() == lrpc::Errc::call_aborted;
  });
  attempt([&] {
    auto queue = lrpc::CompletionQueue::create();
    if (!queue) return false;
    auto first = client.start().SleepFor(1);
    auto second = client.start().Add(1, 2);
    const bool watched = (*queue)->watch(first) && (*queue)->watch(second);
    std::size_t ready = 0;
    while (watched && ready < 2) ready += (*queue)->wait(4min);
    return first.finish() && second.finish();
  });
  attempt([&] {  // more calls than A-stacks: the supply grows
    std::vector<decltype(client.start().SleepFor(1))> sleeping;
    for (int i = 0; i < 12; ++i) sleeping.push_back(client.start().SleepFor(1));
    bool slept = true;
    for (auto& one : sleeping) slept = static_cast<bool>(one.finish()) && slept;
    return slept;
  });
  attempt([&] { return client.binding().revocation_fd(); });
  attempt([&] { return client.binding().when_revoked([] {}); });
}

void be_called_back(const std::string& nameserver) {
  attempt([&] {
    ChatterListener listener;
    auto client = Chatter::Client::import("chatter", {.nameserver = nameserver});
    if (!client) return false;
    listener.server = &*client;
    lrpc::Server own;
    if (!client->serve_callbacks(own, listener)) return false;
    const auto sum = client->Sum(10);
    return sum && *sum == 90;
  });
}

void live(const std::string& nameserver) {
  attempt([&] {
    auto client = Conformance::Client::import("memory", {.nameserver = nameserver, .supply = lrpc::AStackSupply::grow});
    if (client) call(*client);
    return client;
  });
  be_called_back(nameserver);
}

void seal(const std::string& nameserver, const std::string& program, bool traced) {
  attempt([&] {
    auto domain =
        lrpc::SealedDomain::start({program, "exchange", "memory"}, {.name = "memory", .nameserver = nameserver});
    return traced ? domain && domain->wait() == 0 : domain.code() == lrpc::Errc::not_supported;
  });
}

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  AllocationFaults* const faults = map_own_faults();
  if (argc < 2 || argc > 4 || faults == nullptr) return 64;
  const std::string nameserver = argv[1];
  const bool traced = argc != 4;
  if (!traced && !refuse_calls(SYS_ptrace, EPERM)) return 77;
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    while (faults->lives.load() >= faults->wanted.load()) std::this_thread::sleep_for(100us);
    all_well = true;
    argc == 2 ? live(nameserver) : seal(nameserver, argv[2], traced);
    if (all_well) faults->good.fetch_add(1);
    faults->lives.fetch_add(1);
  }
}
